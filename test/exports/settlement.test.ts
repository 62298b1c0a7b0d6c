import { beforeAll, describe, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { readExportRequest } from '#src/exports/export-request.ts';
import { openExport } from '#src/exports/open-export.ts';
import { matchSettlement } from '#src/settlement/match-settlement.ts';
import { type Operator, signIn } from '../support/dashboard.ts';
import { openTestDatabase } from '../support/database.ts';
import { onService, server, tables } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  ACCOUNT_TWO,
  cardPayment,
  headersOne,
  headersTwo,
} from '../support/payment-requests.ts';
import { readCsv, sumsOf } from '../support/read-csv.ts';
import { payoutLine, reportLine, sandboxReport, uploadReport } from '../support/settlement-reports.ts';

onService();

const OPERATOR = { 'operator-key': 'op_sandbox' };
const READER = { 'operator-key': 'op_sandbox_read' };
const FEES = 2_100;

async function pay(accountId = ACCOUNT_ONE, headers = headersOne()) {
  const response = await fetch(`${server.url}/v1/payments`, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify({ ...cardPayment(), account_id: accountId }),
  });
  const { id, transactions } = (await response.json()) as { id: string; transactions: { id: string } };
  return { payment: id, transaction: transactions.id };
}
type Paid = Awaited<ReturnType<typeof pay>>;
let [good, short, timeless, foreign]: Paid[] = [];
let operator: Operator;

beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  [good, short, timeless] = [await pay(), await pay(), await pay()];
  foreign = await pay(ACCOUNT_TWO, headersTwo());
  // All at one time, so that only their keys order them.
  const fees = Array.from({ length: FEES }, () =>
    reportLine('', { type: 'tax', amount: '-0.01', gross: '-0.01', fee: '0.00', net: '-0.01' }),
  );
  const report = sandboxReport(
    ...[reportLine(good?.transaction ?? ''), reportLine(foreign?.transaction ?? '', { payout: 'po_2' })],
    reportLine(short?.transaction ?? '', { amount: '9.00', gross: '9.00', fee: '-0.50', net: '8.50' }),
    ...[reportLine(timeless?.transaction ?? '', { created_at: '' }), reportLine('', { operation: 'ch_x' })],
    ...fees,
    payoutLine('-15.00', { created_at: '2026-10-01T04:00:00Z' }),
  );
  expect((await uploadReport(server, operator, report)).status).toBe(303);
}, 60_000);

async function get(file: string, query: Record<string, string>, headers: Record<string, string>) {
  const response = await fetch(`${server.url}/v1/exports/${file}.csv?${new URLSearchParams(query)}`, {
    headers,
  });
  return { status: response.status, text: await response.text() };
}
async function rowsOf(file: string, query: Record<string, string>, headers: Record<string, string>) {
  const { status, text } = await get(file, query, headers);
  expect(status, text).toBe(200);
  return readCsv(text);
}
const SEPTEMBER = { month: '2026-09' };
const settled = (rows: Awaited<ReturnType<typeof rowsOf>>) =>
  rows.map(({ transaction_id: id }) => id).toSorted();
/** A period that has the present. */
const today = () => {
  const day = 86_400_000;
  const date = (ms: number) => new Date(ms).toISOString().slice(0, 10);
  return { from: date(Date.now() - day), before: date(Date.now() + day) };
};

