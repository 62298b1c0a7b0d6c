import { readFileSync } from 'node:fs';
import tls from 'node:tls';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { trustedKey } from '#src/connectors/paypal/certificates.ts';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { openedForEach } from '../under-test.ts';
import { FAKE_CHAINS, FAKE_ROOT_FILE, FAKE_WEBHOOK_ID } from './fake-paypal.ts';
import { openPayPal } from './paypal-under-test.ts';

const [GENUINE = '', OTHER_HOST = '', SIGNED_BY_LEAF = ''] = Object.values(FAKE_CHAINS);
const FAKE_ROOT = readFileSync(FAKE_ROOT_FILE, 'utf8');
const NOW_MS = Date.now();
const DAY_MS = 86_400_000;

describe('trust in a certificate of PayPal', () => {
  it('a certificate of PayPal whose chain leads to a trusted root is trusted until the chain ends', () => {
    const { key, endsAtMs } = trustedKey(GENUINE, [FAKE_ROOT], NOW_MS) ?? {};
    expect([key?.asymmetricKeyType, (endsAtMs ?? 0) > NOW_MS]).toEqual(['rsa', true]);
  });

  const intermediate = GENUINE.slice(GENUINE.lastIndexOf('-----BEGIN'));
  it.each([
    ['of another host', OTHER_HOST, [FAKE_ROOT], NOW_MS],
    ['signed by a certificate that is no authority', SIGNED_BY_LEAF, [FAKE_ROOT], NOW_MS],
    ['of an authority', intermediate, [FAKE_ROOT], NOW_MS],
    [
      'without its intermediate certificate',
      GENUINE.slice(0, GENUINE.lastIndexOf('-----BEGIN')),
      [FAKE_ROOT],
      NOW_MS,
    ],
    ['whose root is not trusted', GENUINE, tls.rootCertificates, NOW_MS],
    ['that has expired', GENUINE, [FAKE_ROOT], NOW_MS + 40_000 * DAY_MS],
    ['that is not valid yet', GENUINE, [FAKE_ROOT], 0],
    ['that is no certificate', '<html>not found</html>', [FAKE_ROOT], NOW_MS],
    ['that is garbage', GENUINE.replace(/[A-Z]{3}/, 'AAA'), [FAKE_ROOT], NOW_MS],
  ])('a certificate %s is not trusted', (_what, chain, roots, nowMs) => {
    expect(trustedKey(chain, roots, nowMs)).toBeUndefined();
  });
});

describe('the verification of notifications with a certificate', () => {
  const EVENT = {
    id: 'WH-2WR32451HC0233532-67976317FL4543714',
    event_type: 'PAYMENT.CAPTURE.COMPLETED',
    resource: { custom_id: '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11', note: 'sin ñ no hay 😀' },
  };
  const VERIFY = /verify-webhook-signature$/;
  const paypal = openedForEach(openPayPal);
  const roots = tls.getCACertificates('default');
  beforeEach(() => tls.setDefaultCACertificates([...roots, FAKE_ROOT]));
  afterEach(() => tls.setDefaultCACertificates(roots));

  const read = async (notification: RawNotification, from = '192.0.2.1') =>
    (await paypal.connection.readNotification?.({ ...notification, from }, Date.now()))?.kind;
  const genuine = () => paypal.fake.notify(EVENT);
  /** A notification with another header. */
  const with_ = (notification: RawNotification, name: string, value: string): RawNotification => ({
    ...notification,
    header: (asked) => (asked === name ? value : notification.header(asked)),
  });
  const forged = () => with_(genuine(), 'paypal-transmission-id', 'another');
  const withUnknownCertificate = (notification: RawNotification, id: string) =>
    with_(notification, 'paypal-cert-url', `https://api.paypal.com/v1/notifications/certs/CERT-${id}`);

  it('genuine notifications need no request to PayPal but one for the certificate', async () => {
    for (let i = 0; i < 3; i++) expect(await read(genuine())).toBe('about');
    expect(paypal.fake.requests.map(({ call }) => call)).toEqual([
      'GET /v1/notifications/certs/CERT-360caa42-fca2a594-1d93a270',
    ]);
  });

  it('forged notifications with a known certificate are refused without any request', async () => {
    expect(await read(genuine())).toBe('about');
    const before = paypal.fake.requests.length;
    const changed = { ...genuine(), body: Buffer.from(JSON.stringify({ ...EVENT, id: 'WH-1' })) };
    const elsewhere = paypal.fake.notify(EVENT, { webhookId: '9XX00000X000000XX' });
    for (const notification of [forged(), changed, elsewhere])
      expect(await read(notification)).toBe('forged');
    const flood = await Promise.all(Array.from({ length: 500 }, () => read(forged())));
    expect(new Set(flood)).toEqual(new Set(['forged']));
    expect(paypal.fake.requests.length).toBe(before);
    expect(await read(genuine())).toBe('about');
  });

  it('forged notifications with unknown certificates cost few requests, and hold back no genuine one', async () => {
    expect(await read(genuine())).toBe('about');
    const kinds: (string | undefined)[] = [];
    for (let i = 0; i < 60; i++) kinds.push(await read(withUnknownCertificate(forged(), `unknown-${i}`)));
    expect(kinds.filter((kind) => kind === 'forged').length).toBe(40);
    expect(kinds.slice(40)).toEqual(Array(20).fill('send_again'));
    expect(paypal.seen(VERIFY)).toBe(40);
    expect(await read(genuine())).toBe('about');
    // PayPal's next certificate, which is not known yet.
    const next = withUnknownCertificate(genuine(), '360caa42-fca2a594-1d93a270');
    expect(await read(next, '198.51.100.7')).toBe('about');
  });

  it('a certificate that is not trusted is never used, and PayPal verifies the signature instead', async () => {
    for (const id of ['other-host', 'signed-by-leaf']) {
      expect(await read(withUnknownCertificate(genuine(), id))).toBe('about');
      expect(await read(withUnknownCertificate(forged(), id))).toBe('forged');
    }
    expect(paypal.seen(VERIFY)).toBe(4);
    expect(paypal.seen(/certs/)).toBe(2);
  });

  it('genuine notifications are verified although PayPal cannot be reached, once the certificate is known', async () => {
    expect(await read(genuine())).toBe('about');
    for (const call of [VERIFY, /token$/, /certs/]) paypal.fake.trouble(call, 'lost before');
    expect(await read(genuine())).toBe('about');
  });

  it('a certificate is fetched again after a day, and remains in use while it cannot be', async () => {
    const later = (days: number) => {
      const notification = paypal.fake.notify(EVENT, { atMs: Date.now() + days * DAY_MS });
      return paypal.connection.readNotification?.(notification, Date.now() + days * DAY_MS);
    };
    await later(0);
    paypal.fake.trouble(/certs/, 'lost before');
    expect(await later(1.01)).toMatchObject({ kind: 'about' });
    expect(await later(2.02)).toMatchObject({ kind: 'about' });
    expect([paypal.seen(/certs/), paypal.seen(VERIFY)]).toEqual([3, 0]);
  });

  it('the certificate for either of two webhooks is the same', async () => {
    const two = await openPayPal({ settings: { webhook_ids: ['9XX00000X000000XX', FAKE_WEBHOOK_ID] } });
    for (const webhookId of ['9XX00000X000000XX', FAKE_WEBHOOK_ID]) {
      const notification = two.fake.notify(EVENT, { webhookId });
      expect(await two.connection.readNotification?.(notification, Date.now())).toMatchObject({
        kind: 'about',
      });
    }
    expect(two.seen(VERIFY)).toBe(0);
    await two.close();
  });
});
