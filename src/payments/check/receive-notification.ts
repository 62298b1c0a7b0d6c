import type { NotificationReading, ProviderConnection, RawNotification } from '#src/connectors/connector.ts';
import { ServiceError } from '#src/service-error.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import type { Handed } from './checker.ts';
import { type RouteDeps, routeNews } from './route-news.ts';

/** Dependencies of receiveNotification. */
export type ReceiveDeps = RouteDeps & {
  /** Connections that can reach a payment's provider, including those removed from the catalogue. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  readonly nowMs: () => number;
  /** Hands work to the checker. */
  readonly wake: (handed: Handed) => void;
  readonly notifications: {
    received(connectionId: string, kind: NotificationReading['kind']): void;
  };
};

const MAX_SUBJECTS = 100;
const SEND_AGAIN_AFTER_S = 60;

/**
 * Returns the function that reads a connection's notifications.
 *
 * @throws ServiceError INVALID_CREDENTIALS for a connection that accepts no notifications, as for a forged one: nobody
 * learns the ids of connections.
 */
export function requireReader(
  { connections }: Pick<ReceiveDeps, 'connections'>,
  connectionId: string,
): NonNullable<ProviderConnection['readNotification']> {
  const read = connections().get(connectionId)?.readNotification;
  if (!read) throw forged();
  return read;
}

/**
 * Verifies and stores a provider's notification, and makes the check of its transaction due, before the notification is
 * acknowledged. A connector may call its provider to verify or read the notification; only the checker looks up
 * transactions.
 *
 * @returns the body of the acknowledgement.
 * @throws ServiceError INVALID_CREDENTIALS for a forged notification, and as requireReader; SERVICE_UNAVAILABLE if the
 * notification could not be verified. Like an unavailable database, this makes the provider resend it.
 */
export async function receiveNotification(
  deps: ReceiveDeps,
  connectionId: string,
  raw: RawNotification,
): Promise<string> {
  const read = requireReader(deps, connectionId);
  const headers: Record<string, string> = {};
  const header = (name: string) => {
    const value = raw.header(name);
    if (value !== undefined) headers[name] = value;
    return value;
  };
  const reading = await read({ ...raw, header }, deps.nowMs());
  deps.notifications.received(connectionId, reading.kind);
  if (reading.kind === 'forged') throw forged();
  if (reading.kind === 'send_again') {
    const message = 'the notification cannot be verified now and was not stored; send it again later';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: SEND_AGAIN_AFTER_S });
  }
  if (reading.kind === 'about') {
    const stored = await insertNotification(deps.database, {
      connectionId,
      deduplicationKey: reading.deduplicationKey,
      subjects: reading.subjects.slice(0, MAX_SUBJECTS),
      body: raw.body,
      query: raw.query,
      headers: JSON.stringify(headers),
    });
    // News with only the provider's id is left to the checker if the search for it would query every node of a
    // distributed database. News that cannot be routed yet stays due, for the checker to find.
    for (const news of stored) {
      const isLeft = deps.database.isDistributed && news.transactionId === undefined;
      const handed = isLeft ? news : await routeNews(deps, news);
      if (handed) deps.wake(handed);
    }
  }
  return reading.acknowledgement ?? '';
}

function forged(): ServiceError {
  return new ServiceError('INVALID_CREDENTIALS', 'the signature is missing, wrong or too old');
}
