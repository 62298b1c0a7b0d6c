import { beforeEach, expect, it } from 'vitest';
import { type AgreedFee, readAgreedFee } from '#src/connectors/port/agreed-fee.ts';
import type { ReadSettlement } from '#src/connectors/port/settlement-line.ts';
import { readStripeSettlement } from '#src/connectors/stripe/settlement.ts';
import { ageOut } from '#src/server/age-out.ts';
import { followSettlement } from '#src/server/follow-settlement.ts';
import { importSettlement, type SettledConnection } from '#src/settlement/import-settlement.ts';
import { matchSettlement } from '#src/settlement/match-settlement.ts';
import type { SettledAccount } from '#src/settlement/settled-connection.ts';
import type { Database } from '#src/store/engine/database.ts';
import { dueSettlement } from '#src/store/tables/settlement-progress.ts';
import { csv } from '../connectors/settlement/read-lines.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({
  empties:
    'payment, transaction, settlement_file, settlement_line, settlement_match, settlement_difference, settlement_progress, settlement_coverage, audit_log',
});

const DIGITS = ACCOUNT_ONE.slice(-6);
const id = (n: number) => `01999999-aaaa-7bbb-8ccc-${String(n).padStart(6, '0')}${DIGITS}`;
const COLUMNS = [
  ...['automatic_payout_id', 'balance_transaction_id', 'created_utc', 'currency', 'gross', 'fee', 'net'],
  ...['reporting_category', 'source_id', 'payment_intent_id', 'payment_metadata[transaction_id]'],
  ...['refund_metadata[transaction_id]', 'customer_facing_amount', 'customer_facing_currency'],
];
const charge = (n: number, more: Record<string, string> = {}) => ({
  ...{ automatic_payout_id: 'po_1', balance_transaction_id: `txn_${n}`, created_utc: '2026-09-30 10:00:00' },
  ...{ currency: 'usd', gross: '12.00', fee: '0.65', net: '11.35', reporting_category: 'charge' },
  ...{ source_id: `ch_${n}`, payment_intent_id: `pi_${n}`, 'payment_metadata[transaction_id]': id(n) },
  ...{ customer_facing_amount: '12.00', customer_facing_currency: 'usd', ...more },
});
const CONNECTION: SettledConnection = {
  id: 's',
  identity: 'stripe 1',
  read: readStripeSettlement,
  currency: undefined,
};
const file = (...rows: Record<string, string>[]) => {
  const bytes = Buffer.from(csv(COLUMNS, rows));
  return {
    name: 'september.csv',
    open: () =>
      (async function* () {
        yield bytes;
      })(),
  };
};
const importRows = (...rows: Record<string, string>[]) =>
  importSettlement(database, CONNECTION, file(...rows), { actor: 'Ada' });
const ACCOUNT: SettledAccount = {
  ...{ identity: 'stripe 1', connectionIds: ['s'], windowMs: 2 * 86_400_000, agreedFees: new Map() },
};
const match = (account = ACCOUNT) => matchSettlement(database, account);

async function addTransaction(
  n: number,
  {
    payment = n,
    type = 'PURCHASE',
    amount = 1200,
    identity = 'stripe 1',
    providerId = `pi_${n}`,
    at = '',
  }: {
    payment?: number;
    type?: string;
    amount?: number;
    identity?: string;
    providerId?: string;
    at?: string;
  } = {},
): Promise<void> {
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record)
     VALUES ($1, $2, $1::uuid::text, '', '', 'SUCCEEDED', '') ON CONFLICT DO NOTHING`,
    [id(payment), ACCOUNT_ONE],
  );
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, type,
       amount_minor_units, currency, capture, provider_payment_id, succeeded_at)
     VALUES ($1, $2, $3, 's', $4, 'SUCCEEDED', $5, $6, 'USD', true, $7, $8)`,
    [id(n), id(payment), ACCOUNT_ONE, identity, type, amount, providerId, at || null],
  );
}

const stored = async () =>
  (await tables.query('SELECT line_key, result FROM settlement_line ORDER BY line_key')).map(
    ({ line_key, result }) => `${line_key} ${result}`,
  );
const matches = async () =>
  (await tables.query('SELECT line_key, transaction_id FROM settlement_match ORDER BY line_key')).map(
    ({ line_key, transaction_id }) => [line_key, transaction_id],
  );

beforeEach(async () => {
  await addTransaction(1);
  await addTransaction(2);
});

