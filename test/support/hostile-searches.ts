import fc from 'fast-check';
import { EXPORT_KINDS } from '#src/exports/export-request.ts';
import { hostileText, PLANTED } from './hostile-requests.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';

/** A search, an export or a page of the dashboard: the path with its query, and the body of a POST. */
export type HostileSearch = { readonly path: string; readonly body?: string };

/** Parameters of searches, exports and pages, with values that each may have. */
const PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  account_id: [ACCOUNT_ONE, ACCOUNT_ONE.toUpperCase(), '00000000-0000-0000-0000-000000000000'],
  account: [ACCOUNT_ONE],
  month: ['2026-11', '2026-13', '1999-01', '2999-12'],
  from: ['2026-11-01', '2026-11-01T00:00:00Z', '2026-02-30', '2026-11-01T00:00', '2000-01-01', '2999-12-31'],
  before: ['2026-12-01', '2026-12-01T00:00:00+05:30', '2026-11-31', '2027-11-02'],
  to: ['2026-12-01', '2026-12-01T00:00'],
  span: ['1h', '24h', '7d', '30d', '1y'],
  zone: ['America/Bogota', '+05:30', 'Asia/Kolkata', 'Mars/Olympus', 'UTC+1', 'Pacific/Apia', '-12:00'],
  created_from: ['2026-11-01', '0001-01-01', '9999-12-31'],
  created_to: ['2026-12-01', '9999-12-31T23:59:60Z'],
  succeeded_from: ['2026-11-01', '0000-01-01'],
  succeeded_to: ['2026-11-30T24:00:00Z'],
  currency: ['USD', 'usd', 'XXX'],
  amount_from: ['0', '1e3', '-1', '0.001', '9223372036854775808', '99999999999999999999.99'],
  amount_to: ['10.50', '10,50'],
  least: ['10.5'],
  most: ['99999999999999999999'],
  status: ['SUCCEEDED', '1', 'STATUS_UNSPECIFIED', 'toString'],
  sub_status: ['APPROVED', 'constructor'],
  outcome: ['APPROVED', 'UNKNOWN', 'x'],
  response_code: ['DO_NOT_HONOR'],
  code: ['DO_NOT_HONOR'],
  by: ['order', 'prefix', 'reference', 'last_four', 'customer', 'id', '__proto__'],
  text: ['order', '1111', ACCOUNT_ONE],
  unknown: ['1'],
  refunded: ['1', '0'],
  disputed: ['1', 'true', 'no'],
  unknown_outcome: ['true', 'TRUE', '1'],
  merchant_order_id: ['order'],
  merchant_order_id_prefix: ['o', '%', '\u{10ffff}'],
  customer_id: [ACCOUNT_ONE],
  connection_id: ['sandbox-one'],
  connection: ['sandbox-one'],
  country: ['US', 'us', 'ZZ'],
  page_size: ['0', '-1', '101', '2147483648', '1.5'],
  page_token: ['AAAA', '='],
  page: ['AAAA'],
  separator: ['semicolon', ';'],
  bom: ['true'],
  raw: ['true'],
  include: ['payer', 'payer,payer'],
  type: ['REFUND'],
  dispute_status: ['NEEDS_RESPONSE'],
};

const parameter = fc
  .constantFrom(...Object.keys(PARAMETERS))
  .chain((name) =>
    fc.tuple(
      fc.oneof({ arbitrary: fc.constant(name), weight: 20 }, { arbitrary: shortText(), weight: 1 }),
      fc.oneof(
        { arbitrary: fc.constantFrom(...(PARAMETERS[name] ?? [])), weight: 3 },
        { arbitrary: shortText(), weight: 2 },
      ),
    ),
  );

/** Texts that fit into a URL: longer ones are refused before they are read. */
function shortText(): fc.Arbitrary<string> {
  return hostileText.map((text) => text.slice(0, 1_000).toWellFormed());
}

const query = fc
  .tuple(
    fc.array(parameter, { maxLength: 5 }),
    fc.constantFrom('', '', '', '&%zz', '&%ff=%00', '&a[b]=c', '&zone', '&&='),
  )
  .map(([given, end]) => new URLSearchParams(given.map(([name, value]) => [name, value])) + end);

const PERIOD = 'month=2026-11';

/** Exports, most of which have a period that can be read. */
export const hostileExport: fc.Arbitrary<HostileSearch> = fc
  .tuple(fc.constantFrom(...EXPORT_KINDS, 'everything'), fc.constantFrom(PERIOD, PERIOD, ''), query)
  .map(([kind, period, more]) => ({
    path: `/v1/exports/${kind}.csv?${[period, more].filter(Boolean).join('&')}`,
  }));

/** Lists of payments. */
export const hostileList: fc.Arbitrary<HostileSearch> = query.map((text) => ({
  path: `/v1/payments?${text}`,
}));

/** Searches for a payer, by a planted address or document that no log may have. */
export const hostilePayerSearch: fc.Arbitrary<HostileSearch> = fc
  .tuple(
    fc.array(parameter, { maxLength: 4 }),
    fc.oneof(fc.constant(PLANTED.payerEmail), fc.constant(`${PLANTED.payerEmail}\0`), shortText()),
    fc.oneof(
      fc.constant(undefined),
      fc.constant({ document_type: 'CC', document_number: PLANTED.payerDocument }),
      shortText().map((document_number) => ({ document_type: 'CC', document_number })),
      fc.constant({ document_number: [PLANTED.payerDocument] }),
    ),
  )
  .map(([given, payer_email, payer_document]) => ({
    path: '/v1/payments/search',
    body: JSON.stringify({ ...Object.fromEntries(given), payer_email, payer_document }),
  }));

/** Pages of the dashboard that search. */
export const hostilePage: fc.Arbitrary<HostileSearch> = fc
  .tuple(fc.constantFrom('/payments', '/figures', '/export'), query)
  .map(([page, text]) => ({ path: `${page}?${text}` }));