describe('settlement.csv', () => {
  it('an account’s key gets only the lines that settle its own payments', async () => {
    const rows = await rowsOf('settlement', SEPTEMBER, headersOne());
    expect(settled(rows)).toEqual([good?.transaction, short?.transaction].toSorted());
    expect(rows.find(({ payment_id: id }) => id === good?.payment)).toMatchObject({
      ...{ account_id: ACCOUNT_ONE, merchant_order_id: 'order-1', settlement_kind: 'payment' },
      ...{ settlement_result: 'matched', settled_at_utc: '2026-09-30T10:00:00.000Z', amount: '10.00' },
      ...{ currency: 'USD', gross: '10.00', fee: '-0.59', tax: '0.00', net: '9.41' },
      ...{ settlement_currency: 'USD', payout_reference: 'po_1', connection_id: 'sandbox-one' },
      ...{ payment_method_type: 'CARD', brand: 'VISA', card_last_four: '1881', country: 'US' },
    });
    expect(settled(await rowsOf('settlement', SEPTEMBER, headersTwo()))).toEqual([foreign?.transaction]);
    const other = await get('settlement', { ...SEPTEMBER, account_id: ACCOUNT_TWO }, headersOne());
    expect(other.status).toBe(403);
  });

  it('an operator gets every line once, with those of no payment, and their sum is in the audit log', async () => {
    const rows = await rowsOf('settlement', SEPTEMBER, READER);
    expect(rows).toHaveLength(FEES + 4);
    expect(new Set(rows.map(({ line_reference: key }) => key)).size).toBe(rows.length);
    const kinds = Map.groupBy(rows, ({ settlement_result: result }) => result);
    expect([...kinds].map(([result, own]) => [result, own.length]).toSorted()).toEqual([
      ['matched', 3],
      ['none_expected', FEES],
      ['unmatched', 1],
    ]);
    expect(kinds.get('none_expected')?.[0]).toMatchObject({
      ...{ account_id: '', payment_id: '', amount: '', net: '-0.01', settlement_kind_reported: 'tax' },
    });
    // 9.41 + 9.41 + 8.50 + 9.41 of an unknown payment, less the others.
    expect(sumsOf(rows, 'net')).toEqual({ USD: 36_730n - BigInt(FEES) * 10n });
    const [audited] = await tables.query(
      "SELECT detail FROM audit_log WHERE action = 'exported' ORDER BY id DESC LIMIT 1",
    );
    expect(audited).toEqual({ detail: `${FEES + 4} rows, USD 15.73` });
    expect(settled(await rowsOf('settlement', { ...SEPTEMBER, account_id: ACCOUNT_TWO }, OPERATOR))).toEqual([
      foreign?.transaction,
    ]);
  });

  it('the zone decides the month of a line, and a line without a time counts when it was imported', async () => {
    const bogota = { ...SEPTEMBER, zone: 'America/Bogota', settlement_kind: 'payout' };
    expect(await rowsOf('settlement', bogota, OPERATOR)).toHaveLength(1);
    expect(await rowsOf('settlement', { ...bogota, zone: 'UTC' }, OPERATOR)).toHaveLength(0);
    await tables.query("UPDATE settlement_match SET added_at = now() - interval '40 seconds'");
    expect(settled(await rowsOf('settlement', today(), headersOne()))).toEqual([timeless?.transaction]);
  });

  it('rows are filtered by the values of columns', async () => {
    const of = async (query: object) => rowsOf('settlement', { ...SEPTEMBER, ...query }, OPERATOR);
    expect(await of({ payout_reference: 'po_2' })).toHaveLength(1);
    expect(await of({ settlement_result: 'unmatched' })).toHaveLength(1);
    expect(await of({ merchant_order_id: 'order-1' })).toHaveLength(3);
    expect(await of({ connection_id: 'sandbox-two' })).toHaveLength(0);
    const refused = await get('settlement', { ...SEPTEMBER, settlement_kind: 'x', type: 'REFUND' }, OPERATOR);
    expect([refused.status, refused.text]).toEqual([400, expect.stringContaining('settlement_kind')]);
    expect(refused.text).toContain('type');
  });

  it('while reports are matched, the file of all accounts is refused, and an account’s is not', async () => {
    await tables.query("UPDATE settlement_progress SET leased_until = now() + interval '1 minute'");
    const refused = await fetch(`${server.url}/v1/exports/settlement.csv?month=2026-09`, {
      headers: OPERATOR,
    });
    expect([refused.status, refused.headers.get('retry-after')]).toEqual([503, '60']);
    expect(await refused.text()).toContain('reports are being matched');
    expect(await rowsOf('settlement', SEPTEMBER, headersOne())).toHaveLength(2);
    expect(await rowsOf('differences', SEPTEMBER, OPERATOR)).toEqual([]);
    await tables.query('UPDATE settlement_progress SET leased_until = now()');
    expect(await rowsOf('settlement', SEPTEMBER, OPERATOR)).toHaveLength(FEES + 4);
  });

  it('the payer’s data is added for the lines of payments', async () => {
    const rows = await rowsOf('settlement', { ...SEPTEMBER, include: 'payer' }, OPERATOR);
    expect(rows).toHaveLength(FEES + 4);
    expect(Object.keys(rows[0] ?? {})).toContain('payer_email');
  });
});

