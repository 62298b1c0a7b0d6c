import { describe, expect, it } from 'vitest';
import type { LookUp } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { withClockAhead } from '../../support/process-clock.ts';
import { cardAttempt, operationOn } from '../attempts.ts';
import { lookUpOperation, openedForEach } from '../under-test.ts';
import { AUTHORIZE, cardWith, lookUp, openStripe, paid } from './stripe-under-test.ts';

const stripe = openedForEach(openStripe);

const approve = '4242424242424242';
const CREATE = /^POST .*intents$/;
const CONFIRM = /confirm$/;
const DAY_MS = 24 * 3_600_000;
const CLOSE = { close: true };

describe('a lost confirmation', () => {
  const cards = [
    ['approved', approve],
    ['declined', '4000000000009995'],
    ['awaits_payer', '4000002760003184'],
  ] as const;
  const faults = ['lost_after', 'silent', 'error_after'] as const;
  const rows = cards.flatMap(([kind, card]) => faults.map((fault) => [kind, fault, card] as const));

  it.each(rows)(
    'the outcome of a lost confirmation, %s, with the fault %s, is unknown until a look-up finds it',
    async (kind, fault, card) => {
      stripe.fake.fail(CONFIRM, fault);
      const attempt = cardAttempt(card);
      const outcome = await (fault === 'silent' ? stripe.impatient : stripe.connection).pay(attempt);
      expect(outcome).toMatchObject({ kind: 'unknown', reference: expect.stringMatching(/^pi_/) });
      expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind });
      // A look-up without any stored outcome, as after the process has died, also finds it.
      expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind });
      expect(stripe.intent().id).toBe(referenceOf(outcome));
    },
  );

  it('a confirmation that never arrived has an unknown outcome until it is closed, and is then refused for good', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stripe.fake.fail(CONFIRM, { late: promise });
    const attempt = cardAttempt(approve);
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'not_sent' });
    resolve();
    await expect.poll(() => stripe.fake.idle()).toBe(true);
    expect(stripe.intent()).toMatchObject({ status: 'canceled', amount_received: 0, latest_charge: null });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'not_sent' });
  });

  it('a look-up cannot close a confirmation in progress, and learns the result once the confirmation is done', async () => {
    const { promise, resolve } = Promise.withResolvers<void>();
    stripe.fake.pace.confirmed = promise;
    const attempt = cardAttempt(approve);
    const outcome = await stripe.impatient.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'unknown' });
    resolve();
    await expect.poll(() => stripe.intent().status).toBe('succeeded');
    expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'approved' });
  });

  it('a lost confirmation is never made a second time', async () => {
    stripe.fake.fail(CONFIRM, 'lost_after');
    const attempt = cardAttempt(approve);
    const outcome = await stripe.connection.pay(attempt);
    await lookUp(stripe, attempt, outcome, CLOSE);
    expect(stripe.fake.calls().filter((call) => CONFIRM.test(call))).toHaveLength(1);
  });
});

it.each([null, { type: 'card_error', code: 'charge_expired_for_capture', message: 'Too late.' }])(
  'an authorization that Stripe canceled has expired, whatever its last error was: %j',
  async (last_payment_error) => {
    const attempt = cardWith(approve, AUTHORIZE);
    const outcome = await stripe.connection.pay(attempt);
    const [intent] = stripe.fake.ledger.intents.values();
    Object.assign(intent ?? {}, { last_payment_error });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'approved' });
    stripe.fake.advance(8 * DAY_MS);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({
      kind: 'expired',
      providerData: { status: 'canceled' },
    });
  },
);

it('a canceled payment has expired, and was not avoided, if it was charged without a payment method', async () => {
  const { attempt, outcome } = await paid(stripe);
  Object.assign(stripe.intent(), { status: 'canceled', payment_method: null });
  expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'expired' });
});

it('a payment that was declined stays declined after Stripe canceled it', async () => {
  const attempt = cardAttempt(approve);
  const outcome = await stripe.connection.pay(attempt);
  const [intent] = stripe.fake.ledger.intents.values();
  const last_payment_error = { type: 'card_error', code: 'card_declined', decline_code: 'do_not_honor' };
  Object.assign(intent ?? {}, {
    status: 'canceled',
    last_payment_error,
    latest_charge: { status: 'failed' },
  });
  expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'declined' });
});

