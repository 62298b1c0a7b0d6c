import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { withinLease } from '#src/connectors/guards/within-lease.ts';
import type { ProviderConnection, SignedOutcome } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkTransaction } from '#src/payments/check/check-transaction.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { type LeasedCheck, takeDue } from '#src/store/engine/checks.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import type { Behaviour } from './ledger-provider.ts';
import { idOf, onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });

const providerData = create(ProviderDataSchema);
const DECLINED: Outcome = { kind: 'declined', iso8583Code: '05', advice: 'NONE', providerData };

it.each<[string, Behaviour, { capture: boolean }, Outcome]>([
  ['end of an authorization', 'does it', { capture: false }, { kind: 'expired', providerData }],
  ['outcome after a payer was sent away', 'sends the payer away', { capture: true }, DECLINED],
  ['outcome after a lost answer', 'never hears of it', { capture: true }, DECLINED],
])(
  'writing the signed %s does not delay a shutdown while the database is down',
  async (_what, behaviour, options, outcome) => {
    payments.provider.next.push(behaviour);
    const payment = await payments.pay(options);
    const transactionId = idOf(payment);
    const signed = { outcome, minorUnits: 10_000n, currency: 'USD' };
    const connection: ProviderConnection = {
      ...payments.provider.connection,
      lookUp: undefined,
      readNotification: async () => ({
        ...{ kind: 'about', deduplicationKey: '', subjects: [{ transactionId, signed }] },
      }),
    };
    await insertNotification(payments.database, {
      ...{ connectionId: 'ledger', deduplicationKey: randomUUID(), subjects: [{ transactionId }] },
      ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
    });
    await payments.makeDue();
    const take = { limit: 1, leaseS: 60 };
    const [leased] = await takeDue(payments.database, { connectionId: 'ledger', identity: 'ledger' }, take);
    let writes = 0;
    const query: Database['query'] = async (statement, values) => {
      if (!/^write_change/.test(statement.name)) return payments.database.query(statement, values);
      writes += 1;
      throw writes === 1
        ? new DatabaseUnavailableError(new Error('refused'))
        : new Error('it was tried again');
    };
    const deps = { ...payments.deps, database: { ...payments.database, query } };
    const applied = checkTransaction(
      deps,
      withinLease(connection, Number.POSITIVE_INFINITY),
      leased as LeasedCheck,
      AbortSignal.abort(),
    );
    await expect(applied).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(writes).toBe(1);
  },
);

/** Delivers a signed approval of a charge to a provider's check. @returns its result, and any alarm. */
async function approve(payment: Payment, paidReference: string, isPaid = false): Promise<string[]> {
  const transactionId = idOf(payment);
  const codes = { authorizationCode: '', retrievalReferenceNumber: '' };
  const outcome: Outcome = { kind: 'approved', providerData, providerPaymentId: paidReference, ...codes };
  const signed = { outcome, minorUnits: 10_000n, currency: 'USD', ...(isPaid && { paidReference }) };
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: undefined,
    readNotification: async () => ({
      ...{ kind: 'about', deduplicationKey: '', subjects: [{ transactionId, signed }] },
    }),
  };
  await insertNotification(payments.database, {
    ...{ connectionId: 'ledger', deduplicationKey: randomUUID(), subjects: [{ transactionId }] },
    ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
  });
  await payments.makeDue();
  const told: string[] = [];
  await checkDue({
    ...payments.deps,
    connections: () => new Map([['ledger', connection]]),
    settled: (_connectionId, result) => told.push(result),
    checked: {
      ...payments.deps.checked,
      learned: (_about, result) => {
        if (typeof result === 'string') told.push(result);
        else if (result.kind === 'unknown' && result.alarm) told.push(result.detail);
      },
    },
  });
  return told;
}
const setReference = () => payments.tables.query("UPDATE transaction SET provider_payment_id = 'ours'");

it('the first signed report of an unknown outcome decides which charge is the payment', async () => {
  payments.provider.next.push('does it, unanswered');
  const payment = await payments.pay();
  await setReference();
  expect(await approve(payment, 'theirs')).toEqual(['applied']);
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  const [row] = await payments.tables.query('SELECT provider_payment_id FROM transaction');
  expect(row).toEqual({ provider_payment_id: 'theirs' });
});

it('a signed approval of another charge than the approved one raises an alarm and changes nothing', async () => {
  const payment = await payments.pay();
  await setReference();
  expect(await approve(payment, 'theirs')).toEqual([
    'alarm: charged twice: ours is recorded, and the provider also approved theirs',
    'unchanged',
  ]);
  const [row] = await payments.tables.query('SELECT provider_payment_id AS id FROM transaction');
  expect(row).toEqual({ id: 'ours' });
});

it('a signed approval of another charge does not end a payment that waits for its payer', async () => {
  payments.provider.next.push('sends the payer away');
  const payment = await payments.pay();
  await setReference();
  expect(await approve(payment, 'theirs', true)).toEqual(['mismatch', 'unchanged']);
  expect(await payments.stateOf(payment)).toBe('PENDING/WAITING_ADDITIONAL_STEP');
  expect(await approve(payment, 'ours')).toEqual(['applied']);
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
});

it('a check that dies between two signed reports is repeated within seconds, and the second report counts', async () => {
  payments.provider.next.push('does it, unanswered');
  const payment = await payments.pay();
  const transactionId = idOf(payment);
  const codes = { authorizationCode: '', retrievalReferenceNumber: '' };
  const approved = (providerPaymentId: string): Outcome => ({
    ...{ kind: 'approved', providerData, providerPaymentId, ...codes },
  });
  const signed: Readonly<Record<string, SignedOutcome>> = {
    paid: { outcome: approved('charge'), minorUnits: 10_000n, currency: 'USD' },
    refunded: { outcome: approved('refund'), minorUnits: 4_000n, currency: 'USD', operation: 'REFUND' },
  };
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: undefined,
    readNotification: async ({ body }) => ({
      ...{ kind: 'about', deduplicationKey: '' },
      subjects: [{ transactionId, signed: signed[Buffer.from(body).toString()] as SignedOutcome }],
    }),
  };
  for (const name of Object.keys(signed)) {
    await insertNotification(payments.database, {
      ...{ connectionId: 'ledger', deduplicationKey: name, subjects: [{ transactionId }] },
      ...{ body: Buffer.from(name), query: '', headers: '{}' },
    });
  }
  const query: Database['query'] = async (statement, values) => {
    if (statement.name === 'settle_news') throw new DatabaseUnavailableError(new Error('refused'));
    return payments.database.query(statement, values);
  };
  const deps = { ...payments.deps, connections: () => new Map([['ledger', connection]]) };
  await payments.makeDue();
  const failures: unknown[] = [];
  const checked = { ...deps.checked, failed: (error: unknown) => failures.push(error) };
  await checkDue({ ...deps, checked, database: { ...payments.database, query } });
  expect(failures).toHaveLength(1);
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  const dueInS = 'SELECT extract(epoch FROM check_at - now())::float8 AS in_s FROM transaction WHERE id = $1';
  const [row] = await payments.tables.query(dueInS, [transactionId]);
  expect(row?.in_s).toBeGreaterThan(0);
  expect(row?.in_s).toBeLessThanOrEqual(10);

  await payments.makeDue();
  await checkDue(deps);
  expect(await payments.stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
  const open = 'SELECT 1 FROM notification WHERE settled_at IS NULL';
  expect(await payments.tables.query(open)).toEqual([]);
  // Nothing more is expected, and no check is left.
  expect(await payments.tables.query(dueInS, [transactionId])).toEqual([{ in_s: null }]);
});
