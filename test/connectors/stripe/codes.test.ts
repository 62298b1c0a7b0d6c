import { describe, expect, it } from 'vitest';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { operationOn } from '../attempts.ts';
import { lookUpOperation, openedForEach } from '../under-test.ts';
import { codeAttempt, LOCAL_TYPES, type LocalType, lookUp, openStripe } from './stripe-under-test.ts';

const stripe = openedForEach(openStripe);

const CREATE = /^POST .*intents$/;
const CANCEL = /cancel$/;
const DAY_MS = 86_400_000;
const CLOSE = { close: true };
const OVER = { payerTimeLeftMs: -1 };

const requestsOf = (call: RegExp) => stripe.fake.requests.filter((request) => call.test(request.call));
const codes = () => stripe.fake.ledger.codes;

/** Makes a code. */
async function shown(type: LocalType, over: Partial<PaymentAttempt> = {}) {
  const attempt = codeAttempt(type, over);
  const outcome = await stripe.connection.pay(attempt);
  if (outcome.kind !== 'awaits_payer')
    throw new Error(`expected awaits_payer, got ${JSON.stringify(outcome)}`);
  return { attempt, outcome, id: String(outcome.reference) };
}

/** The last second of the day, in a time zone, that is some days after now. */
function endOfDay(days: number, zone: string): Date {
  const today = Temporal.Now.zonedDateTimeISO(zone).startOfDay();
  return new Date(today.add({ days: days + 1 }).epochMilliseconds - 1_000);
}

