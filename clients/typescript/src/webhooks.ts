import type { Event } from './operations.ts';

/** Thrown for a delivery that is not genuine or is too old: respond with 400, and do nothing. */
export class WebhookError extends Error {
  override readonly name = 'WebhookError';
}

/** Options for verifying a delivery. */
export type VerifyOptions = {
  /** Maximum age of a delivery, and maximum time by which the sender's clock may be ahead; 300 when absent. */
  readonly toleranceS?: number;
  readonly nowMs?: number;
};

/**
 * Checks a delivery's signature (Standard Webhooks) and age, and reads its event. The event may come twice, with the
 * same `id`.
 *
 * @param secret the webhook's secret, `whsec_…`; several while it is being changed.
 * @param header reads one of the delivery's headers by its lower-case name.
 * @param body the body as received, before anything has parsed it.
 * @throws WebhookError.
 */
export async function verifyWebhook(
  secret: string | readonly string[],
  header: (name: string) => string | null | undefined,
  body: string,
  { toleranceS = 300, nowMs = Date.now() }: VerifyOptions = {},
): Promise<Event> {
  const [id, timestamp, signatures] = ['webhook-id', 'webhook-timestamp', 'webhook-signature'].map(header);
  if (!id || !timestamp || !signatures) throw new WebhookError('a signature header is missing');
  if (!(Math.abs(nowMs / 1000 - Number(timestamp)) <= toleranceS))
    throw new WebhookError('the delivery is too old');
  const signed = new TextEncoder().encode(`${id}.${timestamp}.${body}`);
  const presented = signatures.split(' ').flatMap((one) => (one.startsWith('v1,') ? [one.slice(3)] : []));
  for (const one of [secret].flat()) {
    const key = await crypto.subtle.importKey('raw', bytes(one.replace(/^whsec_/, '')), HMAC, false, [
      'verify',
    ]);
    for (const signature of presented) {
      // Compared in constant time.
      if (await crypto.subtle.verify('HMAC', key, bytes(signature), signed)) return JSON.parse(body) as Event;
    }
  }
  throw new WebhookError('the signature was not made with this secret');
}

const HMAC = { name: 'HMAC', hash: 'SHA-256' };

function bytes(base64: string): Uint8Array<ArrayBuffer> {
  try {
    return Uint8Array.from(atob(base64), (character) => character.charCodeAt(0));
  } catch {
    throw new WebhookError('the secret or the signature is not valid base64');
  }
}
