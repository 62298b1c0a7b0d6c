import { describe, expect, it } from 'vitest';
import { payersPage } from '#src/connectors/port/outcome.ts';
import { cardAttempt, lookUpOf, redirectAttempt } from '../attempts.ts';
import { lookUp, openedForEach } from '../under-test.ts';
import { FAKE_MERCHANT_ID } from './fake-paypal.ts';
import {
  approved,
  CAPTURE,
  CREATE,
  complete,
  connectionFor,
  openPayPal,
  paid,
  sent,
  TOKEN,
} from './paypal-under-test.ts';

const HOUR_MS = 3_600_000;
const paypal = openedForEach(openPayPal);

describe('a payment by PayPal', () => {
  it('a PayPal order sends the payer to PayPal and takes no money', async () => {
    const { outcome, orderId } = await sent(paypal);
    expect(payersPage(outcome)).toBe(`${paypal.fake.url}/checkoutnow?token=${orderId}`);
    expect(outcome.providerData).toMatchObject({ id: 'PAYPAL', transactionId: orderId });
    expect(paypal.seen(CAPTURE)).toBe(0);
  });

  it('a PayPal order is ready for completion once the payer has agreed, and not before', async () => {
    const { attempt, orderId, outcome } = await sent(paypal);
    expect(await lookUp(paypal, attempt, orderId)).toMatchObject({
      kind: 'awaits_payer',
      show: { page: payersPage(outcome) },
    });
    paypal.fake.approve(orderId);
    expect(await lookUp(paypal, attempt, orderId)).toMatchObject({ kind: 'to_complete', reference: orderId });
    expect(paypal.seen(CAPTURE)).toBe(0);
  });

  it('a PayPal order is captured by its completion under a separate ID, and found captured afterwards', async () => {
    const { attempt, orderId, outcome, reference } = await paid(paypal);
    const captureId = paypal.fake.ledger.orders.get(orderId)?.captures[0]?.id;
    expect(reference).toBe(`${orderId}/${captureId}`);
    expect(outcome.providerData.transactionId).toBe(captureId);
    expect(paypal.fake.requests.at(-1)?.requestId).toBe(`${attempt.transactionId}:capture`);
    expect(await lookUp(paypal, attempt, reference)).toMatchObject({ kind: 'approved', reference });
  });

  it("a PayPal payment keeps PayPal's data about the payer out of the record", async () => {
    const { outcome } = await paid(paypal);
    expect(JSON.stringify(outcome)).not.toContain('payer@example.com');
  });

  it("a payer who agrees on PayPal's page returns to us, and the payment can be completed", async () => {
    const { attempt, outcome, orderId } = await sent(paypal);
    expect(await (await fetch(payersPage(outcome))).text()).toContain('approve');
    const url = `${paypal.fake.url}/checkoutnow/approve?token=${orderId}`;
    const back = await fetch(url, { redirect: 'manual' });
    expect(back.headers.get('location')).toContain(`${attempt.returnUrl}?token=${orderId}`);
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
  });

  it("a payer who cancels on PayPal's page returns by a URL of its own, and closing the order ends it", async () => {
    const { attempt, orderId } = await sent(paypal);
    const url = `${paypal.fake.url}/checkoutnow/cancel?token=${orderId}`;
    const back = await fetch(url, { redirect: 'manual' });
    expect(back.headers.get('location')).toBe(`${attempt.cancelUrl}?token=${orderId}`);
    expect(paypal.connection.capabilities.close).toBe(true);
  });

  it('a PayPal order with an ID in another form is never completed', async () => {
    const outcome = await complete(paypal, redirectAttempt(), '../orders');
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(paypal.fake.requests).toEqual([]);
  });

  it('completing a PayPal order before the payer has agreed moves no money and leaves the order pending', async () => {
    const { attempt, orderId } = await sent(paypal);
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'pending' });
    expect(paypal.fake.ledger.orders.get(orderId)?.captures).toEqual([]);
  });

  it('a card, or an amount that PayPal cannot express, is turned away before anything is sent', async () => {
    const chilean = redirectAttempt({ money: { minorUnits: 1_000n, currency: 'CLP' } });
    const nothing = redirectAttempt({ money: { minorUnits: 0n, currency: 'USD' } });
    for (const attempt of [cardAttempt(), chilean, nothing]) {
      expect(await paypal.connection.pay(attempt)).toMatchObject({
        kind: 'not_sent',
        because: 'turned_away',
      });
    }
    expect(paypal.fake.requests).toEqual([]);
  });

  it('a PayPal order without consent is closed, since only our own capture could take its money', async () => {
    const { attempt, orderId } = await sent(paypal);
    expect(await lookUp(paypal, attempt, orderId, { close: true })).toMatchObject({ kind: 'expired' });
  });

  it('a PayPal order that the payer agreed to at the last moment can still be completed', async () => {
    const { attempt, orderId } = await approved(paypal);
    expect(await lookUp(paypal, attempt, orderId, { close: true })).toMatchObject({ kind: 'to_complete' });
  });

  it('a PayPal order has expired once PayPal does not find it after three hours, and not sooner', async () => {
    const { attempt, orderId } = await sent(paypal);
    paypal.fake.ledger.clock.aheadMs = 4 * HOUR_MS;
    expect(await lookUp(paypal, attempt, orderId)).toMatchObject({ kind: 'unknown' });
    const ageMs = 4 * HOUR_MS;
    expect(await lookUp(paypal, attempt, orderId, { ageMs })).toMatchObject({ kind: 'expired' });
  });

  it('a captured PayPal order never counts as expired, even if it is not found', async () => {
    const { attempt, reference } = await paid(paypal);
    paypal.fake.ledger.orders.clear();
    const ageMs = 4 * HOUR_MS;
    expect(await lookUp(paypal, attempt, reference, { ageMs })).toMatchObject({ kind: 'unknown' });
  });
});

