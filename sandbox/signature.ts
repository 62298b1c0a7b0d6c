import { createHmac } from 'node:crypto';

/** Header with a notification's signature. */
export const SIGNATURE_HEADER = 'sandbox-signature';

/**
 * Returns the value of the signature header: `t=<Unix seconds>,v1=<hex>`, with a `v1` for each secret, so that secrets can
 * be rotated without a gap. A `v1` is the HMAC-SHA256 of the time, a full stop and the body.
 */
export function signatureOf(body: string, secrets: readonly string[], nowMs: number): string {
  const time = Math.floor(nowMs / 1_000);
  const signatures = secrets.map((secret) => {
    const hex = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
    return `v1=${hex}`;
  });
  return [`t=${time}`, ...signatures].join(',');
}
