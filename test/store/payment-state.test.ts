import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { claimOperation } from '#src/store/engine/claim-operation.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { findOwnTransaction } from '#src/store/tables/own-transaction.ts';
import { findByKey } from '#src/store/tables/payment-keys.ts';
import { readPaymentState } from '#src/store/tables/payment-state.ts';
import { addBystanders } from '../support/bystanders.ts';
import {
  approvedPayment,
  changeOf,
  claimAttempt,
  OPEN,
  type OpenAttempt,
  operationClaimOf,
  recordOf,
  responseOf,
} from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { earlier } from '../support/tables.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token' });

const stateOf = async ({ paymentId }: { paymentId: string }, accountId = ACCOUNT_ONE) => {
  const state = await readPaymentState(database, accountId, paymentId);
  if (!state) throw new Error('there is no such payment');
  return state;
};
const unanswered = async (payment: { paymentId: string }) =>
  (await stateOf(payment)).transactions.map(({ awaitsResponse }) => awaitsResponse);

describe('reading the state of a payment', () => {
  it('the state of a payment has its transactions, oldest first, and no rows of other accounts', async () => {
    const base = await approvedPayment(database, tables, { vault: true });
    await tables.query(
      `UPDATE transaction SET created_at = ${earlier('created_at', '90 s')}, reference = 'theirs'`,
    );
    const claim = operationClaimOf(base);
    await claimOperation(database, claim);
    const { otherAccount } = await addBystanders(tables, base.paymentId);
    await tables.query("UPDATE payment SET record = 'of the other account' WHERE account_id = $1", [
      otherAccount,
    ]);
    const own = {
      ...{ type: 'PURCHASE', status: 'SUCCEEDED', parentId: undefined, minorUnits: 5_575n, currency: 'USD' },
      ...{ connectionId: 'scripted', connectionIdentity: 'scripted', capture: false, reference: 'theirs' },
      ...{ isFinal: false, vaultedToken: base.vaultedToken, awaitsPayer: false, awaitsResponse: false },
      ...{ methodKind: 'CARD', corrections: 0, correctedMinorUnits: 0n },
    };
    const operation = {
      ...{ type: 'CAPTURE', status: 'PENDING', parentId: base.transactionId, minorUnits: 575n },
      ...{ connectionIdentity: 'scripted account', reference: undefined, isFinal: true },
      ...{ vaultedToken: undefined, awaitsResponse: true, methodKind: undefined, payerTimeLeftMs: undefined },
    };
    const state = await stateOf(base);
    expect(state).toEqual({
      payment: {
        ...{ record: Buffer.from('claimed'), version: 2, capturedMinorUnits: 0n, refundedMinorUnits: 0n },
        ...{ isReleased: false, openOperation: claim.transactionId },
      },
      transactions: [
        {
          ...{ ...own, id: base.transactionId, ageMs: expect.any(Number) },
          payerTimeLeftMs: expect.any(Number),
          sinceSuccessMs: expect.any(Number),
          sinceReportMs: expect.any(Number),
        },
        {
          ...{ ...own, ...operation, id: claim.transactionId },
          ...{ ageMs: expect.any(Number), sinceReportMs: expect.any(Number) },
        },
      ],
    });
    const [first, second] = state.transactions.map(({ ageMs }) => ageMs / 1000);
    expect(first).toBeGreaterThanOrEqual(90);
    expect(first).toBeLessThan(200);
    expect(second).toBeLessThan(100);
    expect((await stateOf(base, otherAccount)).payment.record).toEqual(Buffer.from('of the other account'));
    expect(await readPaymentState(database, randomUUID(), base.paymentId)).toBeUndefined();
    expect(await readPaymentState(database, ACCOUNT_ONE, randomUUID())).toBeUndefined();
  });

  it('the state of a payment contains its books and identifies the transaction that awaits its payer', async () => {
    const base = await approvedPayment(database, tables, {
      payment: 'captured_minor_units = 5000, refunded_minor_units = 700, released = true',
      base: 'awaits_payer = true',
    });
    expect(await stateOf(base)).toMatchObject({
      payment: {
        capturedMinorUnits: 5_000n,
        refundedMinorUnits: 700n,
        isReleased: true,
        openOperation: undefined,
      },
      transactions: [{ awaitsPayer: true }],
    });
  });

  it('an attempt counts as answered once its response is stored, even if its outcome is open', async () => {
    const attempt = await claimAttempt(database);
    expect(await unanswered(attempt)).toEqual([true]);
    await writeChange(database, changeOf(attempt, 'PENDING', OPEN));
    expect(await unanswered(attempt)).toEqual([false]);
  });

  it('an operation counts as answered once its response is stored, or if no call requested it', async () => {
    const claim = operationClaimOf(await approvedPayment(database, tables));
    await claimOperation(database, claim);
    expect(await unanswered(claim)).toEqual([false, true]);
    const books = { captured: 0n, refunded: 0n, isReleased: false };
    await writeChange(database, changeOf(claim, 'PENDING', { ...OPEN, version: 2, books }));
    expect(await unanswered(claim)).toEqual([false, false]);
    await tables.query('UPDATE transaction SET response = NULL, method = NULL');
    expect(await unanswered(claim)).toEqual([false, false]);
  });
});

it('the last attempt of a payment is found without its account', async () => {
  const [one, other] = [
    await claimAttempt(database),
    await claimAttempt(database, { connectionId: 'second' }),
  ];
  const [second, refund] = [randomUUID(), randomUUID()];
  const insert = `INSERT INTO transaction (id, account_id, payment_id, parent_id, connection_id, connection_identity, status,
      amount_minor_units, currency, capture, created_at)
    SELECT $1, account_id, payment_id, $2, 'second', 'second', 'PENDING', 1, 'USD', true, created_at + interval '1 s'
    FROM transaction WHERE id = $3`;
  await tables.query(insert, [second, null, one.transactionId]);
  await tables.query(insert, [refund, second, second]);
  expect(await findOwnTransaction(database, one.paymentId)).toEqual({
    ...{ transactionId: second, accountId: ACCOUNT_ONE, connectionId: 'second', isReleased: false },
  });
  await tables.query('UPDATE payment SET released = true WHERE id = $1', [other.paymentId]);
  expect(await findOwnTransaction(database, other.paymentId)).toMatchObject({
    ...{ transactionId: other.transactionId, isReleased: true },
  });
  expect(await findOwnTransaction(database, randomUUID())).toBeUndefined();
});

it('an idempotency key is found, with its payment, only in its own account', async () => {
  const [one, two] = [await claimAttempt(database), await claimAttempt(database)];
  await writeChange(database, changeOf(one, 'ONE'));
  const { otherAccount } = await addBystanders(tables, one.paymentId);
  await tables.query("UPDATE payment SET response = 'of the other account' WHERE account_id = $1", [
    otherAccount,
  ]);
  const find = ({ idempotencyKey }: OpenAttempt, account = ACCOUNT_ONE) =>
    findByKey(database, account, idempotencyKey);
  expect(await find(one)).toEqual({
    ...{ paymentId: one.paymentId, requestHash: Buffer.alloc(32), requestShape: Buffer.alloc(16) },
    ...{ record: recordOf('ONE'), response: responseOf('ONE') },
  });
  expect(await find(two)).toMatchObject({ paymentId: two.paymentId, response: undefined });
  expect(await find(one, otherAccount)).toMatchObject({ response: Buffer.from('of the other account') });
  expect(await find({ ...one, idempotencyKey: 'another key' })).toBeUndefined();
  expect(await find(two, otherAccount)).toBeUndefined();
});