describe('a payment whose process died', () => {
  it('a payment whose process died before anything was sent has an unknown outcome, and is closed for good', async () => {
    const attempt = cardAttempt(approve);
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'unknown' });
    Object.assign(stripe.intent(), { status: 'requires_confirmation' });
    expect(await lookUp(stripe, attempt, undefined, CLOSE)).toMatchObject({ kind: 'not_sent' });
    // A late request gets the closed intent.
    expect(await stripe.connection.pay(attempt)).toMatchObject({ kind: 'unknown' });
    expect(stripe.intent()).toMatchObject({ status: 'canceled', amount_received: 0 });
  });

  it('a payment whose process died is found by search after a day, when its key may be forgotten', async () => {
    const attempt = cardAttempt(approve);
    await stripe.connection.pay(attempt);
    stripe.fake.advance(2 * DAY_MS);
    const ageMs = 2 * DAY_MS;
    expect(await lookUp(stripe, attempt, undefined, { ageMs })).toMatchObject({ kind: 'approved' });
    expect(stripe.fake.calls().filter((call) => CREATE.test(call))).toHaveLength(1);
  });

  it('a payment whose process died is not created again with a forgotten key, even if the clock is behind', async () => {
    const attempt = cardAttempt(approve);
    await stripe.connection.pay(attempt);
    // The process's clock is behind Stripe's, which the fake shares.
    stripe.fake.advance(5 * DAY_MS);
    const late = { ageMs: 2 * DAY_MS, close: true };
    const outcome = await withClockAhead(-3 * DAY_MS, () => lookUp(stripe, attempt, undefined, late));
    expect(outcome).toMatchObject({ kind: 'approved' });
    expect(stripe.fake.ledger.intents.size).toBe(1);
  });

  it('a payment whose process died keeps its unknown outcome if a search finds nothing, and is not created', async () => {
    const attempt = cardAttempt(approve);
    const ageMs = 2 * DAY_MS;
    expect(await lookUp(stripe, attempt, undefined, { ageMs, close: true })).toMatchObject({
      kind: 'unknown',
    });
    expect(stripe.fake.calls()).toEqual(['GET /v1/payment_intents/search']);
  });

  it('a payment whose process died raises an alarm if the search finds it twice', async () => {
    const attempt = cardAttempt(approve);
    await stripe.connection.pay(attempt);
    const data = [stripe.intent(), { ...stripe.intent(), id: 'pi_2' }];
    stripe.fake.fail(/search$/, { answer: { status: 200, body: { data } } });
    expect(await lookUp(stripe, attempt, undefined, { ageMs: 2 * DAY_MS })).toMatchObject({ alarm: true });
  });

  it('a payment whose process died is found by its key if a notification names something else', async () => {
    const attempt = cardAttempt(approve);
    await stripe.connection.pay(attempt);
    const hint = { providerPaymentId: 're_1' };
    expect(await lookUp(stripe, attempt, undefined, { hint })).toMatchObject({ kind: 'approved' });
  });

  it('a payment whose process died does not match another payment in the search', async () => {
    await stripe.connection.pay(cardAttempt(approve));
    stripe.fake.fail(/search$/, { answer: { status: 200, body: { data: [stripe.intent()] } } });
    expect(await lookUp(stripe, cardAttempt(approve), undefined, { ageMs: 2 * DAY_MS })).toMatchObject({
      kind: 'unknown',
      detail: expect.stringMatching(/^the search found nothing/),
    });
  });

  it('a payment whose process died is not looked up at Stripe if its kind is never sent there', async () => {
    const { method, ...facts } = cardAttempt(approve);
    const of: LookUp['of'] = { kind: 'PAYER_PAGE', type: 'WALLET_B', attempt: facts };
    expect(await lookUp(stripe, { ...facts, method }, undefined, { of })).toMatchObject({ kind: 'unknown' });
    expect(stripe.fake.requests).toEqual([]);
  });
});