describe('a code of Stripe', () => {
  it('a Pix code is shown with its text, its image, its page and its end', async () => {
    const { attempt, outcome, id } = await shown('PIX');
    expect(outcome).toMatchObject({
      reference: id,
      providerPaymentId: id,
      show: {
        instructions: {
          text: `00020126580014br.gov.bcb.pix0136${id}6304ABCD`,
          image: `https://payments.stripe.com/pix/${id}.png`,
          document: `https://payments.stripe.com/pix/${id}`,
        },
      },
      until: new Date(Math.floor(attempt.expiresAtMs / 1_000) * 1_000),
    });
    expect(outcome).not.toHaveProperty('received');
    expect(stripe.fake.calls()).toEqual(['POST /v1/payment_intents']);
  });

  it('a boleto is shown with its digits, its bars and its document, until the end of a day in São Paulo', async () => {
    const { outcome, id } = await shown('BOLETO', {
      expiresAtMs: endOfDay(5, 'America/Sao_Paulo').getTime(),
    });
    expect(outcome.show).toEqual({
      instructions: {
        number: '03399333845293749345103201015660199700000300000',
        // The digits of the bars follow from those of the line.
        barcode: '03391997000003000009333852937493450320101566',
        document: `https://payments.stripe.com/boleto/${id}/pdf`,
      },
    });
    expect(outcome.until).toEqual(endOfDay(5, 'America/Sao_Paulo'));
  });

  it('an OXXO voucher is shown with its digits and its page, until the end of a day in Mexico City', async () => {
    const { outcome, id } = await shown('OXXO', {
      expiresAtMs: endOfDay(2, 'America/Mexico_City').getTime(),
    });
    expect(outcome.show).toEqual({
      instructions: {
        number: expect.stringMatching(/^\d{32}$/),
        document: `https://payments.stripe.com/oxxo/${id}`,
      },
    });
    expect(outcome.until).toEqual(endOfDay(2, 'America/Mexico_City'));
  });

  it('a transfer is shown with its account, and has no end at Stripe', async () => {
    const { outcome, id } = await shown('SPEI');
    expect(outcome.show).toEqual({
      instructions: {
        account: '002180650612345670',
        bankName: 'BANAMEX',
        reference: 'ABC123XYZ',
        document: `https://payments.stripe.com/customer_balance/${id}`,
      },
    });
    expect(outcome).not.toHaveProperty('until');
  });

  it.each(LOCAL_TYPES)('a code of %s is found with the same instructions by every look-up', async (type) => {
    const { attempt, outcome } = await shown(type);
    const { show } = outcome;
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'awaits_payer', show });
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'awaits_payer', show });
    stripe.fake.advance(2 * DAY_MS);
    const late = { ageMs: 2 * DAY_MS };
    expect(await lookUp(stripe, attempt, undefined, late)).toMatchObject({ kind: 'awaits_payer', show });
    expect(stripe.fake.ledger.intents.size).toBe(1);
    expect(codes().customers.size).toBe(type === 'SPEI' ? 1 : 0);
  });

  it.each(LOCAL_TYPES)('a code of %s that is paid is approved', async (type) => {
    const { attempt, outcome, id } = await shown(type);
    codes().pay(id);
    const paid = await lookUp(stripe, attempt, outcome, CLOSE);
    expect(paid).toMatchObject({ kind: 'approved', reference: id, providerPaymentId: id });
    expect(paid).toMatchObject({ totals: { captured: 15_000n, refunded: 0n } });
    expect(paid).not.toHaveProperty('received');
  });

  it.each(['BOLETO', 'OXXO', 'PIX'] as const)(
    'a code of %s that is paid but not confirmed yet is pending, and cannot be closed',
    async (type) => {
      const { attempt, outcome, id } = await shown(type);
      codes().pay(id, { isConfirmed: false });
      expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'pending' });
      // The bank confirms after the end of the code.
      stripe.fake.advance(30 * DAY_MS);
      expect(await lookUp(stripe, attempt, outcome, OVER)).toMatchObject({ kind: 'pending' });
      codes().pay(id);
      expect(await lookUp(stripe, attempt, outcome, OVER)).toMatchObject({ kind: 'approved' });
    },
  );

  it.each(['BOLETO', 'OXXO', 'PIX'] as const)(
    'a code of %s expires by the word of Stripe, and its intent, which could get a new code, is canceled',
    async (type) => {
      const { attempt, outcome } = await shown(type);
      expect(await lookUp(stripe, attempt, outcome, OVER)).toMatchObject({ kind: 'awaits_payer' });
      stripe.fake.advance(10 * DAY_MS);
      expect(await lookUp(stripe, attempt, outcome)).toMatchObject({
        kind: 'expired',
        providerData: { status: 'canceled' },
      });
      expect(stripe.intent()).toMatchObject({ status: 'canceled' });
      expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'expired' });
      expect(requestsOf(CANCEL)).toHaveLength(1);
    },
  );

  it('a code has not expired for us before its intent is canceled', async () => {
    const { attempt, outcome } = await shown('PIX');
    stripe.fake.advance(10 * DAY_MS);
    stripe.fake.fail(CANCEL, 'lost_before');
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'expired' });
  });

  it.each([
    ['payment_intent_payment_attempt_failed', 'expired'],
    ['payment_method_provider_decline', 'declined'],
  ] as const)('a code that ends with %s has %s', async (code, kind) => {
    const { attempt, outcome, id } = await shown('PIX');
    codes().expire(id, code);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind });
    expect(stripe.intent()).toMatchObject({ status: 'canceled' });
  });

  it.each(['BOLETO', 'SPEI', 'PIX'] as const)('a code of %s is closed as its merchant asks', async (type) => {
    const { attempt, outcome, id } = await shown(type);
    expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'expired' });
    if (type !== 'SPEI') expect(() => codes().pay(id)).toThrow();
  });

  it('a voucher of OXXO cannot be closed: its state is reported', async () => {
    const { attempt, outcome } = await shown('OXXO');
    expect(stripe.connection.capabilities.localMethods.OXXO).toMatchObject({ close: false, refunds: 'none' });
    expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'awaits_payer' });
    expect(requestsOf(CANCEL)).toEqual([]);
  });

  it('a code that has ended in the response to its creation is unknown until its intent is canceled', async () => {
    const attempt = codeAttempt('PIX');
    await stripe.connection.pay(attempt);
    codes().expire(String(stripe.intent().id));
    const body = structuredClone(stripe.intent());
    stripe.fake.fail(CREATE, { answer: { status: 200, body } });
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'unknown', reference: body.id });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'expired' });
    expect(stripe.intent()).toMatchObject({ status: 'canceled' });
  });

  it('a code that Stripe did not close can still be paid', async () => {
    const { attempt, outcome } = await shown('PIX');
    stripe.fake.fail(CANCEL, 'lost_before');
    expect(await lookUp(stripe, attempt, outcome, CLOSE)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'awaits_payer' });
  });
});

