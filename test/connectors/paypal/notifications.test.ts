import { describe, expect, it } from 'vitest';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { redirectAttempt } from '../attempts.ts';
import { openedForEach } from '../under-test.ts';
import type { Json } from './fake-ledger.ts';
import { FAKE_WEBHOOK_ID } from './fake-paypal.ts';
import { connectionFor, openPayPal } from './paypal-under-test.ts';

const TRANSACTION = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const ORDER_ID = '5O190127TN364715T';
const VERIFY = /verify-webhook-signature$/;
const DAY_MS = 86_400_000;
const paypal = openedForEach(openPayPal);

function event(type: string, resource: Json): Json {
  return {
    id: 'WH-2WR32451HC0233532-67976317FL4543714',
    event_type: type,
    resource_version: '2.0',
    resource,
  };
}

const CAPTURED = event('PAYMENT.CAPTURE.COMPLETED', {
  id: '3C679366HH908993F',
  amount: { currency_code: 'USD', value: '3000.00' },
  custom_id: TRANSACTION,
  note: 'sin ñ no hay 😀',
  supplementary_data: { related_ids: { order_id: ORDER_ID } },
});

/** A refund that names only its capture. */
const OF_CAPTURE = {
  id: '1JU08902781691411',
  links: [{ rel: 'up', href: 'https://api.paypal.com/v2/payments/captures/3C679366HH908993F' }],
};

function read(notification: RawNotification, nowMs = Date.now()) {
  return paypal.connection.readNotification?.(notification, nowMs);
}

function changed(
  notification: RawNotification,
  headers: Record<string, string | undefined>,
): RawNotification {
  return {
    ...notification,
    header: (name) => (name in headers ? headers[name] : notification.header(name)),
  };
}

const forged = { kind: 'forged' };

