import { create, type DescMessage, type MessageShape } from '@bufbuild/protobuf';
import { EmptySchema, type Timestamp, timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  CreateWebhookRequestSchema,
  type Delivery,
  Delivery_Status,
  DeliverySchema,
  ListDeliveriesRequestSchema,
  ListDeliveriesResponseSchema,
  ListWebhooksResponseSchema,
  RedeliverFailedRequestSchema,
  RedeliverFailedResponseSchema,
  UpdateWebhookRequestSchema,
  type Webhook,
  WebhookSchema,
  WebhookService,
} from '#gen/payments/v1/webhook_service_pb.js';
import { accountOf, type Caller } from '#src/payments/caller.ts';
import { callOnce, type OnceCall, type OnceResponse, onceCallsOf } from '#src/payments/keys/call-once.ts';
import { type Database, queriesOf, type Run } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import type { StoredDelivery } from '#src/store/tables/deliveries.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';
import type { StoredWebhook } from '#src/store/tables/webhooks.ts';
import {
  deliveriesPage,
  redeliverAllFailed,
  redeliverOne,
  sendTestEvent,
} from '#src/webhooks/manage-deliveries.ts';
import {
  addWebhook,
  changeWebhook,
  currentSecret,
  listOwnWebhooks,
  type ManageDeps,
  removeWebhook,
  requireWebhook,
  rotateSecret,
  type WebhookWithSecret,
} from '#src/webhooks/manage-webhooks.ts';
import { createdResponse, onceResponse } from './customer-service.ts';
import { requireValidOf } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

const validCreate = requireValidOf(CreateWebhookRequestSchema);
const validUpdate = requireValidOf(UpdateWebhookRequestSchema);
const validList = requireValidOf(ListDeliveriesRequestSchema);
const validRedeliver = requireValidOf(RedeliverFailedRequestSchema);

const createCall = onceCallsOf(WebhookService.method.createWebhook);
const rotateCall = onceCallsOf(WebhookService.method.rotateWebhookSecret);
const testCall = onceCallsOf(WebhookService.method.testWebhook);
const redeliverCall = onceCallsOf(WebhookService.method.redeliverDelivery);
const redeliverFailedCall = onceCallsOf(WebhookService.method.redeliverFailed);

/** Dependencies of the handlers. */
export type WebhookServiceDeps = ManageDeps & { readonly requestHashKey: Uint8Array };

/** The handlers of payments.v1.WebhookService, the same for every protocol. */
export function webhookService(deps: WebhookServiceDeps): ServiceHandlers<typeof WebhookService, Caller> {
  const { database } = deps;
  return {
    async createWebhook(request, caller) {
      const account = accountOf(caller);
      validCreate(request);
      const call = createCall(deps, request, caller);
      const made = await withSecret(deps, call, (own) => addWebhook(own, account, request));
      return createdResponse(made, `/v1/webhooks/${made.message.id}`);
    },
    async listWebhooks(_request, caller) {
      const webhooks = await listOwnWebhooks(database, accountOf(caller));
      const messages = webhooks.map((webhook) => webhookMessage(webhook));
      return { message: create(ListWebhooksResponseSchema, { webhooks: messages }) };
    },
    async getWebhook({ id }, caller) {
      return { message: webhookMessage(await requireWebhook(database, accountOf(caller), id)) };
    },
    async updateWebhook(request, caller) {
      const account = accountOf(caller);
      validUpdate(request);
      const { url, description, active, credentials } = request;
      const events = request.events.length > 0 ? request.events : undefined;
      const change = { url, description, active, events, credentials };
      return { message: webhookMessage(await changeWebhook(deps, account, request.id, change)) };
    },
    async deleteWebhook({ id }, caller) {
      await removeWebhook(database, accountOf(caller), id);
      return { message: create(EmptySchema) };
    },
    async rotateWebhookSecret(request, caller) {
      const account = accountOf(caller);
      const call = rotateCall(deps, request, caller);
      return onceResponse(await withSecret(deps, call, (own) => rotateSecret(own, account, request.id)));
    },
    async testWebhook(request, caller) {
      const account = accountOf(caller);
      const call = testCall(deps, request, caller);
      const sent = manageOnce(deps, call, async (own) =>
        deliveryMessage(await sendTestEvent(own, account, request.id)),
      );
      return onceResponse(await sent);
    },
    async listDeliveries(request, caller) {
      const account = accountOf(caller);
      const { deliveries, nextPageToken } = await deliveriesPage(database, account, validList(request));
      const messages = deliveries.map(deliveryMessage);
      return { message: create(ListDeliveriesResponseSchema, { deliveries: messages, nextPageToken }) };
    },
    async redeliverDelivery(request, caller) {
      const account = accountOf(caller);
      const call = redeliverCall(deps, request, caller);
      const sent = manageOnce(deps, call, async (own) =>
        deliveryMessage(await redeliverOne(own, account, request.id, request.webhookId)),
      );
      return onceResponse(await sent);
    },
    async redeliverFailed(request, caller) {
      const account = accountOf(caller);
      validRedeliver(request);
      const since = timestampDate(request.since as Timestamp);
      const call = redeliverFailedCall(deps, request, caller);
      const sent = manageOnce(deps, call, async (own) => {
        const redelivered = await redeliverAllFailed(own, account, request.webhookId, since);
        return create(RedeliverFailedResponseSchema, { redelivered });
      });
      return onceResponse(await sent);
    },
  };
}

