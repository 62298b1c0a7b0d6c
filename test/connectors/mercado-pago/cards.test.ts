import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { StoredCredentialsSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { CardOptions, PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { CaptureOperation, Operation } from '#src/connectors/port/connector.ts';
import { cardAttempt, operationOn, SECURITY_CODE } from '../attempts.ts';
import { lookUp, lookUpOperation, openedForEach } from '../under-test.ts';
import { refusal } from './answers.ts';
import { webhookOf } from './fake-mercado-pago.ts';
import { MONEY, openMercadoPago, SECRETS } from './mercado-pago-under-test.ts';

const NUMBER = '4509953566233704';
const TOKENS = /^POST .v1.card_tokens$/;
const CHARGE = /^POST .v1.payments$/;
const CHANGE = /^PUT .v1.payments/;
const PART = { minorUnits: 100_000n, currency: 'ARS' };

const under = openedForEach(openMercadoPago);

/** An attempt in pesos. The cardholder's name decides what becomes of it, as with Mercado Pago's test cards. */
function attemptBy(
  holderName = 'APRO',
  options: Partial<CardOptions> = {},
  over: Partial<PaymentAttempt> = {},
  number = NUMBER,
): PaymentAttempt {
  return cardAttempt(number, { money: MONEY, country: 'AR', ...over }, { ...options, holderName });
}

/** The only payment at the fake. */
function payment() {
  const [only, ...others] = [...under.fake.payments.values()];
  if (!only || others.length > 0) throw new Error(`${others.length + 1} payments, or none`);
  return only;
}

async function approved(attempt: PaymentAttempt) {
  const outcome = await under.connection.pay(attempt);
  if (outcome.kind !== 'approved') throw new Error(`expected an approval, got ${JSON.stringify(outcome)}`);
  return { attempt, outcome, reference: outcome.reference, id: String(payment().id), at: payment() };
}

const authorized = () => approved(attemptBy('APRO', { capture: false }));

describe('a purchase by card at Mercado Pago', () => {
  it('a card is exchanged for a token, which is charged under our key and with our reference', async () => {
    const { attempt, outcome, id } = await approved(attemptBy('APRO', { installments: 3 }));
    expect(outcome).toMatchObject({
      ...{ kind: 'approved', reference: `/${id}`, providerPaymentId: id, authorizationCode: '301299' },
      providerData: { status: 'approved', statusDetail: 'accredited', transactionId: id },
    });
    expect(outcome).not.toHaveProperty('isAnyTry');
    const { requests } = under.fake;
    expect(requests.map(({ method, path }) => `${method} ${path}`).toSorted()).toEqual([
      'GET /v1/payment_methods/search',
      'POST /v1/card_tokens',
      'POST /v1/payments',
    ]);
    expect(requests.at(-1)).toMatchObject({
      key: attempt.transactionId,
      body: {
        ...{ external_reference: attempt.transactionId, transaction_amount: 3000.5, capture: true },
        ...{ payment_method_id: 'visa', issuer_id: 310, installments: 3 },
      },
    });
  });

  it('the number, the security code and the token are in no outcome, and the card in no other request', async () => {
    const outcomes = [
      await under.connection.pay(attemptBy()),
      await under.connection.pay(attemptBy('FUND')),
      await under.connection.pay(attemptBy('APRO', {}, {}, '4509953566233705')),
    ];
    const [token] = under.fake.tokens.keys();
    const text = JSON.stringify(outcomes, (_, value) => (typeof value === 'bigint' ? String(value) : value));
    for (const secret of [NUMBER, token as string, `"${SECURITY_CODE}"`]) expect(text).not.toContain(secret);
    for (const { path, query, text: sent } of under.fake.requests) {
      if (path === '/v1/card_tokens') continue;
      expect(`${query} ${sent}`).not.toContain(NUMBER);
      expect(`${query} ${sent}`).not.toContain(NUMBER.slice(0, 9));
      expect(sent).not.toContain('security_code');
    }
  });

  it.each([
    ['OTHE', 'declined', '05'],
    ['CALL', 'declined', '05'],
    ['FUND', 'declined', '51'],
    ['SECU', 'declined', 'N7'],
    ['EXPI', 'declined', '54'],
    ['FORM', 'declined', '12'],
    ['cc_rejected_duplicated_payment', 'declined', '94'],
    ['CONT', 'pending', undefined],
  ])('a card of %s is %s', async (name, kind, iso8583Code) => {
    const outcome = await under.connection.pay(attemptBy(name));
    expect(outcome).toMatchObject({ kind, ...(iso8583Code !== undefined && { iso8583Code }) });
  });

  it.each([
    ['4915110000000003', 'debvisa', 158],
    ['5031755734530604', 'master', 24],
    ['371180303257522', 'amex', 67],
  ])('the search finds the method and the issuer of %s: %s, %s', async (number, id, issuer) => {
    await approved(attemptBy('APRO', {}, {}, number));
    expect(payment()).toMatchObject({ payment_method_id: id, issuer_id: issuer });
  });

  it.each([
    ['is refused', 401, refusal(401)],
    ['is away', 503, {}],
    ['finds nothing', 200, { results: [] }],
    ['finds no card', 200, { results: [{ id: 'pix', payment_type_id: 'bank_transfer' }] }],
    ['is unreadable', 200, { results: [{ id: '../x', payment_type_id: 'credit_card' }] }],
  ])(
    "if the search for its method %s, a card's brand names it, without an issuer",
    async (_, status, body) => {
      under.fake.answerOnce(/payment_methods.search$/, status, body);
      await approved(attemptBy());
      expect(payment()).toMatchObject({ payment_method_id: 'visa' });
      expect(payment()).not.toHaveProperty('issuer_id');
    },
  );

  it('a card of a brand that nobody knows is turned away before it is charged', async () => {
    const outcome = await under.connection.pay(attemptBy('APRO', {}, {}, '9999990000000002'));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(under.fake.payments.size).toBe(0);
  });

  it.each([
    ['another currency', { money: { minorUnits: 1_000n, currency: 'BRL' } }, {}],
    ['a payer without an e-mail', { customerPayer: create(CustomerPayerSchema, {}) }, {}],
    ['a verification', {}, { verify: true }],
  ] as const)('%s is turned away, and nothing is sent', async (_, over, options) => {
    const outcome = await under.connection.pay(attemptBy('APRO', options, over));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(under.fake.requests).toEqual([]);
  });
});

describe('a card without its security code', () => {
  const withoutCode = (options: Partial<CardOptions> = {}) => {
    const attempt = attemptBy('APRO', options);
    if (attempt.method.by !== 'card') throw new Error('no card');
    return {
      ...attempt,
      method: { ...attempt.method, card: { ...attempt.method.card, securityCode: undefined } },
    };
  };

  it('it is turned away, unless the account takes payments without a security code', async () => {
    expect(await under.connection.pay(withoutCode())).toMatchObject({
      kind: 'not_sent',
      because: 'turned_away',
    });
    expect(under.fake.requests).toEqual([]);
  });

  it.each([
    ['SUBSCRIPTION', 'merchant'],
    ['CARD_ON_FILE', 'customer'],
  ])('it is charged if the account takes payments without a security code: %s', async (reason, initiator) => {
    const stored = await openMercadoPago(SECRETS, { without_security_code: true });
    stored.fake.takeNoCode();
    const storedCredentials = create(StoredCredentialsSchema, {
      ...{ reason, usage: 'USED', networkTransactionId: '016150703802094' },
    });
    expect(await stored.connection.pay(withoutCode({ storedCredentials }))).toMatchObject({
      kind: 'approved',
    });
    expect([...stored.fake.payments.values()]).toMatchObject([
      {
        point_of_interaction: { transaction_data: { storage: 'stored', transaction_initiator: initiator } },
        forward_data: { network_transaction_data: { network_transaction_id: '016150703802094' } },
      },
    ]);
    expect(JSON.stringify([...stored.fake.tokens.values()])).not.toContain('security_code');
    await stored.close();
  });
});

it('a soft descriptor is cut to 13 characters, the shortest limit of Mercado Pago', async () => {
  await approved(attemptBy('APRO', { softDescriptor: 'ABCDEFGHIJKLMNOP' }));
  expect(payment()).toMatchObject({ statement_descriptor: 'ABCDEFGHIJKLM' });
});

describe('an answer about a card that is lost', () => {
  it.each(['before', 'after', 'silent'] as const)(
    'a token whose answer is lost (%s) takes no money, so that the attempt is not sent',
    async (when) => {
      under.fake.lose(TOKENS, when);
      expect(await under.impatient.pay(attemptBy())).toMatchObject({
        kind: 'not_sent',
        because: 'unreachable',
      });
      expect(under.fake.payments.size).toBe(0);
    },
  );

  it.each([
    [400, 'turned_away'],
    [422, 'turned_away'],
    [401, 'unreachable'],
    [429, 'unreachable'],
    [500, 'unreachable'],
  ])('a token that is refused with %i leaves the attempt not sent: %s', async (status, because) => {
    under.fake.answerOnce(TOKENS, status, refusal(status));
    expect(await under.connection.pay(attemptBy())).toMatchObject({ kind: 'not_sent', because });
  });

  it('a refused token names the refused field, and never its value', async () => {
    const outcome = await under.connection.pay(attemptBy('APRO', {}, {}, '4509953566233705'));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away', refused: 'card_number' });
  });

  it.each(['before', 'after', 'silent'] as const)(
    'a charge whose answer is lost (%s) is unknown, and never sent again',
    async (when) => {
      under.fake.lose(CHARGE, when);
      expect(await under.impatient.pay(attemptBy())).toMatchObject({ kind: 'unknown' });
      expect(under.fake.requests.filter(({ path }) => path === '/v1/payments')).toHaveLength(1);
    },
  );

  it.each(['APRO', 'FUND', 'CONT'])(
    'a lost charge of %s is found by our reference, however late',
    async (name) => {
      const attempt = attemptBy(name);
      under.fake.lose(CHARGE, 'after');
      await under.connection.pay(attempt);
      under.fake.lagSearch(true);
      for (const ageMs of [0, 40 * 86_400_000]) {
        for (const close of [false, true]) {
          expect(await lookUp(under, attempt, undefined, { close, ageMs })).toMatchObject({
            kind: 'unknown',
          });
        }
      }
      under.fake.lagSearch(false);
      const kind = { APRO: 'approved', FUND: 'declined', CONT: 'pending' }[name];
      const providerPaymentId = String(payment().id);
      expect(await lookUp(under, attempt, undefined)).toMatchObject({ kind, providerPaymentId });
    },
  );

  it('absence proves nothing: a charge that never arrived stays unknown, and nothing is sent', async () => {
    const attempt = attemptBy();
    under.fake.lose(CHARGE, 'before');
    await under.connection.pay(attempt);
    const outcome = await lookUp(under, attempt, undefined, { close: true, ageMs: 400 * 86_400_000 });
    expect(outcome).toMatchObject({ kind: 'unknown' });
    expect(outcome).not.toHaveProperty('alarm');
    expect(under.fake.requests.at(-1)?.method).toBe('GET');
  });

  it('a notification names a payment that the search does not list yet', async () => {
    const attempt = attemptBy();
    under.fake.lose(CHARGE, 'after');
    await under.connection.pay(attempt);
    under.fake.lagSearch(true);
    const id = String(payment().id);
    const reading = await under.connection.readNotification?.(webhookOf(id), Date.now());
    const subject = { transactionId: attempt.transactionId, providerPaymentId: id };
    expect(reading).toMatchObject({ kind: 'about', subjects: [subject] });
    const hint = { providerPaymentId: id };
    expect(await lookUp(under, attempt, undefined, { hint })).toMatchObject({
      kind: 'approved',
      reference: `/${id}`,
    });
  });
});

describe('the later life of a payment by card', () => {
  it('a payment in review is approved, or rejected with a reason', async () => {
    const attempt = attemptBy('CONT');
    const pending = await under.connection.pay(attempt);
    const reference = pending.kind === 'pending' ? pending.reference : undefined;
    under.fake.move(payment(), 'approved', 'accredited');
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'approved' });
    under.fake.move(payment(), 'rejected', 'cc_rejected_high_risk');
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'declined', iso8583Code: '59' });
    under.fake.move(payment(), 'cancelled', 'expired');
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'declined', iso8583Code: '05' });
  });

  it('refunds are made in parts, and a refund made at Mercado Pago itself is in the totals by its id', async () => {
    const { attempt, reference, id } = await approved(attemptBy());
    const refund = operationOn(attempt, reference, { money: PART });
    expect(await under.connection.refund?.(refund)).toMatchObject({ kind: 'approved' });
    const totals = { captured: MONEY.minorUnits, refunded: PART.minorUnits };
    const [one] = under.fake.refunds.get(id) ?? [];
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      totals: { ...totals, movements: [{ type: 'REFUND', providerPaymentId: String(one?.id) }] },
    });
  });

  it('a chargeback is reported by its notification, and its end by a look-up', async () => {
    const { attempt, reference, at, id } = await approved(attemptBy());
    under.fake.move(at, 'charged_back', 'in_process');
    const reading = await under.connection.readNotification?.(webhookOf(id), Date.now());
    expect(reading).toMatchObject({
      subjects: [{ dispute: { stage: 'opened', reference: `chargeback/${id}` } }],
    });
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'approved' });
    under.fake.move(at, 'approved', 'accredited');
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      endedDisputes: [{ stage: 'won' }, { stage: 'won', reference: `chargeback/${id}` }],
    });
  });

  it.each([
    ['another amount', { transaction_amount: 1 }],
    ['another currency', { currency_id: 'BRL' }],
    ['another reference', { external_reference: 'theirs' }],
    ['another account', { collector_id: 1 }],
  ])('a payment with %s raises an alarm', async (_, change) => {
    const { attempt, reference, at } = await approved(attemptBy());
    Object.assign(at, change);
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'unknown', alarm: true });
  });
});

