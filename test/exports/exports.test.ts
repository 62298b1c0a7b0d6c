import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';
import {
  ACCOUNT_ONE,
  ACCOUNT_TWO,
  cardPayment,
  headersOne,
  headersTwo,
  withField,
} from '../support/payment-requests.ts';
import { readCsv, sumsOf } from '../support/read-csv.ts';

onService();

const OPERATOR = { 'operator-key': 'op_sandbox' };
const READER = { 'operator-key': 'op_sandbox_read' };
const MONTH = { month: '2026-09' };

/** The digits of the currencies that payments are made in. */
const CURRENCIES = [
  ['USD', 'US', 2],
  ['JPY', 'JP', 0],
  ['KWD', 'KW', 3],
] as const;
const PAYMENTS = 240;

async function call(path: string, json: object, headers = headersOne()) {
  const response = await fetch(server.url + path, {
    method: 'POST',
    headers: { ...headers, 'content-type': 'application/json' },
    body: JSON.stringify(json),
  });
  const body = (await response.json()) as { id: string; code?: string };
  expect(response.status, JSON.stringify(body)).toBeLessThan(300);
  return body;
}

/** Makes payment `n`: a purchase, or an authorization with partial captures; some are refunded or canceled. */
async function pay(n: number): Promise<void> {
  const [currency, country, digits] = CURRENCIES[n % 3] ?? CURRENCIES[0];
  const amount = (units: number) => ({ currency, value: units / 10 ** digits });
  const isAuthorized = n % 2 === 0;
  const request = withField(
    {
      ...cardPayment(n % 17 === 5 ? '4000000000000002' : undefined),
      ...{
        country,
        amount: amount(10_000 + n),
        merchant_order_id: n % 5 === 0 ? `=SUM(A1:A9)${n}` : `order-${n}`,
      },
    },
    'payment_method.detail.card.capture',
    !isAuthorized,
  );
  const { id } = await call('/v1/payments', request);
  if (n % 17 === 5) return;
  const operate = (operation: string, units?: number) =>
    call(`/v1/payments/${id}/${operation}`, {
      merchant_reference: `${operation}-${n}-${units}`,
      ...(units !== undefined && { amount: amount(units) }),
    });
  if (isAuthorized && n % 8 !== 0) {
    await operate('capture', 2_000 + n);
    if (n % 3 === 0) await operate('capture', 1_001);
  }
  if (isAuthorized && n % 4 === 0) await operate('cancel');
  if (n % 8 !== 0 && n % 5 < 2) await operate('refund', 999);
  if (n % 10 === 1) await operate('refund', 1_000);
}

beforeAll(async () => {
  for (let n = 0; n < PAYMENTS; n += 8) {
    await Promise.all(Array.from({ length: 8 }, (_, i) => pay(n + i)));
  }
  await call('/v1/payments', { ...cardPayment(), account_id: ACCOUNT_TWO }, headersTwo());
  // All at one time, so that only the ids order them.
  await tables.query(
    "UPDATE transaction SET succeeded_at = '2026-09-15T12:00:00Z' WHERE succeeded_at IS NOT NULL",
  );
  await tables.query("UPDATE payment SET created_at = '2026-09-15T12:00:00Z'");
}, 120_000);

async function get(
  file: string,
  query: Record<string, string> = MONTH,
  headers: Record<string, string> = headersOne(),
) {
  const response = await fetch(`${server.url}/v1/exports/${file}.csv?${new URLSearchParams(query)}`, {
    headers,
  });
  return { response, text: await response.text() };
}

async function rowsOf(...args: Parameters<typeof get>) {
  const { response, text } = await get(...args);
  expect(response.status, text).toBe(200);
  return readCsv(text);
}

/** Adds up the money that the provider's ledger moved for account one, by currency, in units of 10^-3. */
async function ledgerSums(): Promise<Record<string, bigint>> {
  const rows = await tables.query(
    `SELECT l.currency, sum(l.captured - l.refunded)::text AS units FROM sandbox.ledger l
     JOIN transaction t ON t.id::text = l.idempotency_key AND t.account_id = $1 GROUP BY l.currency`,
    [ACCOUNT_ONE],
  );
  return Object.fromEntries(
    rows.map(({ currency, units }) => {
      const digits = CURRENCIES.find(([code]) => code === currency)?.[2] ?? 2;
      return [currency, BigInt(units as string) * 10n ** BigInt(3 - digits)];
    }),
  );
}

