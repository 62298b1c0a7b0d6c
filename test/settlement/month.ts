import { randomUUID } from 'node:crypto';
import { cardPayment, headersOne, withField } from '../support/payment-requests.ts';
import type { Tables } from '../support/tables.ts';

/** A payment of the month. */
type Scenario = {
  /** The payment's description, by which the sandbox acts. */
  readonly description?: string;
  readonly currency?: string;
  readonly value?: number;
  /** Amounts that are captured of an authorization. */
  readonly captures?: readonly { readonly value: number; readonly description?: string }[];
  readonly refunds?: readonly { readonly value: number; readonly description?: string }[];
  /** The kinds of the differences that the report must have. */
  readonly differences?: readonly string[];
};

/** Payments that reports settle as they were. */
const PLAIN: readonly Scenario[] = [
  {},
  { captures: [{ value: 20 }, { value: 12.5 }] },
  { refunds: [{ value: 10 }, { value: 0.01 }] },
  { refunds: [{ value: 10, description: 'sandbox:fail_after:10' }] },
  { refunds: [{ value: 7, description: 'sandbox:decline:05' }] },
  { description: 'sandbox:dispute_after:0:won' },
  { description: 'sandbox:dispute_after:0:lost' },
  { description: 'sandbox:dispute_after:0:lost_again' },
  { currency: 'COP', value: 180_000 },
  { currency: 'CLP', value: 55_123 },
  { currency: 'JPY', value: 1_200 },
  { currency: 'KWD', value: 1.234 },
  { description: 'sandbox:decline:51' },
  { description: 'sandbox:late_approval:50' },
  { captures: [{ value: 55.75 }], refunds: [{ value: 55.75 }] },
];

const wrong = (difference: string) => `sandbox:settle_wrong:${difference}`;

/** Payments, captures and refunds about which the report is wrong. */
const PLANTED: readonly Scenario[] = [
  { description: wrong('missing'), differences: ['missing_at_provider'] },
  { description: wrong('amount'), differences: ['amount_differs'] },
  { description: wrong('currency'), differences: ['currency_differs'] },
  { description: wrong('twice'), differences: ['duplicate'] },
  { description: wrong('late'), differences: ['late'] },
  { description: wrong('payout'), differences: ['payout_unbalanced'] },
  { description: wrong('unknown'), differences: ['missing_at_provider', 'unknown_line'] },
  { description: 'sandbox:decline:05,settle_wrong:declined', differences: ['status_differs'] },
  { refunds: [{ value: 5, description: wrong('reversed') }], differences: ['refund_reversed'] },
  { refunds: [{ value: 5, description: wrong('missing') }], differences: ['missing_at_provider'] },
  { refunds: [{ value: 5, description: wrong('amount') }], differences: ['amount_differs'] },
  {
    captures: [{ value: 20 }, { value: 10, description: wrong('twice') }],
    differences: ['duplicate'],
  },
  { currency: 'COP', value: 90_000, description: wrong('amount'), differences: ['amount_differs'] },
  { currency: 'JPY', value: 900, description: wrong('late'), differences: ['late'] },
  { description: wrong('fee'), differences: ['fee_unexpected'] },
  { captures: [{ value: 20 }, { value: 10, description: wrong('fee') }], differences: ['fee_unexpected'] },
  { currency: 'COP', value: 90_000, description: wrong('fee'), differences: ['fee_unexpected'] },
  { currency: 'JPY', value: 900, description: wrong('fee'), differences: ['fee_unexpected'] },
];

/** A payment that was made, with the kinds of its differences. */
export type Made = { readonly paymentId: string; readonly differences: readonly string[] };

const AT_ONCE = 8;

/**
 * Makes payments at the sandbox, plain and planted ones in turn.
 *
 * @param url the service's.
 * @param count number of payments.
 */
