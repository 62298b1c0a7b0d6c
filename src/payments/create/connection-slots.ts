import type { ProviderConnection } from '#src/connectors/connector.ts';
import { overloadErrors } from '#src/service-error.ts';
import { openConnection } from './live-catalogue.ts';
import type { PreparedPayment } from './prepare-payment.ts';

/**
 * Limit on the concurrent payments at one connection: fewer than its HTTP client lets wait (http-client.ts), so that
 * every claimed payment is sent, and fewer than MAX_IN_FLIGHT, so that a provider that hangs leaves room for others.
 */
export const MAX_CONNECTION_SLOTS = 448;

const tooMany = overloadErrors('too many payments wait for their provider; nothing was sent; retry later');

/** Connection slots that this process has acquired, by connection. */
const acquired = new WeakMap<ProviderConnection, number>();

/**
 * Acquires a slot at a payment's first connection, before its key is claimed. A payment that can fail over to another
 * connection always gets a slot.
 *
 * @returns a function that releases the slot, to call once the attempts are over or if the payment was not claimed.
 * @throws OverloadError if too many payments wait for the provider.
 */
export function acquireSlot({ catalogue, chosen, claim }: PreparedPayment): () => void {
  const connection = openConnection(catalogue, claim.connectionId);
  const others = acquired.get(connection) ?? 0;
  const canFailOver = chosen.targets.length > 1 && chosen.maxAttempts > 1;
  if (others >= MAX_CONNECTION_SLOTS && !canFailOver) throw tooMany();
  acquired.set(connection, others + 1);
  return () => acquired.set(connection, (acquired.get(connection) ?? 1) - 1);
}