describe('a transfer to a customer of Stripe', () => {
  it('a transfer has a customer of its own, so that what is left of it settles no other payment', async () => {
    const first = await shown('SPEI');
    codes().pay(first.id, { amount: 40_000 });
    const second = await shown('SPEI');
    expect(second.outcome).not.toHaveProperty('received');
    expect(codes().customers.size).toBe(2);
    expect(requestsOf(/customers$/).map(({ key }) => key)).toEqual([
      `${first.attempt.transactionId}:customer`,
      `${second.attempt.transactionId}:customer`,
    ]);
  });

  it('a transfer of too little stays open with the part that has arrived, until the rest does', async () => {
    const { attempt, outcome, id } = await shown('SPEI');
    codes().pay(id, { amount: 5_000 });
    const partly = await lookUp(stripe, attempt, outcome);
    expect(partly).toMatchObject({ kind: 'awaits_payer', received: { minorUnits: 5_000n, currency: 'MXN' } });
    codes().pay(id, { amount: 10_000 });
    const paid = await lookUp(stripe, attempt, outcome);
    expect(paid).toMatchObject({ kind: 'approved' });
    expect(paid).not.toHaveProperty('received');
  });

  it('a transfer of too much is approved with what has arrived', async () => {
    const { attempt, outcome, id } = await shown('SPEI');
    codes().pay(id, { amount: 22_500 });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({
      kind: 'approved',
      received: { minorUnits: 22_500n, currency: 'MXN' },
      totals: { captured: 15_000n },
    });
  });

  it('a transfer without its money is canceled at our own end, since it never ends at Stripe', async () => {
    const { attempt, outcome } = await shown('SPEI');
    stripe.fake.advance(10 * DAY_MS);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'awaits_payer' });
    const expired = await lookUp(stripe, attempt, outcome, OVER);
    expect(expired).toMatchObject({ kind: 'expired' });
    expect(expired).not.toHaveProperty('received');
    expect(stripe.intent()).toMatchObject({ status: 'canceled' });
  });

  it('a transfer of too little expires at our own end with the part that has arrived', async () => {
    const { attempt, outcome, id } = await shown('SPEI');
    codes().pay(id, { amount: 5_000 });
    const received = { minorUnits: 5_000n, currency: 'MXN' };
    expect(await lookUp(stripe, attempt, outcome, OVER)).toMatchObject({ kind: 'expired', received });
    // Money that arrives later stays on the balance.
    codes().pay(id, { amount: 2_000 });
    const more = { minorUnits: 7_000n, currency: 'MXN' };
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'expired', received: more });
  });

  it.each([
    ['silence', 'lost_before', 'unknown'],
    [
      'a refusal',
      { answer: { status: 403, body: { error: { type: 'invalid_request_error' } } } },
      'approved',
    ],
  ] as const)(
    'a transfer whose balance is asked for and gets %s is not approved without need',
    async (_what, fault, kind) => {
      const { attempt, outcome, id } = await shown('SPEI');
      codes().pay(id);
      stripe.fake.fail(/cash_balance$/, fault);
      expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind });
      expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'approved' });
    },
  );

  it.each(['lost_before', 'lost_after'] as const)(
    'a customer whose response is lost (%s) is asked for once more',
    async (fault) => {
      stripe.fake.fail(/customers$/, fault);
      await shown('SPEI');
      expect(codes().customers.size).toBe(1);
    },
  );

  it('a key that may make no customers is no fault of the connection', async () => {
    const body = { error: { type: 'invalid_request_error', code: 'more_permissions_required' } };
    stripe.fake.fail(/customers$/, { answer: { status: 403, body } });
    const outcome = await stripe.connection.pay(codeAttempt('SPEI'));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
  });

  it('a transfer is not sent if no customer can be made', async () => {
    for (const _ of [1, 2]) stripe.fake.fail(/customers$/, 'lost_before');
    expect(await stripe.connection.pay(codeAttempt('SPEI'))).toMatchObject({ kind: 'not_sent' });
    expect(stripe.fake.ledger.intents.size).toBe(0);
  });
});