it('lines are matched by our id, or else by the provider’s, and fees and payouts expect no transaction', async () => {
  await addTransaction(3, { payment: 1, type: 'REFUND', amount: 500, providerId: 're_3' });
  expect(
    await importRows(
      charge(1),
      charge(2, { 'payment_metadata[transaction_id]': '' }),
      charge(3, {
        ...{
          reporting_category: 'refund',
          source_id: 're_3',
          payment_intent_id: 'pi_1',
          gross: '-5',
          net: '-5',
        },
        ...{ fee: '0', 'payment_metadata[transaction_id]': id(1), 'refund_metadata[transaction_id]': '' },
      }),
      charge(4, { 'payment_metadata[transaction_id]': '' }),
      charge(5, { reporting_category: 'fee' }),
    ),
  ).toMatchObject({ added: 5, repeated: 0 });
  expect(await match()).toEqual({ matched: 3, unmatched: 1, ambiguous: 0, none_expected: 1 });
  expect(await matches()).toEqual([
    ['txn_1', id(1)],
    ['txn_2', id(2)],
    ['txn_3', id(3)],
  ]);
  expect(await match()).toEqual({ matched: 0, unmatched: 0, ambiguous: 0, none_expected: 0 });
  const audited = await tables.query('SELECT action, subject, detail FROM audit_log');
  expect(audited).toEqual([
    { action: 'import-settlement', subject: 'september.csv', detail: 's: 5 new lines, 0 repeated' },
  ]);
});

it('a transaction at another account of the provider is never matched, even by our own id', async () => {
  await addTransaction(7, { identity: 'stripe 2' });
  await importRows(charge(7));
  expect(await match()).toMatchObject({ matched: 0, unmatched: 1 });
});

it('several captures of one payment with the same amount are ambiguous, and different amounts are not', async () => {
  for (const [n, amount] of [
    [11, 500],
    [12, 500],
    [13, 700],
  ] as const) {
    await addTransaction(n, { payment: 10, type: 'CAPTURE', amount, providerId: 'pi_10' });
  }
  const of = (amount: string) => ({
    ...{ payment_intent_id: 'pi_10', 'payment_metadata[transaction_id]': '', customer_facing_amount: amount },
  });
  await importRows(charge(11, of('5.00')), charge(13, of('7.00')));
  expect(await match()).toMatchObject({ matched: 1, ambiguous: 1 });
  expect(await matches()).toEqual([['txn_13', id(13)]]);
});

it('the same file, and the same line in another file, change nothing', async () => {
  await importRows(charge(1));
  await match();
  expect(await importRows(charge(1))).toBe('already imported');
  expect(await importRows(charge(1, { gross: '99.00' }), charge(2))).toMatchObject({ added: 1, repeated: 1 });
  await match();
  expect(await stored()).toEqual(['txn_1 matched', 'txn_2 matched']);
  expect(await tables.query("SELECT gross FROM settlement_line WHERE line_key = 'txn_1'")).toEqual([
    { gross: '1200' },
  ]);
  expect(await matches()).toHaveLength(2);
});

it('a file with a fault on its last line stores nothing', async () => {
  const rows = Array.from({ length: 1500 }, (_, n) => charge(n));
  await expect(importRows(...rows, charge(1501, { gross: '1.001' }))).rejects.toThrow(
    'line 1502, column gross',
  );
  expect(await stored()).toEqual([]);
  expect(await tables.query('SELECT * FROM settlement_file')).toEqual([]);
});

it('an import that was killed half-way changes nothing, keeps others out for minutes, and is then replaced', async () => {
  let isKilled = false;
  const killed: ReadSettlement = async function* (text, options) {
    yield* readStripeSettlement(text, options);
    isKilled = true;
  };
  // The process is killed after the last line: nothing after this happens, and nothing is deleted.
  const alive = () => {
    if (isKilled) throw new Error('killed');
  };
  const mortal: Database = {
    ...database,
    async query(statement, values) {
      alive();
      return database.query(statement, values);
    },
    async transaction(work) {
      alive();
      return database.transaction(work);
    },
  };
  const rows = Array.from({ length: 1000 }, (_, n) => charge(n + 1));
  await expect(
    importSettlement(mortal, { ...CONNECTION, read: killed }, file(...rows), { actor: 'Ada' }),
  ).rejects.toThrow('killed');
  expect(await stored()).toHaveLength(1000);
  expect(await match()).toMatchObject({ matched: 0, unmatched: 0 });
  await expect(importRows(charge(1))).rejects.toThrow('is under way: if it was killed, repeat in 5 minutes');
  await tables.query("UPDATE settlement_file SET seen_at = now() - interval '6 minutes'");
  await ageOut(database);
  expect(await stored()).toEqual([]);
  expect(await importRows(charge(1))).toMatchObject({ added: 1, repeated: 0 });
  expect(await match()).toMatchObject({ matched: 1 });
  expect(await stored()).toEqual(['txn_1 matched']);
});