describe('a lost operation', () => {
  const calls = { capture: /capture$/, cancel: /cancel$/, refund: /refunds$/ };
  const kinds = ['capture', 'cancel', 'refund'] as const;

  it.each(kinds)(
    'the outcome of a Stripe operation whose response was lost is unknown until a look-up finds the %s',
    async (kind) => {
      const operation = await operationAfterPayment(kind);
      stripe.fake.fail(calls[kind], 'lost_after');
      expect(await stripe.connection[kind]?.(operation)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation(stripe, kind, operation)).toMatchObject({ kind: 'approved' });
    },
  );

  it.each(kinds)(
    'a lost operation that never reached Stripe is closed, so that a late %s is refused',
    async (kind) => {
      const operation = await operationAfterPayment(kind);
      const { promise, resolve } = Promise.withResolvers<void>();
      stripe.fake.fail(calls[kind], { late: promise });
      expect(await stripe.connection[kind]?.(operation)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation(stripe, kind, operation)).toMatchObject({ kind: 'unknown' });
      expect(await lookUpOperation(stripe, kind, operation, CLOSE)).toMatchObject({ kind: 'not_sent' });
      expect(await lookUpOperation(stripe, kind, operation, CLOSE)).toMatchObject({ kind: 'not_sent' });
      const before = JSON.stringify([stripe.intent().status, [...stripe.fake.ledger.refunds]]);
      resolve();
      await expect.poll(() => stripe.fake.idle()).toBe(true);
      expect(JSON.stringify([stripe.intent().status, [...stripe.fake.ledger.refunds]])).toBe(before);
    },
  );

  it.each(kinds)(
    'a lost operation that never reached Stripe is closed after a day without using its key: %s',
    async (kind) => {
      const operation = await operationAfterPayment(kind);
      const over = { close: true, ageMs: 2 * DAY_MS };
      expect(await lookUpOperation(stripe, kind, operation, over)).toMatchObject({ kind: 'not_sent' });
      expect(stripe.fake.requests.map(({ key }) => key)).not.toContain(operation.transactionId);
    },
  );

  it.each(kinds)(
    'a lost operation uses up its key when closed, however far the clock is ahead: a late %s is refused',
    async (kind) => {
      const operation = await operationAfterPayment(kind);
      stripe.fake.advance(-10 * DAY_MS);
      const closed = await withClockAhead(10 * DAY_MS, () => lookUpOperation(stripe, kind, operation, CLOSE));
      expect(closed).toMatchObject({ kind: 'not_sent' });
      expect(stripe.fake.requests.map(({ key }) => key)).toContain(operation.transactionId);
    },
  );

  it('a lost operation that started and failed at Stripe stays unknown and cannot be closed', async () => {
    const operation = await operationAfterPayment('refund');
    stripe.fake.fail(calls.refund, 'error_after');
    await stripe.connection.refund?.(operation);
    stripe.fake.ledger.refunds.clear();
    expect(await lookUpOperation(stripe, 'refund', operation, CLOSE)).toMatchObject({ kind: 'unknown' });
  });

  it('a lost refund that never reached Stripe is not mistaken for another of the same amount', async () => {
    const attempt = cardAttempt(approve);
    const { reference } = await paid(stripe, attempt);
    const part = { money: { ...attempt.money, minorUnits: 100n } };
    const [other, lost] = [operationOn(attempt, reference, part), operationOn(attempt, reference, part)];
    expect(await stripe.connection.refund?.(other)).toMatchObject({ kind: 'approved' });
    expect(await lookUpOperation(stripe, 'refund', lost)).toMatchObject({ kind: 'unknown' });
    expect(await lookUpOperation(stripe, 'refund', lost, CLOSE)).toMatchObject({ kind: 'not_sent' });
  });

  it.each([{ has_more: true }, {}])(
    'a lost refund that may be missing from an incomplete list is not closed: %j',
    async (more) => {
      const operation = await operationAfterPayment('refund');
      const body = { object: 'list', data: [], ...more };
      stripe.fake.fail(/^GET .*refunds$/, { answer: { status: 200, body } });
      expect(await lookUpOperation(stripe, 'refund', operation, CLOSE)).toMatchObject({ kind: 'unknown' });
    },
  );

  it('the outcome of a lost operation on a payment that was never reported is unknown', async () => {
    const operation = operationOn(cardAttempt(approve), undefined);
    expect(await lookUpOperation(stripe, 'refund', operation, CLOSE)).toMatchObject({ kind: 'unknown' });
  });

  async function operationAfterPayment(kind: 'capture' | 'cancel' | 'refund') {
    const attempt = cardWith(approve, kind === 'refund' ? {} : AUTHORIZE);
    const { reference } = await paid(stripe, attempt);
    return operationOn(attempt, reference);
  }
});

function referenceOf(outcome: Outcome): string | undefined {
  return 'reference' in outcome ? outcome.reference : undefined;
}
