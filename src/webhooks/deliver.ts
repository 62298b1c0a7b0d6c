import type { LookupFunction } from 'node:net';
import { fromBinary } from '@bufbuild/protobuf';
import { DisputeEventDataSchema, DisputeSchema } from '#gen/payments/v1/dispute_service_pb.js';
import { StoredPaymentMethodSchema } from '#gen/payments/v1/payment_method_service_pb.js';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { sentIdempotencyKey } from '#src/payments/keys/key.ts';
import { decodeRecord, encodeRecord } from '#src/payments/stored-record.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  endEventlessDeliveries,
  finishDelivery,
  type LeasedDelivery,
  nextDueInS,
  takeDueDeliveries,
} from '#src/store/tables/deliveries.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';
import { closeDeliveries, type StoredWebhook, turnOffGoneWebhook } from '#src/store/tables/webhooks.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { TEST_EVENT_TYPE } from './events.ts';
import { openSigner, type SecretVault, type Sign } from './signing-secret.ts';
import { createWebhookClient, type PostResult, type WebhookClient } from './webhook-client.ts';

/** Dependencies of deliveries. */
export type DeliverDeps = {
  readonly database: Database;
  readonly vault: SecretVault;
  readonly observer: DeliveryObserver;
  readonly settings: DeliverySettings;
};

/** Settings for deliveries. */
export type DeliverySettings = {
  readonly allowPrivate: boolean;
  /** Time limit for the first byte of a receiver's response. */
  readonly timeoutMs: number;
  /** Lease of a delivery in seconds: the timeout plus time for the work around it. */
  readonly leaseS: number;
  /** Maximum number of concurrent deliveries from one replica to one webhook. */
  readonly perWebhook: number;
  /** Time for which a webhook is drained before other webhooks get their turn. */
  readonly sliceMs: number;
  /** The pauses after failed attempts, in seconds; by default RETRY_SCHEDULE_S. */
  readonly retryScheduleS?: readonly number[];
  readonly lookup?: LookupFunction;
};

/** Observer of deliveries, for metrics and logs. */
export type DeliveryObserver = {
  delivered(webhook: WebhookName, attempt: { readonly result: string; readonly seconds: number }): void;
  turnedOff(webhook: WebhookName): void;
  failed(error: unknown): void;
};

const GONE = 410;

/**
 * Sends a webhook's due deliveries until none is left or its time slice ends.
 *
 * @param stop ends the drain after the deliveries in progress.
 * @returns the seconds until the webhook should be drained again; undefined if no delivery is open.
 */
export async function drainWebhook(
  deps: DeliverDeps,
  webhook: StoredWebhook,
  stop: AbortSignal,
): Promise<number | undefined> {
  const { database, settings } = deps;
  const name = { accountId: webhook.accountId, webhookId: webhook.id };
  const take = (limit: number) => takeDueDeliveries(database, webhook, limit, settings.leaseS);
  const first = await take(settings.perWebhook);
  // A due delivery that cannot be leased may have lost its event, and would stay due forever.
  if (first.length === 0) await endEventlessDeliveries(database, name);
  else {
    const client = createWebhookClient(webhook.url, { ...settings, maxConnections: settings.perWebhook });
    const receiver = { name, url: webhook.url, client, sign: await openSignerOf(deps, webhook) };
    const endMs = performance.now() + settings.sliceMs;
    const lanes = first.map(async (delivery) => {
      for (let next: LeasedDelivery | undefined = delivery; next; ) {
        await deliver(deps, receiver, next);
        if (stop.aborted || performance.now() >= endMs) return;
        [next] = await take(1);
      }
    });
    // If a lane fails, its leased deliveries become due again when their leases expire.
    for (const lane of await Promise.allSettled(lanes)) {
      if (lane.status === 'rejected') deps.observer.failed(lane.reason);
    }
    await client.close();
  }
  return nextDueInS(database, name);
}

function openSignerOf(deps: DeliverDeps, webhook: StoredWebhook): Promise<Sign | undefined> {
  const { id, credentials } = webhook;
  return openSigner(deps.vault, id, { secrets: sealedSecrets(webhook), credentials }).catch((error) => {
    deps.observer.failed(error);
    return undefined;
  });
}

function sealedSecrets({ secret, previousSecret }: StoredWebhook): string[] {
  return previousSecret === undefined ? [secret] : [secret, previousSecret];
}

type Receiver = {
  readonly name: WebhookName;
  readonly url: string;
  readonly client: WebhookClient;
  /** undefined if the secret cannot be opened, since nothing is sent unsigned. */
  readonly sign: Sign | undefined;
};

