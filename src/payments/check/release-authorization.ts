import { createHash } from 'node:crypto';
import type { LookUp } from '#src/connectors/connector.ts';
import type { LeasedConnection } from '#src/connectors/within-lease.ts';
import { targetOf } from '../model/state.ts';
import type { Found } from './found-transaction.ts';

/** Result of a release. 'unknown': the provider must be queried again. */
export type Release = 'released' | 'refused' | 'unknown';

const DESCRIPTION = 'The term of the authorization is over';

/**
 * Asks the provider to release the rest of an authorization whose term is over. Every call uses the same key, so it can
 * be repeated safely until the provider answers.
 *
 * @param query the look-up of the authorization itself.
 * @returns 'released' once nothing is held.
 */
export async function releaseAuthorization(
  { cancel, lookUp }: LeasedConnection,
  { payment, transaction }: Found,
  query: LookUp,
): Promise<Release> {
  if (!cancel || !lookUp) return 'refused';
  const transactionId = releaseId(transaction.id);
  const { currency } = transaction;
  const money = { minorUnits: transaction.minorUnits - payment.capturedMinorUnits, currency };
  const authorization = targetOf(transaction);
  const facts = {
    merchantReference: `reference-${transactionId}`,
    description: DESCRIPTION,
    reason: undefined,
    payment: authorization,
    target: authorization,
  };
  const released = await cancel({ ...facts, transactionId, money, isWhole: true });
  if (released.kind === 'approved') return 'released';
  // The release may have succeeded even if its answer was lost or a repeat was refused, so the current report decides.
  const of = { ...facts, kind: 'cancel', claimed: [] } as const;
  const known = { reference: undefined, ageMs: 0, payerTimeLeftMs: Number.POSITIVE_INFINITY, close: false };
  const reported = await lookUp({ ...known, transactionId, money, of });
  if (reported.kind === 'approved' || (await lookUp(query)).kind === 'expired') return 'released';
  if (released.kind !== 'declined') return 'unknown';
  // For a partly captured authorization, declined means that nothing was left to release.
  return payment.capturedMinorUnits > 0n ? 'released' : 'refused';
}

/** Returns the key of an authorization's release: a version 8 UUID derived from the authorization's id. */
function releaseId(transactionId: string): string {
  const digest = createHash('sha256').update(`release ${transactionId}`).digest();
  digest.writeUInt8((digest.readUInt8(6) & 0x0f) | 0x80, 6);
  digest.writeUInt8((digest.readUInt8(8) & 0x3f) | 0x80, 8);
  return digest.toString('hex', 0, 16).replace(/^(.{8})(.{4})(.{4})(.{4})/, '$1-$2-$3-$4-');
}
