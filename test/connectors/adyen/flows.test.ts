import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import { lookUpOfOperation, operationOn, redirectAttempt } from '../attempts.ts';
import { type AdyenUnderTest, cardWith, connectAdyen, openAdyen, subjectOf } from './adyen-under-test.ts';
import { FAKE_ACCOUNT } from './fake-notifications.ts';

const DAY_MS = 86_400_000;

describe('payments at the fake Adyen', () => {
  let adyen: AdyenUnderTest;
  beforeEach(async () => {
    adyen = await openAdyen();
  });
  afterEach(() => adyen.close());

  const referenceOf = (outcome: Outcome) => ('reference' in outcome ? outcome.reference : undefined);
  const thePayment = () => {
    const [payment, ...others] = adyen.fake.payments.values();
    if (!payment || others.length > 0) throw new Error('expected exactly one payment');
    return payment;
  };
  /** The only waiting notification, as the core gets it. */
  async function told() {
    const [reading] = await adyen.delivered();
    return subjectOf(reading);
  }

  it('Adyen charges a card with one request, and returns the authorization code and the pspReference', async () => {
    const attempt = cardWith();
    const outcome = await adyen.connection.pay(attempt);
    expect(outcome).toMatchObject({
      kind: 'approved',
      authorizationCode: '033899',
      reference: thePayment().pspReference,
      providerData: { id: 'ADYEN', accountId: 'ShopECOM', status: 'Authorised' },
    });
    expect(adyen.fake.requests).toHaveLength(1);
    expect(adyen.fake.requests[0]?.key).toBe(attempt.transactionId);
    expect(thePayment()).toMatchObject({ reference: attempt.transactionId, captured: 300_000 });
  });

  it("Adyen authorizes without capturing, whatever the account's capture delay", async () => {
    await adyen.connection.pay(cardWith({ capture: false }));
    expect(thePayment()).toMatchObject({ state: 'authorised', captured: 0 });
    expect(adyen.fake.requests[0]?.body).not.toHaveProperty('captureDelayHours');
  });

  it('Adyen verifies a card with an authorization of zero', async () => {
    const verification = cardWith(
      { verify: true, capture: false },
      { money: { minorUnits: 0n, currency: 'USD' } },
    );
    expect(await adyen.connection.pay(verification)).toMatchObject({ kind: 'approved' });
    expect(thePayment().amount).toEqual({ currency: 'USD', value: 0 });
  });

  it.each([
    ['DECLINED', '05'],
    ['NOT_ENOUGH_BALANCE', '51'],
    ['CARD_EXPIRED', '54'],
    ['ERROR', '96'],
  ])('Adyen declines a card whose holder is %s with %s', async (holderName, iso8583Code) => {
    expect(await adyen.connection.pay(cardWith({ holderName }))).toMatchObject({
      kind: 'declined',
      iso8583Code,
    });
  });

  it.each([false, true])(
    'Adyen captures, and its notification reports the capture (partial: %s)',
    async (isPart) => {
      const attempt = cardWith({ capture: false });
      const paid = await adyen.connection.pay(attempt);
      await adyen.delivered();
      const money = { minorUnits: isPart ? 100_000n : 300_000n, currency: 'USD' };
      const operation = operationOn(attempt, referenceOf(paid), { money, isWhole: !isPart, isFinal: true });
      const outcome = await adyen.connection.capture?.(operation);
      expect(outcome).toMatchObject({ kind: 'pending', reference: expect.any(String) });
      expect(await told()).toMatchObject({
        transactionId: operation.transactionId,
        providerPaymentId: outcome && referenceOf(outcome),
        signed: { ...money, outcome: { kind: 'approved' } },
      });
      expect(thePayment().captured).toBe(Number(money.minorUnits));
    },
  );

  it('Adyen cancels an authorization', async () => {
    const attempt = cardWith({ capture: false });
    const paid = await adyen.connection.pay(attempt);
    await adyen.delivered();
    const operation = operationOn(attempt, referenceOf(paid));
    expect(await adyen.connection.cancel?.(operation)).toMatchObject({ kind: 'pending' });
    expect(await told()).toMatchObject({
      transactionId: operation.transactionId,
      signed: { minorUnits: 300_000n, currency: 'USD', outcome: { kind: 'approved' } },
    });
    expect(thePayment().state).toBe('cancelled');
  });

  it('Adyen refunds in parts up to the captured amount, and its notification reports any excess as declined', async () => {
    const attempt = cardWith();
    const paid = await adyen.connection.pay(attempt);
    await adyen.delivered();
    const kinds: string[] = [];
    for (const minorUnits of [100_000n, 200_000n, 1n]) {
      const money = { minorUnits, currency: 'USD' };
      const operation = operationOn(attempt, referenceOf(paid), { money, isWhole: false });
      expect(await adyen.connection.refund?.(operation)).toMatchObject({ kind: 'pending' });
      const subject = await told();
      expect(subject).toMatchObject({ transactionId: operation.transactionId, signed: money });
      kinds.push(subject.signed?.outcome.kind ?? '');
    }
    expect(kinds).toEqual(['approved', 'approved', 'declined']);
    expect(thePayment().refunded).toBe(300_000);
  });

  it('a payer redirected to Adyen pays, a notification reports the payment, and the payment can be refunded', async () => {
    const attempt = redirectAttempt();
    const sent = await adyen.connection.pay(attempt);
    if (sent.kind !== 'awaits_payer') throw new Error(sent.kind);
    // Adyen reports no pspReference before the payer has acted.
    expect(sent.reference).toBeUndefined();
    adyen.fake.payAt(payersPage(sent), true);
    const subject = await told();
    expect(subject).toMatchObject({
      transactionId: attempt.transactionId,
      signed: { minorUnits: 300_000n, outcome: { kind: 'approved', reference: thePayment().pspReference } },
    });
    const refund = operationOn(attempt, subject.providerPaymentId);
    expect(await adyen.connection.refund?.(refund)).toMatchObject({ kind: 'pending' });
  });

  it("a redirected payer who did not pay is reported by Adyen's notification", async () => {
    const sent = await adyen.connection.pay(redirectAttempt());
    if (sent.kind !== 'awaits_payer') throw new Error(sent.kind);
    adyen.fake.payAt(payersPage(sent), false);
    expect(await told()).toMatchObject({ signed: { outcome: { kind: 'declined', iso8583Code: '05' } } });
  });

  it("the outcome of a payment whose response was lost is unknown until Adyen's notification reports it", async () => {
    adyen.fake.next('lost_answer');
    const attempt = cardWith();
    expect(await adyen.connection.pay(attempt)).toMatchObject({ kind: 'unknown' });
    expect(await told()).toMatchObject({
      transactionId: attempt.transactionId,
      signed: {
        minorUnits: 300_000n,
        currency: 'USD',
        outcome: { kind: 'approved', reference: thePayment().pspReference },
      },
    });
  });

  it("a decline whose response was lost is an unknown outcome until Adyen's notification reports it", async () => {
    adyen.fake.next('lost_answer');
    expect(await adyen.connection.pay(cardWith({ holderName: 'DECLINED' }))).toMatchObject({
      kind: 'unknown',
    });
    expect(await told()).toMatchObject({ signed: { outcome: { kind: 'declined' } } });
  });

  it('the outcome of a payment whose request was lost on the way to Adyen stays unknown', async () => {
    adyen.fake.next('lost_request');
    expect(await adyen.connection.pay(cardWith())).toMatchObject({ kind: 'unknown' });
    expect([adyen.fake.payments.size, adyen.fake.notifications]).toEqual([0, []]);
  });

  it("a refund whose response was lost is identified by our reference in Adyen's notification", async () => {
    const attempt = cardWith();
    const paid = await adyen.connection.pay(attempt);
    await adyen.delivered();
    const operation = operationOn(attempt, referenceOf(paid));
    adyen.fake.next('lost_answer');
    expect(await adyen.connection.refund?.(operation)).toMatchObject({ kind: 'unknown' });
    expect(await told()).toMatchObject({
      transactionId: operation.transactionId,
      signed: { outcome: { kind: 'approved' } },
    });
  });

  it.each([
    ['lost_request', 'is made when it is repeated'],
    ['lost_answer', 'is not made again when it is repeated'],
  ] as const)('a refund with the fault %s %s', async (fault, _what) => {
    const attempt = cardWith();
    const paid = await adyen.connection.pay(attempt);
    await adyen.delivered();
    const money = { minorUnits: 100_000n, currency: 'USD' };
    const operation = operationOn(attempt, referenceOf(paid), { money, isWhole: false });
    adyen.fake.next(fault);
    expect(await adyen.connection.refund?.(operation)).toMatchObject({ kind: 'unknown' });
    const query = lookUpOfOperation('refund', operation);
    const repeated = await adyen.connection.repeatOperation?.(query);
    expect(repeated).toMatchObject({ kind: 'pending', reference: expect.any(String) });
    expect(await told()).toMatchObject({
      transactionId: operation.transactionId,
      signed: { ...money, outcome: { kind: 'approved' } },
    });
    expect(thePayment().refunded).toBe(100_000);
  });

  it.each([
    ['that Adyen already has', { reference: 'QFQTPCQ8HXSKGK82' }],
    ['whose key Adyen may have forgotten', { ageMs: 6 * DAY_MS + 1 }],
  ])('a look-up at Adyen does not repeat an operation %s', async (_what, over) => {
    const operation = operationOn(cardWith(), 'NC6HT9CRT65ZGN82');
    const query = lookUpOfOperation('cancel', operation, over);
    expect(await adyen.connection.repeatOperation?.(query)).toMatchObject({ kind: 'unknown' });
    expect(adyen.fake.requests).toEqual([]);
  });

  it('a payment is not_sent if Adyen marks its error as transient', async () => {
    adyen.fake.next('transient');
    expect(await adyen.connection.pay(cardWith())).toMatchObject({
      kind: 'not_sent',
      because: 'unreachable',
    });
    expect(adyen.fake.payments.size).toBe(0);
  });

  it.each(['error', 'in_progress'] as const)(
    'the outcome of a payment at Adyen is unknown after the fault %s',
    async (fault) => {
      adyen.fake.next(fault);
      expect(await adyen.connection.pay(cardWith())).toMatchObject({ kind: 'unknown' });
    },
  );

  it('an attempt sent twice with its key is charged once at Adyen', async () => {
    const attempt = cardWith();
    const first = await adyen.connection.pay(attempt);
    const second = await adyen.connection.pay(attempt);
    expect(referenceOf(second)).toBe(referenceOf(first));
    expect(adyen.fake.payments.size).toBe(1);
  });

  it('a refund sent twice with its key is made once at Adyen', async () => {
    const attempt = cardWith();
    const paid = await adyen.connection.pay(attempt);
    const money = { minorUnits: 100_000n, currency: 'USD' };
    const operation = operationOn(attempt, referenceOf(paid), { money, isWhole: false });
    await adyen.connection.refund?.(operation);
    await adyen.connection.refund?.(operation);
    expect(thePayment().refunded).toBe(100_000);
  });

  it('an operation on a payment with an unknown pspReference is not sent to Adyen', async () => {
    const operation = operationOn(cardWith(), undefined);
    for (const name of ['capture', 'cancel', 'refund'] as const) {
      expect(await adyen.connection[name]?.(operation)).toMatchObject({
        kind: 'not_sent',
        because: 'turned_away',
      });
    }
    expect(adyen.fake.requests).toEqual([]);
  });

  it('a payment with a method that the Adyen settings do not list is not sent', async () => {
    const attempt = redirectAttempt({ method: { by: 'payer', type: 'WALLET_D', show: 'page' } });
    expect(await adyen.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(adyen.fake.requests).toEqual([]);
  });

  it('wallets are accepted at Adyen only if the settings list some', async () => {
    const without = connectAdyen({ redirect_methods: {} });
    expect([without.capabilities.methods, adyen.connection.capabilities.methods]).toEqual([
      ['CARD'],
      ['CARD', 'PAYER_PAGE'],
    ]);
    await without.close();
  });

  it("a probe of Adyen uses the connection's key and merchant account, and moves no money", async () => {
    expect(await adyen.connection.probe?.()).toBe(true);
    const stranger = connectAdyen({ base_url: adyen.fake.url, merchant_account: 'OtherECOM' });
    expect(await stranger.probe?.()).toBe(false);
    expect(await adyen.connection.readAccount()).toEqual({
      ...{ result: 'ACCEPTED', account: FAKE_ACCOUNT, environment: undefined },
    });
    expect(await stranger.readAccount()).toMatchObject({ result: 'REFUSED' });
    expect(adyen.fake.payments.size).toBe(0);
    await stranger.close();
  });
});