describe('an authorization at Mercado Pago', () => {
  it('it holds the money, and its totals are zero until it is captured', async () => {
    const { attempt, outcome, reference, at } = await authorized();
    expect(at).toMatchObject({ status: 'authorized', capture: false });
    expect(outcome).toMatchObject({ kind: 'approved', providerData: { status: 'authorized' } });
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      totals: { captured: 0n, refunded: 0n, movements: [] },
    });
  });

  it.each([
    ['the whole', MONEY],
    ['a part', PART],
  ])('a capture of %s takes the money once, and releases the rest', async (_, money) => {
    const { attempt, reference, at, id } = await authorized();
    const operation = operationOn(attempt, reference, { money });
    expect(await under.connection.capture?.(operation)).toMatchObject({
      kind: 'approved',
      providerPaymentId: `${id}-capture`,
    });
    expect(under.fake.requests.at(-1)?.key).toBe(operation.transactionId);
    expect(at).toMatchObject({ status: 'approved', transaction_amount: Number(money.minorUnits) / 100 });
    const { minorUnits } = money;
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      kind: 'approved',
      totals: {
        ...{ captured: minorUnits, refunded: 0n },
        movements: [{ type: 'CAPTURE', providerPaymentId: `${id}-capture`, minorUnits }],
      },
    });
    const again = operationOn(attempt, reference, { money });
    expect(await under.connection.capture?.(again)).toMatchObject({
      kind: 'not_sent',
      because: 'turned_away',
    });
    const refund = operationOn(attempt, reference, { money });
    expect(await under.connection.refund?.(refund)).toMatchObject({ kind: 'approved' });
    expect(await lookUp(under, attempt, reference)).toMatchObject({
      totals: { captured: minorUnits, refunded: minorUnits },
    });
  });

  it('a cancel releases it, and afterwards it is expired', async () => {
    const { attempt, reference, at } = await authorized();
    expect(await under.connection.cancel?.(operationOn(attempt, reference))).toMatchObject({
      kind: 'approved',
    });
    expect(at.status).toBe('cancelled');
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'expired' });
  });

  it('an authorization that was captured at once raises an alarm', async () => {
    const attempt = attemptBy('APRO', { capture: false });
    under.fake.answerOnce(CHARGE, 201, {
      ...{ id: 1, status: 'approved', status_detail: 'accredited', collector_id: 123456789 },
      ...{ transaction_amount: 3000.5, currency_id: 'ARS', external_reference: attempt.transactionId },
    });
    expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'unknown', alarm: true });
  });

  it('what exceeds an authorization is not its capture', async () => {
    const { attempt, reference, at } = await authorized();
    Object.assign(at, { status: 'approved', transaction_amount: 3000.51 });
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'unknown', alarm: true });
  });

  it.each(['capture', 'cancel'] as const)('a lost %s is found, or sent again', async (kind) => {
    for (const when of ['before', 'after'] as const) {
      under.fake.payments.clear();
      const { attempt, reference, at } = await authorized();
      const operation = operationOn(attempt, reference);
      under.fake.lose(CHANGE, when);
      expect(await under.connection[kind]?.(operation)).toMatchObject({ kind: 'unknown' });
      under.fake.lagSearch(true);
      expect(await lookUpOperation(under, kind, operation)).toMatchObject({ kind: 'approved' });
      expect(at.status).toBe(kind === 'capture' ? 'approved' : 'cancelled');
      const changes = under.fake.requests.filter(({ method }) => method === 'PUT').splice(-2);
      if (when === 'before') expect(changes[0]).toEqual(changes[1]);
    }
  });

  it.each<[string, 'capture' | 'cancel', string, string]>([
    ['is canceled', 'capture', 'cancelled', 'not_sent'],
    ['is captured', 'cancel', 'approved', 'not_sent'],
    ['is rejected', 'capture', 'rejected', 'declined'],
    ['is in process', 'capture', 'in_process', 'pending'],
    ['is unknown', 'capture', 'accredited', 'unknown'],
  ])('an authorization that %s meanwhile ends a lost %s', async (_, kind, status, outcome) => {
    const { attempt, reference, at } = await authorized();
    const operation = operationOn(attempt, reference);
    under.fake.move(at, status, '');
    expect(await lookUpOperation(under, kind, operation)).toMatchObject({ kind: outcome });
  });

  it('a capture of other money was made at Mercado Pago, and counts with an alarm; a recorded one is not ours', async () => {
    const { attempt, reference, at, id } = await authorized();
    const operation = operationOn(attempt, reference);
    Object.assign(at, { status: 'approved', transaction_amount: 1_000 });
    expect(await lookUpOperation(under, 'capture', operation)).toMatchObject({
      ...{ kind: 'approved', alarm: true },
      money: { minorUnits: 100_000n, currency: 'ARS' },
    });
    const claimed = [`${id}-capture`];
    expect(await lookUpOperation(under, 'capture', operation, {}, claimed)).toMatchObject({
      kind: 'not_sent',
    });
  });

  it.each([401, 409, 429, 500])('a lost capture whose repeat gets %i stays unknown', async (status) => {
    const { attempt, reference } = await authorized();
    under.fake.answerOnce(CHANGE, status, refusal(status));
    const outcome = await lookUpOperation(under, 'capture', operationOn(attempt, reference));
    expect(outcome).toMatchObject({ kind: 'unknown' });
  });

  it.each(['capture', 'cancel'] as const)(
    'a %s of a payment that is not known is turned away',
    async (kind) => {
      const operation: Operation & CaptureOperation = operationOn(attemptBy(), undefined);
      expect(await under.connection[kind]?.(operation)).toMatchObject({ kind: 'not_sent' });
      expect(await lookUpOperation(under, kind, operation)).toMatchObject({ kind: 'unknown' });
      expect(under.fake.requests).toEqual([]);
    },
  );
});

describe('what a connection to Mercado Pago needs of cards', () => {
  it('an e-mail, a security code and complete results of 3-D Secure are named; settings take some needs away', async () => {
    const { missingForCards, ...can } = under.connection.capabilities;
    expect(missingForCards?.({ payer: undefined, hasSecurityCode: false })).toEqual([
      'customer_payer.email',
      'payment_method.detail.card.card_data.security_code',
    ]);
    expect(can).toMatchObject({
      ...{ methods: ['CARD', 'PAYER_PAGE'], authorization: true, captures: 1, cancel: true },
      ...{ verify: false, challenge: false, storedCredentials: false, externalThreeDSecure: false },
    });
    const settings = { without_security_code: true, external_three_d_secure: true };
    const more = await openMercadoPago(SECRETS, settings);
    const { capabilities } = more.connection;
    const payer = create(CustomerPayerSchema, { email: 'ana@example.com' });
    expect(capabilities.missingForCards?.({ payer, hasSecurityCode: false })).toEqual([]);
    expect(capabilities).toMatchObject({ storedCredentials: true, externalThreeDSecure: true });
    await more.close();
  });
});
