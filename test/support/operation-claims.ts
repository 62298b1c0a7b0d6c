import { randomUUID } from 'node:crypto';
import { newId } from '#src/new-id.ts';
import type { OperationClaim } from '#src/store/engine/claim-operation.ts';
import type { Database } from '#src/store/engine/database.ts';
import { writeChange } from '#src/store/engine/write-change.ts';
import { claimAttempt, type OpenAttempt } from './open-attempts.ts';
import { ACCOUNT_ONE } from './payment-requests.ts';
import type { Tables } from './tables.ts';

/** Makes a successful authorization of 55.75 USD. @param set sets columns of the payment or of its transaction. */
export async function approvedPayment(
  database: Database,
  tables: Tables,

  set: { payment?: string; base?: string; vault?: boolean } = {},
): Promise<OpenAttempt> {
  const attempt = await claimAttempt(database, { vault: set.vault ?? false });
  await writeChange(database, {
    accountId: ACCOUNT_ONE,
    paymentId: attempt.paymentId,
    version: 0,
    status: 'SUCCEEDED',
    record: Buffer.from('approved'),
    response: Buffer.from('response'),
    event: '',
    transaction: {
      ...{
        id: attempt.transactionId,
        status: 'SUCCEEDED',
        reference: undefined,
        providerPaymentId: undefined,
      },
      ...{ awaitsPayer: false, fence: 0, isFenced: false, checkInS: undefined },
    },
  });
  if (set.payment) await tables.query(`UPDATE payment SET ${set.payment}`);
  if (set.base) await tables.query(`UPDATE transaction SET ${set.base}`);
  return attempt;
}

/** Returns a claim for a capture of 5.75, leased for 60 s. */
export function operationClaimOf(base: OpenAttempt, changes: Partial<OperationClaim> = {}): OperationClaim {
  return {
    accountId: ACCOUNT_ONE,
    catalogueVersion: 0,
    paymentId: base.paymentId,
    version: 1,
    status: 'SUCCEEDED',
    record: Buffer.from('claimed'),
    transactionId: newId(ACCOUNT_ONE),
    type: 'CAPTURE',
    baseId: base.transactionId,
    parentId: base.transactionId,
    connectionId: 'scripted',
    connectionIdentity: 'scripted account',
    minorUnits: 575n,
    currency: 'USD',
    isFinal: true,
    leaseS: 60,
    method: 'CapturePayment',
    idempotencyKey: randomUUID(),
    requestHash: Buffer.from('hash'),
    requestShape: Buffer.from('shape'),
    merchantReference: 'reference',
    ...changes,
  };
}
