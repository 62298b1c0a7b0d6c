import { type KeyObject, verify } from 'node:crypto';
import { crc32 } from 'node:zlib';
import type { JsonObject } from '@bufbuild/protobuf';
import { fields, isTextLike, readJsonObject, textLike } from '../kit/provider-answer.ts';
import { faultOfTime, forged } from '../kit/provider-signature.ts';
import type { Environment } from '../port/account-report.ts';
import type { NotificationReading, NotificationSubject, RawNotification } from '../port/connector.ts';
import { PAYPAL_ID, type Resource, readResource } from './answers.ts';
import { isPayPalHost } from './certificates.ts';
import { disputedSubjects, refundedSubjects, reversedSubjects } from './disputes.ts';
import type { PayPalSettings } from './settings.ts';
import { type ApiRequest, getCapture, getOrder } from './to-provider.ts';

/** A notification with an unverified signature. */
export type Unverified = {
  readonly certificateUrl: string;
  /** Returns true if the certificate's key signed the notification for one of our webhooks. */
  readonly isSignedWith: (key: KeyObject) => boolean;
  /** Requests that make PayPal verify the signature, one for each possible webhook. */
  readonly requests: readonly ApiRequest[];
  readonly reading: NotificationReading;
  /** Requests the object that contains the id of a transaction without one: its capture or its order. */
  readonly objectOf: (id: string) => ApiRequest;
};

/** PayPal repeats a notification for 3 days. Whether each delivery has a new date is undocumented. */
const LIMITS = { maxAgeMs: 4 * 86_400_000, maxAheadMs: 5 * 60_000 };
const TRANSMISSION_ID = /^(?!\d+$)[\w-]{1,50}$/;
const TRANSMISSION_TIME = /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d{1,9})?(Z|[+-]\d\d:\d\d)$/;
const SIGNATURE = /^[A-Za-z0-9+/]{16,496}={0,2}$/;
const ALGORITHM = /^(SHA(?:256|384|512))withRSA$/;
const MAX_CERT_URL = 500;
const EVENT_ID = /^WH-[A-Za-z0-9-]{1,200}$/;
const EVENT_TYPE =
  /^(CHECKOUT\.(ORDER|PAYMENT-APPROVAL)|CUSTOMER\.DISPUTE|PAYMENT\.(CAPTURE|REFUND))\.[A-Z_-]{1,60}$/;

/**
 * Reads a notification as far as possible without its certificate; pure.
 *
 * @returns only the reading if the notification is known to be forged.
 */
export function readUnverified(
  { header, body }: RawNotification,
  { webhookIds, environment }: Pick<PayPalSettings, 'webhookIds' | 'environment'>,
  nowMs: number,
): Unverified | Extract<NotificationReading, { kind: 'forged' }> {
  const fields = {
    auth_algo: header('paypal-auth-algo') ?? '',
    cert_url: header('paypal-cert-url') ?? '',
    transmission_id: header('paypal-transmission-id') ?? '',
    transmission_sig: header('paypal-transmission-sig') ?? '',
    transmission_time: header('paypal-transmission-time') ?? '',
  };
  const [, hash] = ALGORITHM.exec(fields.auth_algo) ?? [];
  if (
    hash === undefined ||
    !TRANSMISSION_ID.test(fields.transmission_id) ||
    !SIGNATURE.test(fields.transmission_sig) ||
    !TRANSMISSION_TIME.test(fields.transmission_time)
  ) {
    return forged('the signature is missing or malformed');
  }
  if (!isPayPalUrl(fields.cert_url)) return forged("the certificate is not PayPal's");
  const fault = faultOfTime(Date.parse(fields.transmission_time), nowMs, LIMITS);
  if (fault !== undefined) return forged(fault);
  const event = readJsonObject(body);
  const text = Buffer.from(body).toString();
  // The text inserted below must be exactly this object, byte for byte: the signature covers the body's checksum.
  if (!event || !text.startsWith('{')) return forged('the body is not a JSON object');
  const requests = webhookIds.map((webhookId): ApiRequest => {
    const rest = JSON.stringify({ ...fields, webhook_id: webhookId }).slice(0, -1);
    return {
      method: 'POST',
      path: '/v1/notifications/verify-webhook-signature',
      body: `${rest},"webhook_event":${text}}`,
    };
  });
  const isSignedWith = (key: KeyObject) =>
    webhookIds.some((webhookId) => {
      const signed = [fields.transmission_id, fields.transmission_time, webhookId, crc32(body)].join('|');
      return verify(hash, Buffer.from(signed), key, Buffer.from(fields.transmission_sig, 'base64'));
    });
  const objectOf = isTextLike(event.event_type, OF_CAPTURES) ? getCapture : getOrder;
  const certificateUrl = fields.cert_url;
  return { certificateUrl, isSignedWith, requests, reading: read(event, environment), objectOf };
}

const readEvent = fields({
  id: textLike(EVENT_ID),
  event_type: textLike(EVENT_TYPE),
  resource: readResource,
});

const CAPTURE = /^PAYMENT\.CAPTURE\./;
const REFUND = /^PAYMENT\.(CAPTURE\.REFUNDED$|REFUND\.)/;
const OF_CAPTURES = /^(CUSTOMER\.DISPUTE\.|PAYMENT\.(CAPTURE\.(REFUNDED|REVERSED)$|REFUND\.))/;

/** Returns true for an https URL without a user or a port at a PayPal host. */
function isPayPalUrl(address: string): boolean {
  const url = address.length <= MAX_CERT_URL ? URL.parse(address) : null;
  if (url?.protocol !== 'https:' || url.username !== '' || url.password !== '' || url.port !== '')
    return false;
  return isPayPalHost(url.hostname);
}

function read(event: JsonObject, environment: Environment | undefined): NotificationReading {
  const { id: deduplicationKey, event_type: type, resource } = readEvent(event);
  if (deduplicationKey === undefined || type === undefined) return { kind: 'ignored' };
  const subjects = subjectsOf(type, resource, environment);
  return subjects.length > 0 ? { kind: 'about', deduplicationKey, subjects } : { kind: 'ignored' };
}

function subjectsOf(
  type: string,
  resource: Resource,
  environment: Environment | undefined,
): readonly NotificationSubject[] {
  if (type.startsWith('CUSTOMER.DISPUTE.')) return disputedSubjects(resource, environment);
  if (type === 'PAYMENT.CAPTURE.REVERSED') return reversedSubjects(resource);
  if (REFUND.test(type)) return refundedSubjects(resource);
  const subject = subjectOf(type, resource);
  return subject ? [subject] : [];
}

/** Returns our transaction if its id is present, or else the id of the order. */
function subjectOf(type: string, resource: Resource): NotificationSubject | undefined {
  const isOrder = type.startsWith('CHECKOUT.ORDER.');
  const named = isOrder ? resource.purchase_units[0] : resource;
  const transactionId = named?.custom_id ?? named?.invoice_id;
  const captureId = CAPTURE.test(type) ? resource.id : undefined;
  if (transactionId !== undefined) {
    return { transactionId, ...(captureId !== undefined && { providerPaymentId: captureId }) };
  }
  const { related_ids } = resource.supplementary_data;
  const orderId = isOrder ? resource.id : (resource.order_id ?? related_ids.order_id);
  return isTextLike(orderId, PAYPAL_ID) ? { providerPaymentId: orderId } : undefined;
}