describe('a lost creation of a code', () => {
  it.each(
    LOCAL_TYPES.flatMap((type) =>
      (['lost_before', 'lost_after'] as const).map((fault) => [type, fault] as const),
    ),
  )(
    'a lost creation of a code (%s, %s) is repeated once, with the same key and body',
    async (type, fault) => {
      stripe.fake.fail(CREATE, fault);
      const { attempt } = await shown(type);
      const [first, second, ...others] = requestsOf(CREATE);
      expect([second?.key, second?.fields, others]).toEqual([attempt.transactionId, first?.fields, []]);
      expect(stripe.fake.ledger.intents.size).toBe(1);
    },
  );

  it('a creation that is lost twice has an unknown outcome, until a look-up finds the code', async () => {
    for (const _ of [1, 2]) stripe.fake.fail(CREATE, 'lost_after');
    const attempt = codeAttempt('BOLETO');
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'unknown' });
    expect(requestsOf(CREATE)).toHaveLength(2);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'awaits_payer' });
    expect(stripe.fake.ledger.intents.size).toBe(1);
  });

  it.each([
    [402, { type: 'card_error', code: 'payment_method_provider_decline' }, 'declined'],
    [400, { type: 'invalid_request_error', param: 'amount' }, 'unknown'],
    [409, { type: 'invalid_request_error', code: 'idempotency_key_in_use' }, 'unknown'],
  ])(
    'a creation whose repeat gets %i has the outcome of the first only if Stripe keeps it',
    async (status, error, kind) => {
      const attempt = codeAttempt('PIX');
      await stripe.connection.pay(attempt);
      const payment_intent = { ...structuredClone(stripe.intent()), status: 'requires_payment_method' };
      stripe.fake.fail(CREATE, 'lost_before');
      stripe.fake.fail(CREATE, { answer: { status, body: { error: { ...error, payment_intent } } } });
      expect(await stripe.connection.pay(attempt)).toMatchObject({ kind });
    },
  );

  it('a creation that used up the deadline is not repeated', async () => {
    stripe.fake.fail(CREATE, 'silent');
    const attempt = codeAttempt('PIX');
    expect(await stripe.impatient.pay(attempt)).toMatchObject({ kind: 'unknown' });
    expect(requestsOf(CREATE)).toHaveLength(1);
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'awaits_payer' });
  });

  it('a creation that failed at Stripe after it had begun is found by the search', async () => {
    stripe.fake.fail(CREATE, 'error_after');
    const attempt = codeAttempt('PIX');
    const outcome = await stripe.connection.pay(attempt);
    expect(outcome).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'unknown' });
    stripe.fake.advance(120_000);
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ kind: 'awaits_payer' });
  });

  it.each(LOCAL_TYPES)(
    'a code of %s that was never made is prevented for good, and a late creation refused',
    async (type) => {
      const attempt = codeAttempt(type);
      expect(await lookUp(stripe, attempt, undefined, CLOSE)).toMatchObject({ kind: 'not_sent' });
      expect(await stripe.connection.pay(attempt)).toMatchObject({ kind: 'unknown' });
      expect(await lookUp(stripe, attempt, undefined, CLOSE)).toMatchObject({ kind: 'not_sent' });
      expect(stripe.intent()).toMatchObject({ status: 'canceled', next_action: null });
    },
  );

  it('a code that Stripe has made is not prevented, but found by the search and canceled', async () => {
    const { attempt } = await shown('PIX');
    expect(await lookUp(stripe, attempt, undefined, CLOSE)).toMatchObject({ kind: 'unknown' });
    stripe.fake.advance(120_000);
    expect(await lookUp(stripe, attempt, undefined, CLOSE)).toMatchObject({ kind: 'expired' });
    expect(stripe.fake.ledger.intents.size).toBe(1);
  });

  it('a code that would already have ended is not made any more', async () => {
    const attempt = codeAttempt('PIX', { expiresAtMs: Date.now() + 60_000 });
    stripe.fake.advance(120_000);
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'unknown' });
    expect(await lookUp(stripe, attempt, undefined, CLOSE)).toMatchObject({ kind: 'not_sent' });
  });

  it('a code is not created again once its key may be forgotten', async () => {
    const ageMs = 2 * DAY_MS;
    const found = await lookUp(stripe, codeAttempt('PIX'), undefined, { ageMs, close: true });
    expect(found).toMatchObject({ kind: 'unknown' });
    expect(stripe.fake.calls()).toEqual(['GET /v1/payment_intents/search']);
  });
});

