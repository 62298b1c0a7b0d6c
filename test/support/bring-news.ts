import { randomUUID } from 'node:crypto';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import { type RouteDeps, routeNews } from '#src/payments/check/news.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';

/** The part of a notification that concerns a transaction. */
export type Notified = {
  readonly transactionId?: string | undefined;
  readonly providerPaymentId?: string | undefined;
  readonly dispute?: Dispute | undefined;
};

/** Stores a notification about a transaction and routes it, as the service does. The default key is a fresh one. */
export async function bringNews(
  deps: RouteDeps,
  connectionId: string,
  subject: Notified,
  { deduplicationKey = randomUUID() as string, body = Buffer.alloc(0) } = {},
): Promise<void> {
  const stored = await insertNotification(deps.database, {
    ...{ connectionId, deduplicationKey, subjects: [subject], body, query: '', headers: '{}' },
  });
  for (const news of stored) await routeNews(deps, news);
}