it('a file that another provider writes, or that is no text, is refused', async () => {
  const bytes = (content: Uint8Array) => ({
    name: 'x',
    open: () =>
      (async function* () {
        yield content;
      })(),
  });
  const refused = (content: Uint8Array) =>
    importSettlement(database, CONNECTION, bytes(content), { actor: 'Ada' }).catch((error) => error.message);
  expect(await refused(Buffer.from('Type;Batch Number\nSettled;1\n'))).toMatch(
    /^line 1: the report must have the columns balance_transaction_id, created_utc or created/,
  );
  expect(await refused(Buffer.from([0xff, 0xfe, 0x41, 0x00]))).toBe('the file is not UTF-8 text');
  expect(await refused(Buffer.from(''))).toBe('line 1: the file is empty');
  expect(await refused(Buffer.from(csv(COLUMNS, [])))).toBe('the file has no line to import');
  expect(await tables.query('SELECT * FROM settlement_file')).toEqual([]);
});

const differences = async () =>
  (
    await tables.query(
      'SELECT kind, subject, detail FROM settlement_difference WHERE ended_at IS NULL ORDER BY kind, subject',
    )
  ).map(({ kind, subject, detail }) => `${kind} ${subject}: ${detail}`);

it('every planted difference is found, and nothing else', async () => {
  for (const n of [3, 4, 5, 6, 7]) await addTransaction(n);
  await tables.query("UPDATE transaction SET status = 'DECLINED' WHERE id = $1", [id(4)]);
  await addTransaction(8, { payment: 7, type: 'REFUND', amount: 500, providerId: 're_8' });
  await importRows(
    charge(1),
    charge(2, { customer_facing_amount: '11.99' }),
    charge(3, { customer_facing_currency: 'eur' }),
    charge(4),
    charge(5),
    charge(55, { 'payment_metadata[transaction_id]': id(5) }),
    charge(99),
    charge(8, { ...refund, gross: '-5', net: '-5', customer_facing_amount: '-5' }),
    charge(88, {
      ...refund,
      reporting_category: 'refund_failure',
      gross: '5',
      net: '5',
      customer_facing_amount: '5',
    }),
    charge(100, {
      reporting_category: 'payout',
      source_id: 'po_1',
      fee: '0',
      gross: '-79.00',
      net: '-79.00',
    }),
  );
  await match();
  expect(await differences()).toEqual([
    `amount_differs ${id(2)}: 11.99 USD settled, here 12.00 USD`,
    `currency_differs ${id(3)}: settled in EUR, here USD`,
    `duplicate ${id(5)}: 24.00 USD settled, here 12.00 USD`,
    'payout_unbalanced po_1 USD: its lines and the payout differ by 0.45 USD',
    `refund_reversed ${id(8)}: 0.00 USD settled, here -5.00 USD`,
    `status_differs ${id(4)}: 12.00 USD settled, here PURCHASE is DECLINED`,
    "unknown_line txn_99: a payment with the provider's id pi_99",
  ]);
  expect(await tables.query('SELECT DISTINCT connection_id FROM settlement_difference')).toEqual([
    { connection_id: 's' },
  ]);
});

const refund = {
  ...{ reporting_category: 'refund', source_id: 're_8', fee: '0', 'payment_metadata[transaction_id]': '' },
  'refund_metadata[transaction_id]': id(8),
};

it('a difference ends when a later line explains it', async () => {
  await importRows(charge(1, { customer_facing_amount: '10.00' }));
  await match();
  expect(await differences()).toHaveLength(1);
  await importRows(charge(9, { customer_facing_amount: '2.00', 'payment_metadata[transaction_id]': id(1) }));
  await match();
  expect(await differences()).toEqual([]);
});

