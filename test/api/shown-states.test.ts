import { describe, expect, it, vi } from 'vitest';
import { clients, onService, server, tables } from '../support/on-service.ts';
import {
  ACCOUNT_TWO,
  cardPayment,
  headersOne,
  headersTwo,
  type RequestJson,
  withField,
} from '../support/payment-requests.ts';

const CARD = 'payment_method.detail.card';

onService({ config: { recoveryIntervalMs: 50 } });

type Headers = ReturnType<typeof headersOne>;

async function pay(request: RequestJson, headers: Headers = headersOne()) {
  const { record, raw } = await clients.create('rest', request, headers);
  expect(record, raw).not.toBe('');
  return JSON.parse(record);
}

async function operate(id: string, operation: string, body: object, headers: Headers) {
  const response = await fetch(`${server.url}/v1/payments/${id}/${operation}`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headers },
    body: JSON.stringify(body),
  });
  return JSON.parse(await response.text());
}

async function read(id: string) {
  const response = await fetch(`${server.url}/v1/payments/${id}`, { headers: headersOne() });
  return JSON.parse(await response.text());
}

const storedTypes = async (paymentId: string) =>
  (
    await tables.query(
      `SELECT type, capture FROM transaction WHERE payment_id = '${paymentId}' ORDER BY created_at`,
    )
  ).map(({ type, capture }) => `${type} ${capture ? 'captured' : 'not captured'}`);

const statesOf = ({ status, sub_status, transactions }: Record<string, never> & { transactions: never }) => {
  const { type, status: told, response_code } = transactions as Record<string, string>;
  return `${status}/${sub_status} ← ${type} ${told} ${response_code}`;
};

/** A card payment of account two, which sees authorizations as such. */
const authorization = (number?: string) =>
  withField({ ...cardPayment(number), account_id: ACCOUNT_TWO }, `${CARD}.capture`, false);

it('an operation sent over both REST paths and as an rpc, with a key and without, is made once', async () => {
  const payment = await pay(withField(cardPayment(), `${CARD}.capture`, false));
  const amount = { currency: 'USD', value: '4' };
  const named = { merchant_reference: 'c-1', amount };
  const id = payment.id.toUpperCase();
  const rpc = { ...named, amount: { currency: 'USD', value: { value: '4' } }, payment_id: id };
  const { 'x-idempotency-key': _unused, ...unkeyed } = headersOne();
  const calls: [path: string, body: object, key?: string][] = [
    [`/v1/payments/${payment.id}/capture`, named],
    [`/v1/payments/${id}/transactions/${payment.transactions.id}/capture`, named, 'c-key'],
    ['/payments.v1.PaymentService/CapturePayment', rpc],
    ['/payments.v1.PaymentService/CapturePayment', rpc, 'c-key'],
  ];
  const made: string[] = [];
  for (const [path, body, key] of calls) {
    const response = await fetch(server.url + path, {
      ...{ method: 'POST', body: JSON.stringify(body) },
      headers: { 'content-type': 'application/json', ...unkeyed, ...(key && { 'x-idempotency-key': key }) },
    });
    const told = JSON.parse(await response.text());
    expect([response.status, response.headers.get('idempotent-replayed')], JSON.stringify(told)).toEqual([
      200,
      made.length > 0 ? 'true' : null,
    ]);
    made.push(told.transactions.id);
  }
  expect(new Set(made).size).toBe(1);
  expect((await read(payment.id)).amount.captured).toBe(4);
});

describe('authorizations of an account that sees them as such', () => {
  it('an authorization is captured in parts, and its payment succeeds with the first capture', async () => {
    const payment = await pay(authorization(), headersTwo());
    expect(statesOf(payment)).toBe('PENDING/AUTHORIZED ← AUTHORIZE SUCCEEDED SUCCEEDED');
    expect(payment.payment_method.payment_method_detail.card.capture).toBe(false);
    const part = await operate(
      payment.id,
      'capture',
      { amount: { currency: 'USD', value: 4 } },
      headersTwo(),
    );
    expect(statesOf(part)).toBe('SUCCEEDED/PARTIALLY_CAPTURED ← CAPTURE SUCCEEDED SUCCEEDED');
    const whole = await operate(payment.id, 'capture', {}, headersTwo());
    expect(statesOf(whole)).toBe('SUCCEEDED/CAPTURED ← CAPTURE SUCCEEDED SUCCEEDED');
    expect(await storedTypes(payment.id)).toEqual([
      'AUTHORIZE not captured',
      'CAPTURE not captured',
      'CAPTURE not captured',
    ]);
  });

  it('an authorization is released by a cancel', async () => {
    const payment = await pay(authorization(), headersTwo());
    const canceled = await operate(payment.id, 'cancel', {}, headersTwo());
    expect(statesOf(canceled)).toBe('CANCELED/CANCELED ← CANCEL SUCCEEDED SUCCEEDED');
  });

  it('every attempt of an authorization is an authorization', async () => {
    const elsewhere = {
      ...authorization('4000000000006009'),
      country: 'MX',
      amount: { currency: 'MXN', value: 100 },
    };
    const payment = await pay(elsewhere, headersTwo());
    expect(payment.transactions_history.map(({ type }: { type: string }) => type)).toEqual([
      'AUTHORIZE',
      'AUTHORIZE',
    ]);
    expect(statesOf(payment)).toBe('PENDING/AUTHORIZED ← AUTHORIZE SUCCEEDED SUCCEEDED');
    expect(await storedTypes(payment.id)).toEqual(['AUTHORIZE not captured', 'AUTHORIZE not captured']);
  });

  it('a successful authorization stores the card, which can then be used to pay', async () => {
    const request = withField(authorization(), 'payment_method.vault_on_success', true);
    const { vaulted_token } = (await pay(request, headersTwo())).payment_method;
    const again = { ...request, payment_method: { type: 'CARD', vaulted_token } };
    expect(statesOf(await pay(again, headersTwo()))).toBe(
      'SUCCEEDED/APPROVED ← PURCHASE SUCCEEDED SUCCEEDED',
    );
  });

  it('a purchase by an account that sees authorizations is still a purchase', async () => {
    const payment = await pay(withField(authorization(), `${CARD}.capture`, true), headersTwo());
    expect(statesOf(payment)).toBe('SUCCEEDED/APPROVED ← PURCHASE SUCCEEDED SUCCEEDED');
    expect(payment.payment_method.payment_method_detail.card.capture).toBe(true);
  });

  it('an authorization with a declined card is declined', async () => {
    const payment = await pay(authorization('4000000000009987'), headersTwo());
    expect(statesOf(payment)).toBe('DECLINED/DECLINED ← AUTHORIZE DECLINED REPORTED_LOST');
  });
});