export async function makeMonth(url: string, count: number): Promise<Made[]> {
  const made: Made[] = [];
  const scenarios = Array.from({ length: count }, (_, n) => {
    const from = n % 3 === 2 ? PLANTED : PLAIN;
    return from[Math.floor(n / 3) % from.length] ?? {};
  });
  const rest = scenarios[Symbol.iterator]();
  const work = async () => {
    for (const scenario of rest) made.push(await makeOne(url, scenario));
  };
  await Promise.all(Array.from({ length: AT_ONCE }, work));
  return made;
}

async function makeOne(url: string, scenario: Scenario): Promise<Made> {
  const { description = 'A book', currency = 'USD', value = 55.75, captures, refunds = [] } = scenario;
  let request = withField(cardPayment('4111111111111111'), 'description', description);
  request = withField(request, 'amount', { currency, value });
  if (captures) request = withField(request, 'payment_method.detail.card.capture', false);
  const { id, transactions } = await post(`${url}/v1/payments`, request);
  const path = `${url}/v1/payments/${id}/transactions`;
  let refunded = transactions.id;
  for (const { value, description } of captures ?? []) {
    const body = { merchant_reference: randomUUID(), amount: { currency, value }, description };
    refunded = (await post(`${path}/${transactions.id}/capture`, body)).transactions.id;
  }
  for (const { value, description } of refunds) {
    const body = { merchant_reference: randomUUID(), amount: { currency, value }, description };
    await post(`${path}/${refunded}/refund`, body);
  }
  return { paymentId: id, differences: scenario.differences ?? [] };
}

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the response.
async function post(url: string, body: object): Promise<any> {
  const response = await fetch(url, {
    method: 'POST',
    headers: { ...headersOne(), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  if (!response.ok && response.status !== 402) throw new Error(`${response.status} ${text}`);
  return JSON.parse(text);
}

/**
 * Spreads payments over the month before, at the provider and in the record: each by as many days as the hash of its id
 * says, but planted ones within the days in the middle, eleven seconds apart, so that no payout has two of them.
 */
export async function spreadOverMonth(tables: Tables, made: readonly Made[]): Promise<void> {
  const planted = made.filter(({ differences }) => differences.length > 0).map(({ paymentId }) => paymentId);
  await tables.query(`
    CREATE TABLE shifted AS
    SELECT payment_id, reference AS charge, transaction.payment_id::text AS key, 0::bigint AS ms
    FROM transaction WHERE false`);
  await tables.query(
    `INSERT INTO shifted
     SELECT t.payment_id, l.id, t.payment_id::text,
       CASE WHEN p.n IS NOT NULL THEN 15 * 86400000::bigint + p.n * 11000
         ELSE ('x' || left(md5(l.id), 6))::bit(24)::bigint * 2592000000 / 16777216 END
     FROM transaction t JOIN sandbox.ledger l ON l.idempotency_key = t.id::text AND l.parent_id IS NULL
       LEFT JOIN unnest($1::uuid[]) WITH ORDINALITY AS p (id, n) ON p.id = t.payment_id`,
    [planted],
  );
  await tables.query(`
    UPDATE transaction t
    SET succeeded_at = (succeeded_at AT TIME ZONE 'UTC' - make_interval(secs => s.ms / 1000.0)) AT TIME ZONE 'UTC'
    FROM shifted s WHERE s.payment_id = t.payment_id`);
  await tables.query(`
    UPDATE sandbox.ledger l
    SET details = jsonb_set(l.details::jsonb, '{moves}', (
      SELECT jsonb_agg(jsonb_set(m, '{atMs}', to_jsonb((m->>'atMs')::bigint - s.ms)) ORDER BY n)
      FROM jsonb_array_elements(l.details::jsonb->'moves') WITH ORDINALITY AS x (m, n)))::text
    FROM shifted s WHERE s.charge = coalesce(l.parent_id, l.id) AND l.details::jsonb ? 'moves'`);
}
