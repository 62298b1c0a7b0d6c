import type { ProviderConnection } from '#src/connectors/connector.ts';
import { ServiceError } from '#src/service-error.ts';
import { openConnection } from './live-catalogue.ts';
import type { PreparedPayment } from './prepare-payment.ts';

/**
 * Payments that may be on their way to one connection at once: below what its HTTP client lets wait (http-client.ts), so
 * that a payment which is claimed is sent, and below MAX_IN_FLIGHT, so that a provider which hangs leaves room for others.
 */
export const MAX_ON_THEIR_WAY = 448;

/** Of this process, by their connection. */
const onTheirWay = new WeakMap<ProviderConnection, number>();

/**
 * Takes a payment's place on the way to its first connection, before its key is claimed. One that can go on to another
 * connection is let through in any case.
 *
 * @returns gives the place back, once the attempts are over or the payment was not claimed.
 * @throws ServiceError SERVICE_UNAVAILABLE when too many payments wait for the provider.
 */
export function setOut({ catalogue, chosen, claim }: PreparedPayment): () => void {
  const connection = openConnection(catalogue, claim.connectionId);
  const others = onTheirWay.get(connection) ?? 0;
  const canGoOn = chosen.targets.length > 1 && chosen.maxAttempts > 1;
  if (others >= MAX_ON_THEIR_WAY && !canGoOn) {
    const message = 'too many payments wait for their provider; nothing was sent; retry later';
    // Jittered, as in api/admission.ts.
    throw new ServiceError('SERVICE_UNAVAILABLE', message, {
      retryAfterS: 1 + Math.floor(Math.random() * 3),
    });
  }
  onTheirWay.set(connection, others + 1);
  return () => onTheirWay.set(connection, (onTheirWay.get(connection) ?? 1) - 1);
}
