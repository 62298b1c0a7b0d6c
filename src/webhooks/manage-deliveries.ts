import { invalidField, type ServiceError, unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  getDelivery,
  listDeliveries,
  redeliver,
  redeliverFailed,
  type StoredDelivery,
} from '#src/store/tables/deliveries.ts';
import { insertTestDelivery } from '#src/store/tables/outbox.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type ManageDeps, requireActive, requireWebhook } from './manage-webhooks.ts';

const PAGE_SIZE = 50;
/** Maximum number of deliveries that one call makes due, so that its statement does not take too long. */
const MAX_REDELIVERED = 10_000;

/** A page of deliveries. */
export type DeliveriesPage = { readonly deliveries: StoredDelivery[]; readonly nextPageToken: string };

/**
 * Lists a webhook's deliveries, newest first. New deliveries do not shift later pages.
 *
 * @throws ServiceError WEBHOOK_NOT_FOUND; INVALID_PARAMETERS for a malformed page token.
 */
export async function deliveriesPage(
  database: Database,
  accountId: string,
  page: { readonly webhookId: string; readonly pageSize: number; readonly pageToken: string },
): Promise<DeliveriesPage> {
  const { webhookId, pageToken } = page;
  if (pageToken !== '' && !isUuid(pageToken)) {
    throw invalidField('page_token', 'INVALID_FORMAT', 'must be a next_page_token of this list');
  }
  await requireWebhook(database, accountId, webhookId);
  const size = page.pageSize || PAGE_SIZE;
  const before = pageToken || undefined;
  // The extra row shows whether there is another page.
  const found = await listDeliveries(database, { accountId, webhookId }, before, size + 1);
  const deliveries = found.slice(0, size);
  return { deliveries, nextPageToken: found.length > size ? (deliveries.at(-1)?.id ?? '') : '' };
}

/** Sends webhook.test to a webhook. @throws ServiceError WEBHOOK_NOT_FOUND, WEBHOOK_OFF. */
export async function sendTestEvent(
  deps: ManageDeps,
  accountId: string,
  webhookId: string,
): Promise<StoredDelivery> {
  requireActive(await requireWebhook(deps.database, accountId, webhookId));
  const id = await insertTestDelivery(deps.database, { accountId, webhookId });
  deps.wake({ accountId, webhookId });
  return requireDelivery(deps.database, accountId, id);
}

/**
 * Makes a delivery due again.
 *
 * @param webhookId the webhook that the delivery must belong to; "" for any.
 * @throws ServiceError DELIVERY_NOT_FOUND, WEBHOOK_OFF.
 */
export async function redeliverOne(
  deps: ManageDeps,
  accountId: string,
  id: string,
  webhookId: string,
): Promise<StoredDelivery> {
  const delivery = await requireDelivery(deps.database, accountId, id);
  if (webhookId !== '' && webhookId.toLowerCase() !== delivery.webhookId) throw deliveryNotFound();
  requireActive(await requireWebhook(deps.database, accountId, delivery.webhookId));
  const due = await redeliver(deps.database, accountId, id);
  if (!due) throw deliveryNotFound();
  deps.wake({ accountId, webhookId: due.webhookId });
  return due;
}

/** Makes failed deliveries due again. @returns their number. @throws ServiceError WEBHOOK_NOT_FOUND, WEBHOOK_OFF. */
export async function redeliverAllFailed(
  deps: ManageDeps,
  accountId: string,
  webhookId: string,
  since: Date,
): Promise<number> {
  requireActive(await requireWebhook(deps.database, accountId, webhookId));
  const webhook = { accountId, webhookId };
  const count = await redeliverFailed(deps.database, webhook, since, MAX_REDELIVERED);
  if (count > 0) deps.wake(webhook);
  return count;
}

async function requireDelivery(database: Database, accountId: string, id: string): Promise<StoredDelivery> {
  const delivery = isUuid(id) ? await getDelivery(database, accountId, id) : undefined;
  if (!delivery) throw deliveryNotFound();
  return delivery;
}

function deliveryNotFound(): ServiceError {
  return unknownId('DELIVERY_NOT_FOUND', 'id');
}