describe('a lost creation of an order', () => {
  it.each(['lost before', 'lost after', 'error before', 'error after', 'no answer'] as const)(
    'a PayPal order whose creation is lost is not_sent, since nobody can pay it: %s',
    async (trouble) => {
      paypal.fake.trouble(CREATE, trouble);
      expect(await connectionFor(paypal, trouble).pay(redirectAttempt())).toMatchObject({ kind: 'not_sent' });
      expect(paypal.seen(CREATE)).toBe(1);
    },
  );

  it("a PayPal order whose creation was lost is found by a repeat under its ID, with the payer's URL", async () => {
    const attempt = redirectAttempt();
    paypal.fake.trouble(CREATE, 'lost after');
    await paypal.connection.pay(attempt);
    const found = await lookUp(paypal, attempt, undefined);
    const [orderId, ...others] = paypal.fake.ledger.orders.keys();
    expect(others).toEqual([]);
    expect(found).toMatchObject({ kind: 'awaits_payer', reference: orderId });
    const [first, second] = paypal.fake.requests.filter(({ call }) => CREATE.test(call));
    expect(second?.body).toBe(first?.body);
  });

  it('a PayPal order is not created again to close it, or if PayPal may have forgotten the request ID', async () => {
    const attempt = redirectAttempt();
    const ageMs = 6 * HOUR_MS;
    expect(await lookUp(paypal, attempt, undefined, { ageMs })).toMatchObject({ kind: 'not_sent' });
    expect(await lookUp(paypal, attempt, undefined, { close: true })).toMatchObject({ kind: 'not_sent' });
    const chilean = redirectAttempt({ money: { minorUnits: 1_000n, currency: 'CLP' } });
    expect(await lookUp(paypal, chilean, undefined)).toMatchObject({ kind: 'not_sent' });
    expect(paypal.fake.requests).toEqual([]);
  });
});

describe('a lost capture', () => {
  it.each(['lost after', 'error after', 'no answer'] as const)(
    'the outcome of a lost capture at PayPal is unknown until its order shows that the money was taken: %s',
    async (trouble) => {
      const { attempt, orderId } = await approved(paypal);
      paypal.fake.trouble(CAPTURE, trouble);
      const connection = connectionFor(paypal, trouble);
      expect(await complete({ connection }, attempt, orderId)).toMatchObject({ kind: 'unknown' });
      expect(await lookUp(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
    },
  );

  it.each(['lost before', 'error before'] as const)(
    'the outcome of a lost capture at PayPal is unknown, and its repeat takes the money once: %s',
    async (trouble) => {
      const { attempt, orderId } = await approved(paypal);
      paypal.fake.trouble(CAPTURE, trouble);
      expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'unknown' });
      expect(await lookUp(paypal, attempt, orderId)).toMatchObject({ kind: 'to_complete' });
      expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
      expect(paypal.fake.ledger.orders.get(orderId)?.captures).toHaveLength(1);
    },
  );

  it('a repeated capture takes no money twice, since PayPal returns the same capture', async () => {
    const { attempt, orderId, reference } = await paid(paypal);
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'approved', reference });
    expect(paypal.fake.ledger.orders.get(orderId)?.captures).toHaveLength(1);
  });

  it('a capture repeated with an ID that PayPal has forgotten is refused as already captured, and looked up', async () => {
    const { attempt, orderId } = await paid(paypal);
    paypal.fake.ledger.clock.aheadMs = 7 * HOUR_MS;
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
  });
});