it('a fee that was not agreed is a difference of payments that are matched from then on, until a line or another agreement explains it', async () => {
  const agreed = (more: object) =>
    readAgreedFee({
      ...{ currency: 'USD', paymentMethodType: '', percent: '2.9', fixed: '0.30', tolerance: '' },
      ...more,
    }) as AgreedFee;
  const fees = [agreed({}), agreed({ paymentMethodType: 'PIX', percent: '1', fixed: '' })];
  const judged = { ...ACCOUNT, agreedFees: new Map([['s', fees]]) };
  for (const n of [3, 4]) await addTransaction(n);
  await tables.query("UPDATE payment SET method_type = 'PIX' WHERE id = $1", [id(4)]);
  const kept = (fee: string, net: string) => ({ fee, net });
  await importRows(charge(1, kept('0.90', '11.10')));
  await match();
  expect(await differences()).toEqual([]);
  await importRows(charge(2), charge(3, kept('1.00', '11.00')), charge(4));
  await match(judged);
  expect(await differences()).toEqual([
    `fee_unexpected ${id(3)}: a fee of 1.00 USD settled on 12.00 USD, agreed 0.65 USD`,
    `fee_unexpected ${id(4)}: a fee of 0.65 USD settled on 12.00 USD, agreed 0.12 USD`,
  ]);
  const correction = (n: number, fee: string) => ({
    ...{ gross: '0.00', fee: `-${fee}`, net: fee, customer_facing_amount: '0.00' },
    'payment_metadata[transaction_id]': id(n),
  });
  await importRows(charge(31, correction(3, '0.35')), charge(11, correction(1, '0.05')));
  await match(judged);
  expect(await differences()).toEqual([
    `fee_unexpected ${id(1)}: a fee of 0.85 USD settled on 12.00 USD, agreed 0.65 USD`,
    `fee_unexpected ${id(4)}: a fee of 0.65 USD settled on 12.00 USD, agreed 0.12 USD`,
  ]);
  await match({ ...ACCOUNT, agreedFees: new Map([['s', [agreed({})]]]) });
  expect(await differences()).toEqual([expect.stringContaining(`fee_unexpected ${id(1)}`)]);
  await match();
  expect(await differences()).toEqual([]);
});

const on = (day: number) => ({ created_utc: `2026-09-${String(day).padStart(2, '0')} 10:00:00` });

it('a success beyond the provider’s window that no line settles is missing, until a later line settles it', async () => {
  // Before the first window of the reports, missing, settled, and within the window of the last line.
  for (const [n, at] of [
    [21, '2026-09-10T12:00:00Z'],
    [22, '2026-09-14T12:00:00Z'],
    [23, '2026-09-15T12:00:00Z'],
    [24, '2026-09-19T12:00:00Z'],
  ] as const) {
    await addTransaction(n, { at });
  }
  await addTransaction(25, { at: '2026-09-14T12:00:00Z', identity: 'stripe 2' });
  await addTransaction(26, { at: '2026-09-14T12:00:00Z' });
  await tables.query('UPDATE transaction SET capture = false WHERE id = $1', [id(26)]);
  await importRows(charge(1, on(10)), charge(23, on(15)), charge(2, on(20)));
  await match();
  const missing = `missing_at_provider ${id(22)}: no line settles the PURCHASE of 12.00 USD of 2026-09-14T12:00:00.000Z`;
  expect(await differences()).toEqual([missing]);
  await match();
  expect(await differences()).toEqual([missing]);
  await importRows(charge(22, on(14)));
  await match();
  expect(await differences()).toEqual([]);
});

it('reports of an earlier time make its successes comparable', async () => {
  await addTransaction(21, { at: '2026-09-05T12:00:00Z' });
  await importRows(charge(1, on(10)), charge(2, on(20)));
  await match();
  expect(await differences()).toEqual([]);
  await addTransaction(3);
  await importRows(charge(3, on(1)));
  await match();
  expect(await differences()).toEqual([expect.stringContaining(`missing_at_provider ${id(21)}`)]);
});

it('a payment that is settled after the provider’s window is late', async () => {
  await addTransaction(21, { at: '2026-09-10T10:00:00Z' });
  await addTransaction(22, { at: '2026-09-10T10:00:01Z' });
  await importRows(charge(21, on(12)), charge(22, { ...on(12), created_utc: '2026-09-12 10:00:02' }));
  await match();
  expect(await differences()).toEqual([
    `late ${id(22)}: settled at 2026-09-12T10:00:02.000Z, here succeeded at 2026-09-10T10:00:01.000Z`,
  ]);
});

it('a line of an unknown payment is matched once the payment is known, and its difference ends', async () => {
  await importRows(charge(1), charge(30));
  expect(await match()).toMatchObject({ matched: 1, unmatched: 1 });
  await addTransaction(30);
  expect(await match()).toEqual({ matched: 1, unmatched: 0, ambiguous: 0, none_expected: 0 });
  expect(await differences()).toEqual([]);
  expect(await stored()).toEqual(['txn_1 matched', 'txn_30 matched']);
  expect(await match()).toMatchObject({ matched: 0, unmatched: 0 });
});