it('an account that does not see authorizations as such sees a purchase, and can capture it', async () => {
  const payment = await pay(withField(cardPayment(), `${CARD}.capture`, false));
  expect(statesOf(payment)).toBe('SUCCEEDED/APPROVED ← PURCHASE SUCCEEDED SUCCEEDED');
  expect(await storedTypes(payment.id)).toEqual(['PURCHASE not captured']);
  const captured = await operate(payment.id, 'capture', {}, headersOne());
  expect(statesOf(captured)).toBe('SUCCEEDED/CAPTURED ← CAPTURE SUCCEEDED SUCCEEDED');
});

describe('verifications', () => {
  const verification = (number?: string) =>
    withField(withField(cardPayment(number), 'amount.value', 0), `${CARD}.verify`, true);

  it('a verification stores a card without charging it', async () => {
    const request = withField(verification(), 'payment_method.vault_on_success', true);
    const payment = await pay(request);
    expect(statesOf(payment)).toBe('VERIFIED/VERIFIED ← VERIFY SUCCEEDED SUCCEEDED');
    const { vaulted_token } = payment.payment_method;
    const purchase = { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token } };
    expect(statesOf(await pay(purchase))).toBe('SUCCEEDED/APPROVED ← PURCHASE SUCCEEDED SUCCEEDED');
  });

  it.each(['capture', 'cancel', 'refund', 'cancel-or-refund'])(
    'a verification cannot be followed by a %s, even if the request set capture to false',
    async (operation) => {
      const payment = await pay(withField(verification(), `${CARD}.capture`, false));
      expect(await operate(payment.id, operation, {}, headersOne())).toMatchObject({
        code: 'INVALID_STATUS',
      });
      // A verification has no authorized money that could expire.
      expect(await storedTypes(payment.id)).toEqual(['VERIFY captured']);
    },
  );

  it('a verification of a declined card is declined', async () => {
    expect(statesOf(await pay(verification('4000000000000069')))).toBe(
      'DECLINED/DECLINED ← VERIFY DECLINED EXPIRED_CARD',
    );
  });

  it('a verification with an unknown outcome is looked up and stays a verification', async () => {
    const payment = await pay(verification('4000000000003006'));
    expect(statesOf(payment)).toBe(
      'PENDING/PENDING_PROVIDER_CONFIRMATION ← VERIFY PENDING PENDING_PROVIDER_CONFIRMATION',
    );
    await vi.waitFor(
      async () => {
        expect(statesOf(await read(payment.id))).toBe('VERIFIED/VERIFIED ← VERIFY SUCCEEDED SUCCEEDED');
      },
      { interval: 100 },
    );
  });
});

describe('3-D Secure challenges', () => {
  it('a payment with a challenge is pending, and its record has the URL for the payer', async () => {
    const payment = await pay(cardPayment('4000000000003105'));
    expect(statesOf(payment)).toBe('PENDING/WAITING_ADDITIONAL_STEP ← PURCHASE PENDING CHALLENGE_REQUIRED');
    expect(payment.transactions.response_message).toBe('Challenge required');
    expect(payment.checkout.sdk_action_required).toBe(true);
    const { redirect_url } = payment.payment_method.payment_method_detail.card;
    expect(redirect_url).toMatch(/^https?:\/\//);
    expect(payment.transactions.payment_method.detail.card.redirect_url).toBe(redirect_url);
  });
});

describe('network transaction ids of stored credentials', () => {
  const first = withField(cardPayment(), `${CARD}.stored_credentials`, {
    reason: 'CARD_ON_FILE',
    usage: 'FIRST',
  });
  const reportedId = (payment: Awaited<ReturnType<typeof pay>>) =>
    payment.payment_method.payment_method_detail.card.stored_credentials.network_transaction_id;

  it('the network transaction id is returned only for a payment with stored credentials', async () => {
    expect(reportedId(await pay(first))).toMatch(/^\S+$/);
    expect(reportedId(await pay(cardPayment()))).toBeNull();
  });

  it('a network transaction id from the request is returned unchanged', async () => {
    const later = withField(first, `${CARD}.stored_credentials.network_transaction_id`, 'NTI-1');
    expect(reportedId(await pay(later))).toBe('NTI-1');
  });
});