describe('differences.csv', () => {
  it('an account’s key gets the differences of its payments; an operator gets all, as they are now', async () => {
    const own = await rowsOf('differences', { ...today(), before: today().before }, headersOne());
    expect(own).toEqual([]);
    await tables.query("UPDATE settlement_difference SET opened_at = '2026-09-30T23:00:00Z'");
    const rows = await rowsOf('differences', SEPTEMBER, headersOne());
    expect(
      rows.toSorted((one, other) => (one.difference_kind ?? '').localeCompare(other.difference_kind ?? '')),
    ).toMatchObject([
      {
        ...{ account_id: ACCOUNT_ONE, payment_id: short?.payment, transaction_id: short?.transaction },
        ...{ difference_kind: 'amount_differs', difference_status: 'OPEN', connection_id: 'sandbox-one' },
        ...{ difference_detail: '9.00 USD settled, here 10.00 USD', merchant_order_id: 'order-1' },
        ...{ opened_at_utc: '2026-09-30T23:00:00.000Z', resolved_at_utc: '', closed_at_utc: '' },
      },
      {
        ...{ payment_id: short?.payment, difference_kind: 'fee_unexpected' },
        difference_detail: 'a fee of 0.50 USD settled on 9.00 USD, agreed 0.56 USD',
      },
    ]);
    expect(await rowsOf('differences', SEPTEMBER, headersTwo())).toEqual([]);
    const all = await rowsOf('differences', SEPTEMBER, READER);
    const kinds = all.map(({ difference_kind: kind }) => kind).toSorted();
    expect(kinds).toEqual(['amount_differs', 'fee_unexpected', 'payout_unbalanced', 'unknown_line']);
    const unknown = all.find(({ difference_kind: kind }) => kind === 'unknown_line');
    expect(unknown).toMatchObject({ account_id: '', payment_id: '', transaction_id: '' });
    const only = await rowsOf('differences', { ...SEPTEMBER, difference_kind: 'unknown_line' }, OPERATOR);
    expect(only).toHaveLength(1);
  });

  it('a resolved difference and an explained one say so, without the operators’ notes', async () => {
    await tables.query(
      "UPDATE settlement_difference SET resolved_at = '2026-10-02', resolved_by = 'Ada', note = 'a secret' WHERE kind = 'unknown_line'",
    );
    await tables.query(
      "UPDATE settlement_difference SET ended_at = '2026-10-03' WHERE kind = 'payout_unbalanced'",
    );
    const { text } = await get('differences', SEPTEMBER, OPERATOR);
    expect(text).not.toMatch(/Ada|a secret/);
    const states = Object.fromEntries(
      readCsv(text).map((row) => [row.difference_kind, row.difference_status]),
    );
    expect(states).toEqual({
      ...{ amount_differs: 'OPEN', fee_unexpected: 'OPEN' },
      ...{ unknown_line: 'RESOLVED', payout_unbalanced: 'CLOSED' },
    });
    const open = { ...SEPTEMBER, difference_status: 'OPEN' };
    expect(await rowsOf('differences', open, OPERATOR)).toHaveLength(2);
    const refused = await get('differences', { ...SEPTEMBER, currency: 'USD' }, OPERATOR);
    expect(refused.status).toBe(400);
  });
});

it('a line that is matched behind the reading makes the file of all accounts break off', async () => {
  const database = openTestDatabase(server.databaseUrl, 1);
  const asked = readExportRequest('settlement', SEPTEMBER);
  const { pieces } = await openExport(database, asked);
  const reading = pieces();
  expect((await reading.next()).value).toContain(short?.transaction);
  const ofLine =
    'UPDATE transaction SET provider_payment_id = $1 WHERE id = $2 RETURNING connection_identity';
  const [{ connection_identity: identity } = {}] = await tables.query(ofLine, ['ch_x', short?.transaction]);
  const account = {
    ...{ identity: String(identity), connectionIds: ['sandbox-one'], windowMs: 10_000 },
    agreedFees: new Map(),
  };
  expect(await matchSettlement(database, account)).toMatchObject({ matched: 1 });
  await expect(Array.fromAsync(reading)).rejects.toThrow('reports are being matched');
  const again = await openExport(database, asked);
  const rows = readCsv((await Array.fromAsync(again.pieces())).join(''));
  expect(new Set(rows.map(({ line_reference: key }) => key)).size).toBe(FEES + 4);
  await database.close();
});