const CATALOGUE = {
  catalogue: { connections: [{ id: 's', connector: 'stripe', agreedFees: [] }] },
  connections: new Map([['s', { identity: 'stripe 1' }]]),
};
const alarms: string[] = [];
const follow = async () => {
  alarms.length = 0;
  await followSettlement({
    database,
    openedCatalogue: () => CATALOGUE,
    onSettlementAlarm: ({ subject, connectionId, paymentId, accountId }) =>
      alarms.push([subject, connectionId, paymentId, accountId].join(' ')),
  });
  return alarms;
};

it('the service continues a matching that was interrupted, once its lease is over', async () => {
  await importRows(charge(1), charge(2));
  const leased = () => tables.query('SELECT leased_until > now() AS leased FROM settlement_progress');
  await tables.query("UPDATE settlement_progress SET leased_until = now() + interval '1 minute'");
  await follow();
  expect([await leased(), await matches()]).toEqual([[{ leased: true }], []]);
  await tables.query('UPDATE settlement_progress SET leased_until = now()');
  await follow();
  expect([await leased(), await matches()]).toEqual([
    [{ leased: false }],
    [expect.anything(), expect.anything()],
  ]);
  expect(await dueSettlement(database)).toEqual([]);
});

it('a matching that is stopped is continued, and an import that ends meanwhile is matched too', async () => {
  await importRows(charge(1));
  await matchSettlement(database, ACCOUNT, { stop: AbortSignal.abort() });
  expect(await matches()).toEqual([]);
  await tables.query('UPDATE settlement_progress SET leased_until = now()');
  expect(await dueSettlement(database)).toEqual([
    { identity: 'stripe 1', isMatchDue: true, alarms: undefined },
  ]);
  await follow();
  await importRows(charge(2));
  await follow();
  expect(await matches()).toHaveLength(2);
});

it('the alarm of a line is raised before the next lines are matched, and a failure at one account keeps no other waiting', async () => {
  await tables.query("UPDATE transaction SET status = 'DECLINED'");
  await importSettlement(database, { ...CONNECTION, id: 't', identity: 'stripe 2' }, file(charge(5)), {
    actor: 'Ada',
  });
  await importRows(charge(1));
  await importRows(charge(2));
  const order: string[] = [];
  const query: Database['query'] = async (statement, values) => {
    const { name } = statement as { name?: string };
    if (name === 'lease_settlement_progress' && values?.[1] === 'stripe 2') throw new Error('broken');
    if (name === 'set_settlement_line_results') order.push('matched');
    return database.query(statement, values);
  };
  const following = followSettlement({
    database: { ...database, query },
    openedCatalogue: () => ({
      catalogue: { connections: ['s', 't'].map((one) => ({ id: one, connector: 'stripe', agreedFees: [] })) },
      connections: new Map([
        ['s', { identity: 'stripe 1' }],
        ['t', { identity: 'stripe 2' }],
      ]),
    }),
    onSettlementAlarm: () => void order.push('alarm'),
  });
  await expect(following).rejects.toThrow('broken');
  expect(order).toEqual(['matched', 'alarm', 'matched', 'alarm']);
  expect(await stored()).toEqual(['txn_1 matched', 'txn_2 matched', 'txn_5 null']);
});

it('a payment that a command found to be settled against the record raises its alarm once, at one replica', async () => {
  await tables.query("UPDATE transaction SET status = 'DECLINED' WHERE id = $1", [id(1)]);
  await importRows(charge(1), charge(2));
  await match();
  const raised = [`${id(1)} s ${id(1)} ${ACCOUNT_ONE}`];
  expect(await follow()).toEqual(raised);
  expect(await follow()).toEqual([]);
  expect(await dueSettlement(database)).toEqual([]);
  // Another amount is another alarm; a success in the meantime is none.
  await importRows(charge(3, { 'payment_metadata[transaction_id]': id(1) }));
  await match();
  expect(await follow()).toEqual(raised);
  await importRows(charge(4, { 'payment_metadata[transaction_id]': id(1) }));
  await match();
  await tables.query("UPDATE transaction SET status = 'SUCCEEDED', amount_minor_units = 3600 WHERE id = $1", [
    id(1),
  ]);
  expect(await follow()).toEqual([]);
  expect(await differences()).toEqual([]);
});