describe('what Stripe refuses of a code', () => {
  it.each([
    ['BOLETO', 499, 'BRL'],
    ['BOLETO', 5_000_000, 'BRL'],
    ['OXXO', 1_000_001, 'MXN'],
    ['PIX', 1_000, 'USD'],
  ] as const)(
    'a code of %s that Stripe refuses did not happen, and names what is refused: %i %s',
    async (type, units, currency) => {
      const money = { minorUnits: BigInt(units), currency };
      const outcome = await stripe.connection.pay(codeAttempt(type, { money }));
      expect(outcome).toMatchObject({
        kind: 'not_sent',
        because: 'turned_away',
        refused: expect.any(String),
      });
    },
  );

  it('a description that Stripe refuses is left out of a code', async () => {
    const body = { error: { type: 'invalid_request_error', param: 'description', message: 'no' } };
    stripe.fake.fail(CREATE, { answer: { status: 400, body } });
    const { attempt } = await shown('PIX');
    const [first, second] = requestsOf(CREATE);
    expect([first?.fields.description, second?.fields.description]).toEqual([attempt.description, undefined]);
    expect(second?.key).toBe(attempt.transactionId);
    stripe.fake.advance(120_000);
    expect(await lookUp(stripe, attempt, undefined)).toMatchObject({ kind: 'awaits_payer' });
  });

  it.each([
    ['BOLETO', 61],
    ['OXXO', 0],
    ['OXXO', 8],
  ] as const)('a code of %s that would end after %i days is not sent', async (type, days) => {
    const expiresAtMs = endOfDay(days, 'America/Sao_Paulo').getTime() - 6 * 3_600_000;
    expect(await stripe.connection.pay(codeAttempt(type, { expiresAtMs }))).toMatchObject({
      kind: 'not_sent',
    });
    expect(stripe.fake.requests).toEqual([]);
  });

  it('a type that the connection does not offer is not sent', async () => {
    const method = { ...codeAttempt('PIX').method, type: 'EFECTY' } as PaymentAttempt['method'];
    expect(await stripe.connection.pay(codeAttempt('PIX', { method }))).toMatchObject({ kind: 'not_sent' });
    expect(stripe.fake.requests).toEqual([]);
  });
});

describe('a refund of a code', () => {
  it('a payment by Pix is refunded in parts', async () => {
    const { attempt, outcome, id } = await shown('PIX');
    codes().pay(id);
    for (const minorUnits of [5_000n, 10_000n]) {
      const operation = operationOn(attempt, outcome.reference, { money: { minorUnits, currency: 'BRL' } });
      expect(await stripe.connection.refund?.(operation)).toMatchObject({ kind: 'approved' });
      expect(await lookUpOperation(stripe, 'refund', operation)).toMatchObject({ kind: 'approved' });
    }
    expect(await lookUp(stripe, attempt, outcome)).toMatchObject({ totals: { refunded: 15_000n } });
  });

  it('only payments by Pix are refunded at all', () => {
    const { localMethods } = stripe.connection.capabilities;
    const refunds = Object.fromEntries(Object.entries(localMethods).map(([type, it]) => [type, it.refunds]));
    expect(refunds).toEqual({ PIX: 'several', BOLETO: 'none', OXXO: 'none', SPEI: 'none' });
  });
});

describe('the setting `methods`', () => {
  it('the setting adds a type of the merchant', async () => {
    const other = await openStripe({ settings: { methods: { OXXO_PAY: 'oxxo' } } });
    const { localMethods } = other.connection.capabilities;
    expect(Object.keys(localMethods)).toEqual(['PIX', 'BOLETO', 'OXXO', 'SPEI', 'OXXO_PAY']);
    const method = { ...codeAttempt('OXXO').method, type: 'OXXO_PAY' } as PaymentAttempt['method'];
    const outcome: Outcome = await other.connection.pay(codeAttempt('OXXO', { method }));
    expect(outcome).toMatchObject({ kind: 'awaits_payer' });
    await other.close();
  });
});