/**
 * Creates a webhook or a secret, and returns the secret; a repeated call returns the webhook's current secret. The
 * stored response never contains it.
 */
async function withSecret(
  deps: WebhookServiceDeps,
  call: OnceCall<typeof WebhookSchema>,
  work: (deps: ManageDeps) => Promise<WebhookWithSecret>,
): Promise<OnceResponse<typeof WebhookSchema>> {
  let shown: string | undefined;
  const once = await manageOnce(deps, call, async (own) => {
    const { webhook, secret } = await work(own);
    shown = secret;
    return webhookMessage(webhook);
  });
  const secret = shown ?? (await currentSecret(deps, call.caller.accountId, once.message.id));
  return { ...once, message: { ...once.message, secret } };
}

function webhookMessage(webhook: StoredWebhook, secret = ''): Webhook {
  return create(WebhookSchema, {
    id: webhook.id,
    accountId: webhook.accountId,
    url: webhook.url,
    description: webhook.description,
    events: [...webhook.events],
    active: webhook.active,
    disabledReason: webhook.disabledReason ?? '',
    secret,
    previousSecretUntil: timestampOf(webhook.previousSecretUntil),
    failingSince: timestampOf(webhook.failingSince),
    createdAt: timestampOf(webhook.createdAt),
    updatedAt: timestampOf(webhook.updatedAt),
    credentialHeaders: [...webhook.credentialHeaders],
  });
}

function deliveryMessage(delivery: StoredDelivery): Delivery {
  return create(DeliverySchema, {
    id: delivery.id,
    webhookId: delivery.webhookId,
    eventId: delivery.eventId,
    typeEvent: delivery.type,
    paymentId: delivery.paymentId === NIL_UUID ? '' : delivery.paymentId,
    status: Delivery_Status[delivery.status as keyof typeof Delivery_Status],
    attempts: delivery.attempts,
    responseStatus: delivery.responseStatus,
    error: delivery.error ?? '',
    nextAttemptAt: timestampOf(delivery.dueAt),
    createdAt: timestampOf(delivery.createdAt),
    deliveredAt: timestampOf(delivery.deliveredAt),
  });
}

function timestampOf(time: Date | undefined): Timestamp | undefined {
  return time && timestampFromDate(time);
}

/**
 * Changes webhooks or deliveries, in one transaction with the call's idempotency key (if any), and then wakes the
 * webhooks. Without a key, a repeated call is a new call.
 *
 * @param work returns the response, which is stored for retries and must not contain a secret.
 * @throws ServiceError as `callOnce` and `work` do.
 */
async function manageOnce<Desc extends DescMessage>(
  deps: ManageDeps,
  call: OnceCall<Desc>,
  work: (deps: ManageDeps) => Promise<MessageShape<Desc>>,
): Promise<OnceResponse<Desc>> {
  const woken: WebhookName[] = [];
  const wake: ManageDeps['wake'] = (webhook) => void woken.push(webhook);
  const response = await callOnce(deps.database, call, (run) =>
    work({ ...deps, database: within(deps.database, run), wake }),
  );
  woken.forEach(deps.wake);
  return response;
}

/** Returns a database whose calls run inside the open transaction. */
function within(database: Database, run: Run): Database {
  return { ...database, ...queriesOf(run), transaction: (work) => work(run) };
}
