import type { JsonObject } from '@bufbuild/protobuf';
import { bodyOf } from '../kit/provider-answer.ts';
import type { NotificationReading, NotificationSubject, RawNotification } from '../port/connector.ts';
import { type Chargeback, isErrorBody, readChargeback, readPayment } from './answers.ts';
import { notifiedSubjects } from './disputes.ts';
import { verifyNotification } from './notifications.ts';
import { type Call, getChargeback, getPayment, type Send, type Target } from './to-provider.ts';

/** Maximum number of payments of one chargeback that are read. */
const MAX_PAYMENTS = 10;

/**
 * Reads a notification. The signature covers only an id, so the connector reads the payment, or the chargeback and its
 * payments, at the provider.
 */
export async function readNotification(
  notification: RawNotification,
  nowMs: number,
  { send, settings, shownAs }: Call,
): Promise<NotificationReading> {
  const reading = verifyNotification(notification, settings.webhookSecrets, nowMs);
  if (reading.kind !== 'genuine') return reading;
  const { about, id, deduplicationKey } = reading;
  let chargeback: Chargeback | undefined;
  if (about === 'chargeback') {
    const body = await read(send, getChargeback(id));
    if (body === 'unreadable') return sendAgain(about);
    // Another account's chargeback.
    if (body === 'not found') return { kind: 'ignored' };
    chargeback = readChargeback(body);
  }
  const subjects: NotificationSubject[] = [];
  for (const paymentId of chargeback?.paymentIds.slice(0, MAX_PAYMENTS) ?? [id]) {
    const body = await read(send, getPayment(paymentId));
    if (body === 'unreadable') return sendAgain('payment');
    if (body !== 'not found') subjects.push(...notifiedSubjects(readPayment(body), shownAs, chargeback));
  }
  return subjects.length > 0 ? { kind: 'about', deduplicationKey, subjects } : { kind: 'ignored' };
}

async function read(send: Send, target: Target): Promise<JsonObject | 'not found' | 'unreadable'> {
  const result = await send(target);
  const body = bodyOf(result);
  if (body) return body;
  const notFound = bodyOf(result, 404);
  return notFound && isErrorBody(notFound, 404) ? 'not found' : 'unreadable';
}

function sendAgain(what: string): NotificationReading {
  return {
    kind: 'send_again',
    detail: `the ${what} of the notification could not be read at the provider`,
  };
}
