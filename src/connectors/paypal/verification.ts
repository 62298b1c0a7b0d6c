import type { Secret } from '#src/secret.ts';
import { createTokenBuckets } from '#src/token-buckets.ts';
import { bodyOf } from '../kit/provider-answer.ts';
import { forged } from '../kit/provider-signature.ts';
import type { NotificationReading, ReadNotification } from '../port/connector.ts';
import { createCertificates } from './certificates.ts';
import { withOurTransactions } from './disputes.ts';
import { readUnverified, type Unverified } from './notifications.ts';
import type { PayPalSettings } from './settings.ts';
import type { ApiRequest, Send } from './to-provider.ts';

/** Limits on notifications with unknown certificates that turn out to be forged, of all clients and of one. */
const failuresFrom = (address: string) => [
  { name: '', burst: 80, everyMs: 5_000 },
  { name: `from ${address}`, burst: 40, everyMs: 30_000 },
];

const sendAgain = (detail: string): NotificationReading => ({ kind: 'send_again', detail });

/**
 * Creates the verification of a connection's notifications. With a known certificate, it needs no request to PayPal, so
 * forged notifications cost nothing, and genuine ones are verified even while PayPal is slow. Anyone can name an unknown
 * certificate, so failures with one are limited. If a certificate cannot be fetched or is not trusted, PayPal itself
 * verifies the signature.
 *
 * @param begin starts a call that uses no socket that a payment could need.
 */
export function createVerification(
  settings: PayPalSettings,
  begin: () => Send,
  proxy?: Secret,
): { readonly readNotification: ReadNotification; readonly close: () => Promise<void> } {
  const certificates = createCertificates(settings, proxy);
  const takeFailure = createTokenBuckets();

  async function verify(unverified: Unverified, from: string, nowMs: number): Promise<Verdict> {
    const { certificateUrl, isSignedWith, requests } = unverified;
    const isKnown = certificates.isKnown(certificateUrl, nowMs);
    // Only failures use up the budget, so a provider that sends genuine notifications is not limited.
    const giveBack = isKnown ? () => {} : takeFailure(failuresFrom(from)).giveBack;
    if (!giveBack) return sendAgain('too many notifications with unknown certificates were forged');
    const key = await certificates.keyOf(certificateUrl, nowMs);
    const result = key ? judged(isSignedWith(key)) : await askPayPal(requests, begin());
    if (result === 'genuine' || result.kind !== 'forged') giveBack();
    return result;
  }

  return {
    async readNotification(notification, nowMs) {
      const read = readUnverified(notification, settings, nowMs);
      if ('kind' in read) return read;
      const result = await verify(read, notification.from ?? '', nowMs);
      if (result !== 'genuine') return result;
      return withOurTransactions(read.reading, read.objectOf, begin());
    },
    close: certificates.close,
  };
}

type Verdict = NotificationReading | 'genuine';

const judged = (isGenuine: boolean): Verdict => (isGenuine ? 'genuine' : forged('the signature is wrong'));

/** Asks PayPal whether it signed a notification for one of our webhooks. */
async function askPayPal(requests: readonly ApiRequest[], send: Send): Promise<Verdict> {
  for (const request of requests) {
    const answer = bodyOf(await send(request));
    if (answer?.verification_status === 'SUCCESS') return 'genuine';
    if (answer?.verification_status !== 'FAILURE') {
      return sendAgain('the provider could not be asked to verify the signature');
    }
  }
  return judged(false);
}
