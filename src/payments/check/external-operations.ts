import { randomUUIDv7 } from 'node:crypto';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { DueFollowUp } from '#src/store/engine/follow-ups.ts';
import { apply } from '../model/apply.ts';
import type { ExternalOperation } from '../model/external.ts';
import type { TransactionInState } from '../model/state.ts';
import type { FinishDeps } from './finish-payment.ts';
import { type ExternalDeps, writeExternal } from './write-external.ts';

type RecordDeps = ExternalDeps &
  Pick<FinishDeps, 'now'> & {
    readonly recovery: {
      followedUp(about: Pick<DueFollowUp, 'transactionId' | 'connectionId'>, result: 'mismatch'): void;
    };
  };

/**
 * Records a capture or a refund that was made at the provider itself, as one of ours that succeeded. What the payment
 * does not allow changes nothing, and is an alarm: a person has to look.
 *
 * @param before the payment as it was before its provider was asked.
 * @returns 'waiting' while the payment has an operation open, which may be the very same, or has yet to be told of the
 *   capture that is refunded, or if it has changed since it was read: the provider has to be asked again.
 */
export async function recordExternal(
  deps: RecordDeps,
  { capabilities: can }: ProviderConnection,
  own: Pick<DueFollowUp, 'accountId' | 'paymentId'>,
  before: TransactionInState,
  operation: ExternalOperation,
): Promise<'applied' | 'waiting' | 'unchanged'> {
  const { id: transactionId, connectionId } = before.transaction;
  const report = { kind: 'external', transactionId, operation, newId: randomUUIDv7(), can } as const;
  const change = apply(before, report, deps.now());
  if (change === 'mismatch') deps.recovery.followedUp({ transactionId, connectionId }, change);
  if (typeof change === 'string') return change === 'waiting' ? change : 'unchanged';
  return (await writeExternal(deps, own, before.payment.version, change)) ? 'applied' : 'waiting';
}
