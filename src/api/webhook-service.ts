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
  type WebhookService,
} from '#gen/payments/v1/webhook_service_pb.js';
import type { Caller } from '#src/payments/create-payment.ts';
import { invalidParameters } from '#src/service-error.ts';
import type { StoredDelivery } from '#src/store/deliveries.ts';
import type { StoredWebhook } from '#src/store/webhooks.ts';
import {
  deliveriesPage,
  redeliverAllFailed,
  redeliverOne,
  sendTestEvent,
} from '#src/webhooks/manage-deliveries.ts';
import {
  addWebhook,
  changeWebhook,
  listOwnWebhooks,
  type ManageDeps,
  removeWebhook,
  requireWebhook,
  rotateSecret,
} from '#src/webhooks/manage-webhooks.ts';
import { type Validate, validate } from '#src/wire/validate.ts';
import type { ServiceHandlers } from './rest.ts';
import { accountOf } from './secret-only.ts';

/** The handlers of payments.v1.WebhookService, the same for every protocol. */
export function webhookService(deps: ManageDeps): ServiceHandlers<typeof WebhookService, Caller> {
  const { database } = deps;
  return {
    async createWebhook(request, caller) {
      const account = accountOf(caller);
      checkCreate(request);
      const { webhook, secret } = await addWebhook(deps, account, request);
      return { message: webhookMessage(webhook, secret), created: `/v1/webhooks/${webhook.id}` };
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
      checkUpdate(request);
      const { url, description, active } = request;
      const events = request.events.length > 0 ? request.events : undefined;
      const change = { url, description, active, events };
      return { message: webhookMessage(await changeWebhook(deps, account, request.id, change)) };
    },
    async deleteWebhook({ id }, caller) {
      await removeWebhook(database, accountOf(caller), id);
      return { message: create(EmptySchema) };
    },
    async rotateWebhookSecret({ id }, caller) {
      const { webhook, secret } = await rotateSecret(deps, accountOf(caller), id);
      return { message: webhookMessage(webhook, secret) };
    },
    async testWebhook({ id }, caller) {
      return { message: deliveryMessage(await sendTestEvent(deps, accountOf(caller), id)) };
    },
    async listDeliveries(request, caller) {
      const account = accountOf(caller);
      checkList(request);
      const { deliveries, nextPageToken } = await deliveriesPage(database, account, request);
      const messages = deliveries.map(deliveryMessage);
      return { message: create(ListDeliveriesResponseSchema, { deliveries: messages, nextPageToken }) };
    },
    async redeliverDelivery({ id, webhookId }, caller) {
      return { message: deliveryMessage(await redeliverOne(deps, accountOf(caller), id, webhookId)) };
    },
    async redeliverFailed(request, caller) {
      const account = accountOf(caller);
      checkRedeliver(request);
      const since = timestampDate(request.since as Timestamp);
      const redelivered = await redeliverAllFailed(deps, account, request.webhookId, since);
      return { message: create(RedeliverFailedResponseSchema, { redelivered }) };
    },
  };
}

const checkCreate = checked(CreateWebhookRequestSchema);
const checkUpdate = checked(UpdateWebhookRequestSchema);
const checkList = checked(ListDeliveriesRequestSchema);
const checkRedeliver = checked(RedeliverFailedRequestSchema);

/** Holds a request against the rules in its .proto. The check throws ServiceError INVALID_PARAMETERS. */
function checked<Desc extends DescMessage>(schema: Desc): (request: MessageShape<Desc>) => void {
  const rules: Validate<MessageShape<Desc>> = validate(schema);
  return (request) => {
    const faults = rules(request);
    if (faults.length > 0) throw invalidParameters(faults);
  };
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
    ...timestamps({
      previousSecretUntil: webhook.previousSecretUntil,
      failingSince: webhook.failingSince,
      createdAt: webhook.createdAt,
      updatedAt: webhook.updatedAt,
    }),
  });
}

const NO_PAYMENT = '00000000-0000-0000-0000-000000000000';

function deliveryMessage(delivery: StoredDelivery): Delivery {
  return create(DeliverySchema, {
    id: delivery.id,
    webhookId: delivery.webhookId,
    eventId: delivery.eventId,
    typeEvent: delivery.type,
    paymentId: delivery.paymentId === NO_PAYMENT ? '' : delivery.paymentId,
    status: Delivery_Status[delivery.status as keyof typeof Delivery_Status],
    attempts: delivery.attempts,
    ...(delivery.responseStatus !== undefined && { responseStatus: delivery.responseStatus }),
    error: delivery.error ?? '',
    ...timestamps({
      nextAttemptAt: delivery.dueAt,
      createdAt: delivery.createdAt,
      deliveredAt: delivery.deliveredAt,
    }),
  });
}

/** The times that there are. */
function timestamps<Name extends string>(
  times: Readonly<Record<Name, Date | undefined>>,
): Partial<Record<Name, Timestamp>> {
  const present = Object.entries<Date | undefined>(times).flatMap(([name, time]) =>
    time ? [[name, timestampFromDate(time)]] : [],
  );
  return Object.fromEntries(present);
}
