import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { findOperation, findOperationByKey } from '#src/store/operation-keys.ts';
import { claimOperation, finishOperation, type OperationClaim } from '#src/store/operations.ts';
import { addBystanders } from '../support/bystanders.ts';
import { approvedPayment, operationClaimOf } from '../support/operation-claims.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction' });

/** Claims an operation on a payment of its own, whose record bears a name. */
async function claimed(name: string, changes: Partial<OperationClaim> = {}): Promise<OperationClaim> {
  const texts = { record: Buffer.from(name), requestHash: Buffer.from(`hash of ${name}`) };
  const claim = operationClaimOf(await approvedPayment(database, tables), { ...texts, ...changes });
  await claimOperation(database, claim);
  return claim;
}

const holderOf = ({ paymentId, requestHash, requestShape, record }: OperationClaim) => ({
  ...{ paymentId, requestHash, requestShape, record },
  answer: undefined,
});
const byKey = ({ method, idempotencyKey = '' }: OperationClaim, accountId = ACCOUNT_ONE) =>
  findOperationByKey(database, accountId, method, idempotencyKey);
const byId = ({ transactionId }: OperationClaim, accountId = ACCOUNT_ONE) =>
  findOperation(database, accountId, transactionId);

describe('an operation', () => {
  it('is found by its key within its method and account, or by its id, with its own payment', async () => {
    const capture = await claimed('capture', { method: 'CapturePayment', idempotencyKey: 'one' });
    const refund = await claimed('refund', { method: 'RefundPayment', idempotencyKey: 'one' });
    const second = await claimed('second', { method: 'CapturePayment', idempotencyKey: 'two' });
    const { otherAccount } = await addBystanders(tables, capture.paymentId);
    await tables.query("UPDATE payment SET record = 'of the other account' WHERE account_id = $1", [
      otherAccount,
    ]);
    for (const claim of [capture, refund, second]) {
      expect(await byKey(claim)).toEqual(holderOf(claim));
      expect(await byId(claim)).toEqual(holderOf(claim));
    }
    // The other account has the same ids and keys, so one that took any account's row would be wrong about either.
    const twin = { ...holderOf(capture), record: Buffer.from('of the other account') };
    expect(await byKey(capture, otherAccount)).toEqual(twin);
    expect(await byId(capture, otherAccount)).toEqual(twin);
  });

  it('is not found by what only resembles its key or its id', async () => {
    const claim = await claimed('capture', { idempotencyKey: 'one' });
    for (const changes of [{ idempotencyKey: 'two' }, { method: 'CancelPayment' }]) {
      expect(await byKey({ ...claim, ...changes })).toBeUndefined();
    }
    expect(await byKey(claim, randomUUID())).toBeUndefined();
    expect(await byId(claim, randomUUID())).toBeUndefined();
    expect(await byId({ ...claim, transactionId: randomUUID() })).toBeUndefined();
  });

  it('that was answered is found with its response and the record of then, however the payment moves on', async () => {
    const claim = await claimed('capture');
    await finishOperation(database, {
      ...{ accountId: ACCOUNT_ONE, paymentId: claim.paymentId, transactionId: claim.transactionId },
      ...{ fence: 0, version: 1, status: 'SUCCEEDED', record: Buffer.from('answered') },
      ...{ transactionStatus: 'SUCCEEDED', reference: undefined, response: Buffer.from('response') },
      ...{ lookUpInS: undefined, capturedMinorUnits: 575n, refundedMinorUnits: 0n, isReleased: false },
      event: '',
    });
    await tables.query("UPDATE payment SET record = 'moved on'");
    const answered = { ...holderOf(claim), record: Buffer.from('answered'), answer: Buffer.from('response') };
    expect(await byKey(claim)).toEqual(answered);
    expect(await byId(claim)).toEqual(answered);
  });
});