describe('the exports', () => {
  it('the movements add up to what the provider’s ledger moved, in every currency, and so do transactions and payments', async () => {
    const ledger = await ledgerSums();
    expect(Object.keys(ledger).sort()).toEqual(['JPY', 'KWD', 'USD']);
    const movements = await rowsOf('movements');
    expect(sumsOf(movements)).toEqual(ledger);
    expect(new Set(movements.map(({ type }) => type))).toEqual(new Set(['PURCHASE', 'CAPTURE', 'REFUND']));
    expect(sumsOf(await rowsOf('transactions'))).toEqual(ledger);
    const payments = await rowsOf('payments');
    expect(payments).toHaveLength(PAYMENTS);
    expect(sumsOf(payments)).toEqual(ledger);
    const captured = sumsOf(payments, 'captured_amount');
    const refunded = sumsOf(payments, 'refunded_amount');
    for (const currency of Object.keys(ledger)) {
      expect((captured[currency] ?? 0n) - (refunded[currency] ?? 0n)).toBe(ledger[currency]);
      expect(refunded[currency]).toBeGreaterThan(0n);
    }
  });

  it('amounts have exactly the digits of their currency, and authorizations move nothing', async () => {
    const form = { USD: /^-?\d+\.\d\d$/, JPY: /^-?\d+$/, KWD: /^-?\d+\.\d{3}$/ };
    for (const row of await rowsOf('movements')) {
      expect(row.amount).toMatch(form[row.currency as keyof typeof form]);
      expect(row.amount?.startsWith('-')).toBe(row.type === 'REFUND');
    }
    const authorized = (await rowsOf('transactions')).filter(({ authorized_amount: text }) => text !== '');
    expect(authorized.length).toBeGreaterThan(PAYMENTS / 3);
    for (const { amount, type } of authorized) {
      expect(amount).toBe('');
      expect(['PURCHASE', 'CANCEL']).toContain(type);
    }
  });

  it('no cell runs as a formula, and raw cells are as they were', async () => {
    const { text } = await get('movements');
    expect(text).toContain(",'=SUM(A1:A9)");
    for (const row of readCsv(text)) {
      for (const [name, cell] of Object.entries(row))
        if (name !== 'amount') expect(cell).not.toMatch(/^[=+\-@]/);
    }
    expect((await get('movements', { ...MONTH, raw: 'true' })).text).toContain(',=SUM(A1:A9)');
  });

  it('a month that is over gives the same bytes again, whatever became of its payments', async () => {
    const before = await get('movements', { ...MONTH, zone: 'America/Bogota' });
    expect(before.response.headers.get('content-disposition')).toBe(
      'attachment; filename="movements-2026-09-01-2026-10-01-America-Bogota.csv"',
    );
    const [refund] = await tables.query(
      "SELECT id, payment_id, amount_minor_units AS units, currency FROM transaction WHERE type = 'REFUND' AND status = 'SUCCEEDED' LIMIT 1",
    );
    // The refund failed in November, and was made again with another amount.
    await tables.query(
      `INSERT INTO movement_correction (account_id, id, transaction_id, number, kind, amount_minor_units, currency, occurred_at)
       VALUES ($1, $2, $4, 1, 'UNDONE', $5, $6, '2026-11-02T00:00:00Z'), ($1, $3, $4, 2, 'REDONE', -7, $6, '2026-11-03T00:00:00Z')`,
      [ACCOUNT_ONE, randomUUID(), randomUUID(), refund?.id, refund?.units, refund?.currency],
    );
    await tables.query('UPDATE transaction SET amount_minor_units = 7, updated_at = now() WHERE id = $1', [
      refund?.id,
    ]);
    await tables.query("UPDATE account SET name = 'Renamed' WHERE id = $1", [ACCOUNT_ONE]);
    const after = await get('movements', { ...MONTH, zone: 'America/Bogota' });
    expect(after.text).toBe(before.text);
    const november = await rowsOf('movements', { from: '2026-11-01', before: '2026-11-10' });
    expect(november.map(({ type, transaction_id: id }) => [type, id])).toEqual([
      ...[
        ['UNDONE', refund?.id],
        ['REDONE', refund?.id],
      ],
    ]);
    // Both months together are what the transaction is now.
    const [now] = await rowsOf('transactions', MONTH).then((rows) =>
      rows.filter(({ transaction_id: id }) => id === refund?.id),
    );
    const all = [...readCsv(after.text), ...november].filter(({ transaction_id: id }) => id === refund?.id);
    expect(sumsOf(all)).toEqual(sumsOf([now ?? {}]));
    await tables.query('DELETE FROM movement_correction');
    await tables.query('UPDATE transaction SET amount_minor_units = $2 WHERE id = $1', [
      refund?.id,
      refund?.units,
    ]);
  });

  it('a dispute moves money when it is taken and given back, in movements, transactions and payments alike', async () => {
    const [purchase] = await tables.query(
      "SELECT id, payment_id FROM transaction WHERE type = 'PURCHASE' AND capture AND currency = 'USD' AND status = 'SUCCEEDED' LIMIT 1",
    );
    const dispute = randomUUID();
    await tables.query(
      `INSERT INTO transaction (account_id, id, payment_id, type, parent_id, connection_id, connection_identity, status,
         amount_minor_units, currency, capture)
       VALUES ($1, $2, $3, 'CHARGEBACK', $4, 'a', 'a', 'PENDING', 500, 'USD', true)`,
      [ACCOUNT_ONE, dispute, purchase?.payment_id, purchase?.id],
    );
    await tables.query(
      `INSERT INTO movement_correction (account_id, id, transaction_id, number, kind, amount_minor_units, currency, occurred_at)
       VALUES ($1, $2, $3, 1, 'DISPUTE_WITHDRAWN', -500, 'USD', '2026-09-20T00:00:00Z')`,
      [ACCOUNT_ONE, randomUUID(), dispute],
    );
    await tables.query(
      `INSERT INTO dispute (account_id, id, payment_id, connection_id, connection_identity, stage, status, reason,
         amount_minor_units, currency, fee_minor_units, fee_currency, respond_by, sequence, opened_at, updated_at)
       VALUES ($1, $2, $3, 'a', 'a', 'CHARGEBACK', 'NEEDS_RESPONSE', 'FRAUDULENT', 500, 'USD', 1500, 'JPY',
         '2026-10-02T00:00:00Z', 1, '2026-09-20T00:00:00Z', '2026-09-20T00:00:00Z')`,
      [ACCOUNT_ONE, dispute, purchase?.payment_id],
    );
    expect(await rowsOf('disputes', { ...MONTH, dispute_status: 'NEEDS_RESPONSE' })).toMatchObject([
      {
        ...{
          dispute_id: dispute,
          payment_id: purchase?.payment_id,
          amount: '-5.00',
          attempted_amount: '5.00',
        },
        ...{
          dispute_fee: '1500',
          dispute_fee_currency: 'JPY',
          dispute_respond_by_utc: '2026-10-02T00:00:00.000Z',
        },
      },
    ]);
    expect(await rowsOf('disputes', { ...MONTH, dispute_status: 'WON' })).toEqual([]);
    const ledger = await ledgerSums();
    const disputed = { ...ledger, USD: (ledger.USD ?? 0n) - 5_000n };
    for (const file of ['movements', 'transactions', 'payments'])
      expect(sumsOf(await rowsOf(file))).toEqual(disputed);
    const [taken] = await rowsOf('movements', { ...MONTH, type: 'DISPUTE_WITHDRAWN' });
    expect(taken).toMatchObject({
      amount: '-5.00',
      transaction_id: dispute,
      payment_id: purchase?.payment_id,
    });
    await tables.query('DELETE FROM dispute');
    await tables.query('DELETE FROM movement_correction');
    await tables.query('DELETE FROM transaction WHERE id = $1', [dispute]);
  });

  it('filters keep only the rows with their values', async () => {
    const refunds = await rowsOf('movements', { ...MONTH, type: 'REFUND', currency: 'JPY' });
    expect(refunds.length).toBeGreaterThan(3);
    for (const { type, currency } of refunds) expect([type, currency]).toEqual(['REFUND', 'JPY']);
    const declined = await rowsOf('payments', { ...MONTH, status: 'DECLINED' });
    expect(declined).toHaveLength([...Array(PAYMENTS).keys()].filter((n) => n % 17 === 5).length);
  });

  it('an account exports its own; an operator any, or all', async () => {
    for (const row of await rowsOf('movements')) expect(row.account_id).toBe(ACCOUNT_ONE);
    expect((await get('movements', { ...MONTH, account_id: ACCOUNT_TWO })).response.status).toBe(403);
    expect(await rowsOf('movements', { ...MONTH, account_id: ACCOUNT_TWO }, OPERATOR)).toHaveLength(1);
    const all = await rowsOf('movements', MONTH, READER);
    expect(new Set(all.map(({ account_id: id }) => id))).toEqual(new Set([ACCOUNT_ONE, ACCOUNT_TWO]));
    const unknown = await get('movements', { ...MONTH, account_id: randomUUID() }, OPERATOR);
    expect([unknown.response.status, unknown.text]).toEqual([
      400,
      expect.stringContaining('account_id: is unknown'),
    ]);
  });

  it('only a secret key or an operator who may act gets payers, and it is audited', async () => {
    const { text } = await get('payments');
    expect(text).not.toMatch(/payer_|JORDAN/);
    expect((await get('payments', { ...MONTH, include: 'payer' }, READER)).response.status).toBe(403);
    const [row] = await rowsOf('payments', { ...MONTH, include: 'payer', currency: 'KWD' }, OPERATOR);
    expect(Object.keys(row ?? {}).at(-1)).toBe('payer_document_number');
    const { 'public-api-key': publicKey = '' } = headersOne();
    expect((await get('payments', MONTH, { 'public-api-key': publicKey })).response.status).toBe(401);
    expect((await get('payments', MONTH, { 'operator-key': 'wrong' })).response.status).toBe(401);
    const [begun] = await tables.query(
      "SELECT actor FROM audit_log WHERE detail = 'currency=KWD include=payer'",
    );
    expect(begun?.actor).toMatch(/^operator-[0-9a-f]{8} from /);
  });

  it('the audit log has the filter, the rows and the sums of a file', async () => {
    await tables.query('DELETE FROM audit_log');
    const rows = await rowsOf('movements', { ...MONTH, currency: 'JPY' });
    const units = rows.reduce((sum, { amount = '' }) => sum + Number(amount), 0);
    const entries = await tables.query(
      'SELECT account_id, actor, action, subject, detail FROM audit_log ORDER BY id',
    );
    const own = { account_id: ACCOUNT_ONE, subject: 'movements-2026-09-01-2026-10-01-UTC.csv' };
    expect(entries).toEqual([
      {
        ...own,
        action: 'export',
        detail: 'currency=JPY',
        actor: expect.stringContaining('the account’s key from '),
      },
      { ...own, action: 'exported', detail: `${rows.length} rows, JPY ${units}`, actor: expect.anything() },
    ]);
  });

  it('a period that is not over ends half a minute ago, as its name says, and one that has yet to begin is refused', async () => {
    const from = new Date(Date.now() - 86_400_000).toISOString().slice(0, 10);
    const before = new Date(Date.now() + 86_400_000 * 2).toISOString().slice(0, 10);
    await call('/v1/payments', cardPayment());
    const { response, text } = await get('movements', { from, before });
    expect(readCsv(text)).toEqual([]);
    const [, until = ''] =
      /-(\d{4}-\d\d-\d\dT\d{6})-UTC\.csv/.exec(response.headers.get('content-disposition') ?? '') ?? [];
    const untilMs = Date.parse(until.replace(/T(..)(..)(..)$/, 'T$1:$2:$3Z'));
    expect(Math.abs(Date.now() - 30_000 - untilMs)).toBeLessThan(10_000);
    const later = await get('movements', { from: before, before: '2999-01-01', zone: 'UTC' });
    expect(later.response.status).toBe(400);
    const soon = new Date(Date.now() + 86_400_000 * 20).toISOString().slice(0, 10);
    const future = await get('movements', { from: before, before: soon });
    expect([future.response.status, future.text]).toEqual([400, expect.stringContaining('has yet to begin')]);
  });

  it('a wrong parameter is refused by name before anything is audited, and other methods are refused', async () => {
    await tables.query('DELETE FROM audit_log');
    const { response, text } = await get('movements', { from: '2026-09-01', to: '2026-09-30' });
    expect([response.status, JSON.parse(text).code]).toEqual([400, 'INVALID_PARAMETERS']);
    expect(JSON.parse(text).errors[0]).toMatchObject({
      field: 'to',
      message: expect.stringContaining('use before'),
    });
    expect(await tables.query('SELECT FROM audit_log')).toHaveLength(0);
    const head = await fetch(`${server.url}/v1/exports/movements.csv?month=2026-09`, {
      method: 'HEAD',
      headers: headersOne(),
    });
    expect(head.status).toBe(405);
  });
});