describe('a notification from PayPal', () => {
  it('a PayPal notification is about the transaction whose ID it contains, once PayPal confirms it', async () => {
    expect(await read(paypal.fake.notify(CAPTURED))).toEqual({
      kind: 'about',
      deduplicationKey: CAPTURED.id,
      subjects: [{ transactionId: TRANSACTION, providerPaymentId: '3C679366HH908993F' }],
    });
    expect(paypal.seen(VERIFY)).toBe(1);
  });

  it('a PayPal notification is sent back for verification byte for byte, including spaces and escapes', async () => {
    const body = JSON.stringify(CAPTURED, undefined, 3).replaceAll('ñ', '\\u00f1');
    expect(await read(paypal.fake.notify(body))).toMatchObject({ kind: 'about' });
  });

  it.each([
    [
      'CHECKOUT.ORDER.APPROVED',
      { id: ORDER_ID, purchase_units: [{ custom_id: TRANSACTION }] },
      { transactionId: TRANSACTION },
    ],
    ['PAYMENT.CAPTURE.DENIED', { invoice_id: TRANSACTION }, { transactionId: TRANSACTION }],
    [
      'PAYMENT.CAPTURE.REFUNDED',
      { id: '1JU08902781691411', custom_id: TRANSACTION },
      { transactionId: TRANSACTION },
    ],
  ])('a PayPal notification of the type %s names its subject: %j', async (type, resource, subject) => {
    const reading = await read(paypal.fake.notify(event(type, resource)));
    expect(reading).toMatchObject({ kind: 'about', subjects: [subject] });
  });

  it.each([
    ['CHECKOUT.ORDER.APPROVED', (id: string) => ({ id, purchase_units: [{}] })],
    ['CHECKOUT.PAYMENT-APPROVAL.REVERSED', (id: string) => ({ order_id: id })],
    ['PAYMENT.CAPTURE.PENDING', (id: string) => ({ supplementary_data: { related_ids: { order_id: id } } })],
  ])(
    'a PayPal notification of the type %s that names only an order is about its payment',
    async (type, of) => {
      const attempt = redirectAttempt();
      await paypal.connection.pay(attempt);
      const [orderId = ''] = paypal.fake.ledger.orders.keys();
      const { transactionId } = attempt;
      expect(await read(paypal.fake.notify(event(type, of(orderId))))).toMatchObject({
        subjects: [{ transactionId }],
      });
      expect(await read(paypal.fake.notify(event(type, of(ORDER_ID))))).toEqual({ kind: 'ignored' });
      paypal.fake.trouble(/orders/, 'error before');
      expect(await read(paypal.fake.notify(event(type, of(orderId))))).toMatchObject({ kind: 'send_again' });
    },
  );

  it.each([
    ['another type', event('BILLING.PLAN.CREATED', { id: 'P-1', custom_id: TRANSACTION })],
    ["someone else's payment", event('PAYMENT.CAPTURE.COMPLETED', { custom_id: 'their-own-id' })],
    ['no event', { hello: 'world' }],
    ['a type that only contains a refund', event('BILLING.PAYMENT.REFUND.COMPLETED', OF_CAPTURE)],
    ['a type that only begins like a refund', event('PAYMENT.CAPTURE.REFUNDED.LATER', OF_CAPTURE)],
  ])('a PayPal notification is ignored if it is genuine and about %s', async (_what, body) => {
    expect(await read(paypal.fake.notify(body))).toEqual({ kind: 'ignored' });
  });

  it('a PayPal notification is treated as forged if any byte was changed', async () => {
    const notification = paypal.fake.notify(CAPTURED);
    const body = Buffer.from(Buffer.from(notification.body).toString().replace('3000.00', '9000.00'));
    expect(await read({ ...notification, body })).toMatchObject(forged);
  });

  it('a PayPal notification is treated as forged if it was signed for the webhook of another account', async () => {
    expect(await read(paypal.fake.notify(CAPTURED, { webhookId: '9XX00000X000000XX' }))).toMatchObject(
      forged,
    );
  });

  it('a PayPal notification cannot smuggle its own webhook into the verification request', async () => {
    const body = `${JSON.stringify(CAPTURED)},"webhook_id":"9XX00000X000000XX"`;
    expect(await read(paypal.fake.notify(body, { webhookId: '9XX00000X000000XX' }))).toMatchObject(forged);
    expect(paypal.fake.requests).toEqual([]);
  });

  it('a PayPal notification is accepted for either of two webhooks', async () => {
    const two = await openPayPal({ settings: { webhook_ids: ['9XX00000X000000XX', FAKE_WEBHOOK_ID] } });
    for (const webhookId of ['9XX00000X000000XX', FAKE_WEBHOOK_ID]) {
      const notification = two.fake.notify(CAPTURED, { webhookId });
      expect(await two.connection.readNotification?.(notification, Date.now())).toMatchObject({
        kind: 'about',
      });
    }
    await two.close();
  });

  it('a PayPal notification has the same key if it is delivered twice', async () => {
    const [first, second] = [
      await read(paypal.fake.notify(CAPTURED)),
      await read(paypal.fake.notify(CAPTURED)),
    ];
    expect(second).toEqual(first);
  });

  it('a PayPal notification is treated as forged if it is too old to be a repeat, or comes from the future', async () => {
    const now = Date.now();
    const old = (atMs: number) => read(paypal.fake.notify(CAPTURED, { atMs }), now);
    expect(await old(now - 5 * DAY_MS)).toMatchObject(forged);
    expect(await old(now + DAY_MS)).toMatchObject(forged);
    expect(paypal.fake.requests).toEqual([]);
    expect(await old(now - 3 * DAY_MS)).toMatchObject({ kind: 'about' });
  });

  it.each([
    'http://api.paypal.com/cert',
    'https://api.paypal.com.evil.example/cert',
    'https://evilpaypal.com/cert',
    'https://paypal.com@evil.example/cert',
    'https://user@api.paypal.com/cert',
    'https://api.paypal.com:8443/cert',
    'https://127.0.0.1/cert',
    'file:///etc/passwd',
    `https://api.paypal.com/${'a'.repeat(600)}`,
    '',
  ])(
    'a PayPal notification with a foreign certificate is treated as forged, without a call to PayPal: %s',
    async (url) => {
      const notification = changed(paypal.fake.notify(CAPTURED), { 'paypal-cert-url': url });
      expect(await read(notification)).toMatchObject(forged);
      expect(paypal.fake.requests).toEqual([]);
    },
  );

  it.each([
    ['paypal-transmission-id', undefined],
    ['paypal-transmission-sig', '","webhook_id":"x'],
    ['paypal-transmission-time', 'yesterday'],
    ['paypal-auth-algo', 'none'],
  ])(
    'a PayPal notification without a valid %s is treated as forged, without a call to PayPal',
    async (name, value) => {
      expect(await read(changed(paypal.fake.notify(CAPTURED), { [name]: value }))).toMatchObject(forged);
      expect(paypal.fake.requests).toEqual([]);
    },
  );

  it('PayPal is asked to verify at most 32 notifications at once, and to send any more again', async () => {
    await read(paypal.fake.notify(CAPTURED));
    const readings = await Promise.all(Array.from({ length: 33 }, () => read(paypal.fake.notify(CAPTURED))));
    const kinds = readings.map((reading) => reading?.kind);
    expect([kinds.filter((kind) => kind === 'about').length, kinds.at(-1)]).toEqual([32, 'send_again']);
  });

  it.each(['', '[]', 'null', '\ufeff{}', '<html>'])(
    'a PayPal notification is treated as forged if its body is not a JSON object: %j',
    async (body) => {
      expect(await read(paypal.fake.notify(body))).toMatchObject(forged);
    },
  );

  it.each([
    'lost before',
    'error before',
    'no answer',
    { status: 200, body: {} },
    { status: 200, body: { verification_status: 'success' } },
    { status: 403, body: { name: 'NOT_AUTHORIZED', message: 'no' } },
  ] as const)(
    'a PayPal notification is not accepted until PayPal verifies it, and PayPal is asked to send it again: %j',
    async (trouble) => {
      paypal.fake.trouble(VERIFY, trouble);
      const connection = connectionFor(paypal, trouble);
      const first = connection.readNotification?.(paypal.fake.notify(CAPTURED), Date.now());
      expect(await first).toMatchObject({ kind: 'send_again' });
      expect(await read(paypal.fake.notify(CAPTURED))).toMatchObject({ kind: 'about' });
    },
  );
});
