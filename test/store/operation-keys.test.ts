import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { claimOperation, type OperationClaim } from '#src/store/engine/claim-operation.ts';
import { writeChange } from '#src/store/engine/grouped-writes.ts';
import { findOperation, findOperationByKey } from '#src/store/tables/operation-keys.ts';
import { addBystanders } from '../support/bystanders.ts';
import { approvedPayment, changeOf, operationClaimOf } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction' });

/** Claims an operation on a separate payment. The record contains `name`. */
async function claimed(name: string, changes: Partial<OperationClaim> = {}): Promise<OperationClaim> {
  const texts = { record: Buffer.from(name), requestHash: Buffer.from(`hash of ${name}`) };
  const claim = operationClaimOf(await approvedPayment(database, tables), { ...texts, ...changes });
  await claimOperation(database, claim);
  return claim;
}

const holderOf = ({ paymentId, requestHash, requestShape, record }: OperationClaim) => ({
  ...{ paymentId, requestHash, requestShape, record },
  response: undefined,
});
/** Returns what findOperationByKey should find for a repeat of this claim, whether by idempotency key or reference. */
const keyed = (claim: OperationClaim) => ({
  ...holderOf(claim),
  ...{ idempotencyKey: claim.idempotencyKey, parentId: claim.parentId, baseId: claim.baseId },
});
const byKey = (
  { method, paymentId, idempotencyKey = '', merchantReference }: OperationClaim,
  accountId = ACCOUNT_ONE,
) => findOperationByKey(database, accountId, method, { idempotencyKey, paymentId, merchantReference });
const byId = ({ transactionId }: OperationClaim, accountId = ACCOUNT_ONE) =>
  findOperation(database, accountId, transactionId);

describe('looking up an operation', () => {
  it('an operation is found with its payment by id, or by its key within its method and account', async () => {
    const capture = await claimed('capture', { method: 'CapturePayment', idempotencyKey: 'one' });
    const refund = await claimed('refund', { method: 'RefundPayment', idempotencyKey: 'one' });
    const second = await claimed('second', { method: 'CapturePayment', idempotencyKey: 'two' });
    const { otherAccount } = await addBystanders(tables, capture.paymentId);
    await tables.query("UPDATE payment SET record = 'of the other account' WHERE account_id = $1", [
      otherAccount,
    ]);
    for (const claim of [capture, refund, second]) {
      expect(await byKey(claim)).toEqual(keyed(claim));
      expect(await byId(claim)).toEqual(holderOf(claim));
    }
    // The other account has the same ids and keys, so a look-up without the account would be wrong for one of them.
    const twin = { record: Buffer.from('of the other account') };
    expect(await byKey(capture, otherAccount)).toEqual({ ...keyed(capture), ...twin });
    expect(await byId(capture, otherAccount)).toEqual({ ...holderOf(capture), ...twin });
  });

  it('an operation is not found by a key or id of another account, payment or method', async () => {
    const claim = await claimed('capture', { idempotencyKey: 'one' });
    const other = { idempotencyKey: 'two', merchantReference: undefined };
    const resembling = [
      ...[other, { method: 'CancelPayment' }, { ...other, merchantReference: 'another' }],
      { ...other, merchantReference: 'reference', paymentId: randomUUID() },
    ];
    for (const changes of resembling) expect(await byKey({ ...claim, ...changes })).toBeUndefined();
    expect(await byKey(claim, randomUUID())).toBeUndefined();
    expect(await byId(claim, randomUUID())).toBeUndefined();
    expect(await byId({ ...claim, transactionId: randomUUID() })).toBeUndefined();
  });

  it('an operation is found with its response and the record as of that response', async () => {
    const claim = await claimed('capture');
    const [record, response] = [Buffer.from('responded'), Buffer.from('response')];
    const books = { captured: 575n, refunded: 0n, isReleased: false };
    await writeChange(
      database,
      changeOf(claim, 'SUCCEEDED', { version: 2, record, response, event: '', books }),
    );
    await tables.query("UPDATE payment SET record = 'moved on'");
    const responded = { ...holderOf(claim), record, response };
    expect(await byKey(claim)).toEqual({ ...keyed(claim), ...responded });
    expect(await byId(claim)).toEqual(responded);
  });

  it('an operation is found by its reference, unless another operation has the key', async () => {
    const first = await claimed('first', { idempotencyKey: 'one', merchantReference: 'r-1' });
    const second = await claimed('second', { idempotencyKey: 'two', merchantReference: 'r-2' });
    expect(await byKey({ ...first, idempotencyKey: 'three' })).toEqual(keyed(first));
    expect(await byKey({ ...first, idempotencyKey: 'two' })).toEqual(keyed(second));
  });

  it('a refund of a capture is found with the payment’s own transaction', async () => {
    const capture = await claimed('capture');
    await tables.query("UPDATE transaction SET status = 'SUCCEEDED' WHERE id = $1", [capture.transactionId]);
    const refund = await claimed('refund');
    await tables.query('UPDATE transaction SET parent_id = $1, payment_id = $2 WHERE id = $3', [
      capture.transactionId,
      capture.paymentId,
      refund.transactionId,
    ]);
    expect(await byKey({ ...refund, merchantReference: undefined })).toMatchObject({
      ...{ baseId: capture.baseId, parentId: capture.transactionId },
    });
  });
});