async function deliver(
  deps: DeliverDeps,
  { name, url, client, sign }: Receiver,
  delivery: LeasedDelivery,
): Promise<void> {
  const { database, observer, settings } = deps;
  const startedMs = performance.now();
  const result = sign ? await post(client, sign, name.accountId, delivery) : NO_SECRET;
  const error = errorOf(result);
  const seconds = (performance.now() - startedMs) / 1000;
  observer.delivered(name, { result: error ?? 'DELIVERED', seconds });
  // Done before the delivery is finished: if the webhook has a new URL by now, a delivery that the old URL refused is
  // sent again.
  const isOff = result.status === GONE && (await turnOffGoneWebhook(database, name, url));
  if (isOff) observer.turnedOff(name);
  await finishDelivery(database, { accountId: name.accountId, url }, delivery, {
    responseStatus: result.status,
    error,
    retryInS: error === undefined || isOff ? undefined : retryPauseS(delivery.retry, settings.retryScheduleS),
  });
  if (isOff) await closeDeliveries(database, name);
}

const NO_SECRET = { status: undefined, error: 'SECRET_UNREADABLE' } as const;

function post(
  client: WebhookClient,
  sign: Sign,
  accountId: string,
  delivery: LeasedDelivery,
): Promise<PostResult> {
  const body = eventBody(accountId, delivery);
  const headers = sign(delivery.event.id, new Date(), body);
  return client.post({ ...headers, 'content-type': 'application/json', 'user-agent': USER_AGENT }, body);
}

const USER_AGENT = 'payments-service-webhooks/1';

/** Returns the error of a failed attempt; undefined for a 2xx status, even if the rest of the response failed. */
function errorOf(result: PostResult | typeof NO_SECRET): string | undefined {
  if (result.status === undefined) return result.error;
  return result.status >= 200 && result.status < 300 ? undefined : 'HTTP_STATUS';
}

const encodeMethod = jsonEncoder(StoredPaymentMethodSchema);
const encodePayment = jsonEncoder(PaymentSchema);
const encodeDispute = jsonEncoder(DisputeSchema);
const VERSION = 2;

/** Returns the body of a delivery, with the payment or stored method as REST renders it. */
export function eventBody(accountId: string, { event, retry }: LeasedDelivery): string {
  const head = JSON.stringify({
    id: event.id,
    type: event.type.split('.')[0],
    type_event: event.type,
    account_id: accountId,
    version: VERSION,
    retry,
    timestamp: event.createdAt.toISOString(),
    sequence: event.sequence,
  });
  return `${head.slice(0, -1)},"data":${dataOf(event)}}`;
}

function dataOf({ type, record, idempotencyKey }: LeasedDelivery['event']): string {
  if (type === TEST_EVENT_TYPE) return '{}';
  if (type.startsWith('dispute.')) return disputeData(record, idempotencyKey);
  if (!type.startsWith('enrollment.')) return `{"payment":${paymentOf(record, idempotencyKey)}}`;
  return `{"payment_method":${encodeMethod(fromBinary(StoredPaymentMethodSchema, record))}}`;
}

function disputeData(record: Uint8Array, idempotencyKey: string | null): string {
  const { dispute, payment } = fromBinary(DisputeEventDataSchema, record);
  if (!dispute || !payment) throw new Error('the event lacks its dispute or its payment');
  const shown = paymentOf(encodeRecord(payment), idempotencyKey);
  return `{"dispute":${encodeDispute(dispute)},"payment":${shown}}`;
}

/** Renders a payment with two additional members, for receivers written for other services' webhooks. */
function paymentOf(record: Uint8Array, idempotencyKey: string | null): string {
  const payment = decodeRecord(record);
  const more = JSON.stringify({
    order_id: payment.merchantOrderId,
    idempotency_key: sentIdempotencyKey(idempotencyKey ?? ''),
  });
  return `${encodePayment(payment).slice(0, -1)},${more.slice(1)}`;
}

/** The pauses after the first attempt, the second, and so on, in seconds. */
const RETRY_SCHEDULE_S: readonly number[] = [
  5,
  5 * 60,
  30 * 60,
  2 * 3_600,
  6 * 3_600,
  24 * 3_600,
  48 * 3_600,
  96 * 3_600,
];

/** Fraction by which a pause may be longer, so that deliveries that failed together are not retried together. */
const JITTER = 0.2;

/**
 * Returns the pause after a failed attempt, in seconds; undefined after the last.
 *
 * @param retry number of earlier attempts in the schedule.
 */
function retryPauseS(retry: number, schedule: readonly number[] = RETRY_SCHEDULE_S): number | undefined {
  const pauseS = schedule[retry];
  return pauseS === undefined ? undefined : pauseS * (1 + JITTER * Math.random());
}