describe('a capture that PayPal does not make at once', () => {
  it.each([
    ['PENDING', 'pending'],
    ['DECLINED', 'declined'],
    ['FAILED', 'declined'],
    ['RECEIVED', 'unknown'],
  ])('a capture that PayPal does not make at once reports %s: %s', async (status, kind) => {
    const { attempt, orderId } = await approved(paypal);
    paypal.fake.ledger.fates.push({ status, details: { status_details: { reason: 'ECHECK' } } });
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind });
  });

  it('a pending capture gets its outcome once PayPal has decided', async () => {
    const { attempt, orderId } = await approved(paypal);
    paypal.fake.ledger.fates.push({ status: 'PENDING' });
    await complete(paypal, attempt, orderId);
    const capture = paypal.fake.ledger.orders.get(orderId)?.captures[0];
    if (!capture) throw new Error('no capture');
    capture.status = 'COMPLETED';
    expect(await lookUp(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
  });
});

describe('the access token', () => {
  it("PayPal's access token is requested once, however many calls start together, and cached", async () => {
    await Promise.all(Array.from({ length: 5 }, () => paypal.connection.pay(redirectAttempt())));
    await paypal.connection.pay(redirectAttempt());
    expect(paypal.seen(TOKEN)).toBe(1);
    expect(paypal.seen(CREATE)).toBe(6);
  });

  it("PayPal's access token is replaced when PayPal no longer accepts it, and the call continues", async () => {
    const { attempt, orderId } = await approved(paypal);
    paypal.fake.revokeTokens();
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'approved' });
    expect([paypal.seen(TOKEN), paypal.seen(CAPTURE)]).toEqual([2, 2]);
  });

  it("PayPal's access token is not replaced, and the call not sent again, for a proxy's 401", async () => {
    const { attempt, orderId } = await approved(paypal);
    paypal.fake.trouble(CAPTURE, { status: 401, body: { message: 'no' } });
    expect(await complete(paypal, attempt, orderId)).toMatchObject({ kind: 'unknown' });
    expect([paypal.seen(TOKEN), paypal.seen(CAPTURE)]).toEqual([1, 1]);
  });

  it('a payment without an access token is not_sent, and the next payment requests the token again', async () => {
    for (const trouble of ['lost after', 'error before', 'no answer'] as const) {
      paypal.fake.trouble(TOKEN, trouble);
      const outcome = await connectionFor(paypal, trouble).pay(redirectAttempt());
      expect(outcome).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
    }
    expect(paypal.seen(CREATE)).toBe(0);
    expect(await paypal.connection.pay(redirectAttempt())).toMatchObject({ kind: 'awaits_payer' });
  });

  it('the result of a look-up without an access token is unknown', async () => {
    const attempt = redirectAttempt();
    paypal.fake.trouble(TOKEN, 'lost before');
    expect(
      await paypal.connection.lookUp?.(lookUpOf(attempt, { reference: '5O190127TN364715T' })),
    ).toMatchObject({
      kind: 'unknown',
    });
  });

  it('a payment and a probe with wrong PayPal credentials fail, and the credentials are not shown', async () => {
    const other = await openPayPal({ secret: 'not-the-secret' });
    const outcome = await other.connection.pay(redirectAttempt());
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
    expect(JSON.stringify(outcome)).not.toContain('not-the-secret');
    expect(await other.connection.probe?.()).toBe(false);
    paypal.fake.trouble(/^GET/, { status: 404, body: { message: "a proxy's" } });
    expect(await paypal.connection.probe?.()).toBe(false);
    await other.close();
  });

  it("PayPal's account is told with a new token, and refused credentials are refused, never the cached token", async () => {
    const accepted = { result: 'ACCEPTED', account: FAKE_MERCHANT_ID, environment: undefined };
    expect(await paypal.connection.readAccount()).toEqual(accepted);
    paypal.fake.trouble(/^POST .v1.oauth2.token/, {
      status: 401,
      body: { error: 'invalid_client', error_description: 'Client Authentication failed' },
    });
    expect(await paypal.connection.readAccount()).toEqual({
      result: 'REFUSED',
      detail: 'the credentials are refused (HTTP 401)',
    });
    paypal.fake.trouble(/^GET .v1.identity/, {
      status: 403,
      body: { name: 'NOT_AUTHORIZED', message: 'no' },
    });
    expect(await paypal.connection.readAccount()).toEqual({ ...accepted, account: undefined });
    paypal.fake.trouble(/^GET .v1.identity/, 'lost before');
    expect(await paypal.connection.readAccount()).toMatchObject({ result: 'UNREACHABLE' });
    expect(paypal.fake.requests.filter(({ call }) => call.endsWith('/token'))).toHaveLength(4);
  });
});
