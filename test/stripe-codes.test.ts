import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFakeStripe } from './connectors/stripe/fake-stripe.ts';
import { AT_FAKES, tell } from './support/fake-providers.ts';
import {
  alarmsOf,
  becomes,
  CANCELED,
  call,
  detailOf,
  EXPIRED,
  eventsOf,
  OPEN,
  PAID,
  pay,
  type RecordJson,
  read,
  request,
  statesOf,
} from './support/local-payments.ts';
import { clients, onService, server, tables } from './support/on-service.ts';
import { headersOne, type RequestJson, withField } from './support/payment-requests.ts';
import { untilNewsIsSettled } from './support/settled-news.ts';
import { older, wantEveryEvent } from './support/tables.ts';

/* Payments by local methods and with tokens of wallets at Stripe's fake, through the whole service. */

let fake: Awaited<ReturnType<typeof startFakeStripe>>;

beforeAll(async () => {
  fake = await startFakeStripe();
});
onService(() => ({
  catalogue: catalogue(),
  config: AT_FAKES,
}));
beforeAll(() => wantEveryEvent(tables));
afterAll(() => fake.close());
beforeEach(() => {
  fake.ledger.intents.clear();
  fake.requests.length = 0;
});

function catalogue(): string {
  return `payment_method_types:
  - { type: PIX, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: SPEI, category: BANK_TRANSFER, workflows: [REDIRECT] }
  - { type: BOLETO, category: TICKET, workflows: [REDIRECT] }
  - { type: OXXO, category: TICKET, workflows: [REDIRECT] }
  - { type: GOOGLE_PAY, category: WALLET, workflows: [DIRECT] }
connections:
  - id: stripe
    name: Stripe
    provider_id: STRIPE
    connector: stripe
    settings: { base_url: '${fake.url}' }
    secrets_from_environment: { api_key: STRIPE_API_KEY, webhook_secret: STRIPE_WEBHOOK_SECRET }
routes:
  - { id: 1, targets: [{ connection: stripe }] }
`;
}

/** The request of a scenario, with what Stripe needs besides. */
function requestFor(name: 'pix' | 'boleto' | 'oxxo' | 'spei'): RequestJson {
  return name === 'boleto'
    ? withField(request(name), 'customer_payer.email', 'ana@example.com')
    : request(name);
}

/** Makes a payment. `id` is the intent's. */
async function payBy(name: Parameters<typeof requestFor>[0]) {
  const payment = await pay(requestFor(name));
  expect(statesOf(payment)).toBe(OPEN);
  return { payment, id: String(intent().id) };
}

function intent() {
  const [found, ...others] = fake.ledger.intents.values();
  if (!found || others.length > 0) throw new Error(`${others.length + 1} intents, or none`);
  return found;
}

/** Delivers a notification about the intent. @returns the states of the payment. */
async function told(payment: RecordJson, type: string): Promise<string> {
  const { body, signature } = fake.notification(`payment_intent.${type}`, fake.ledger.told(intent(), {}));
  const header = (name: string) => (name === 'stripe-signature' ? signature : undefined);
  expect(await tell(server.url, 'stripe', { header, query: '', body: Buffer.from(body) })).toBe(200);
  await untilNewsIsSettled(tables);
  return statesOf(await read(payment));
}

/** Lets the payer's time run out. */
const runOut = ({ id }: RecordJson) =>
  tables.query(`UPDATE transaction SET ${older('40 days')}, check_at = now() WHERE payment_id = $1`, [id]);

describe('payments by local methods at Stripe', () => {
  it('Pix is shown, paid, and refunded in parts', async () => {
    const { payment, id } = await payBy('pix');
    expect(detailOf(payment)).toMatchObject({
      payment_instruction: expect.stringContaining(id),
      provider_image: `https://payments.stripe.com/pix/${id}.png`,
      redirect_url: expect.stringMatching(/\/pay$/),
      expires_at: expect.any(String),
    });
    fake.ledger.codes.pay(id);
    expect(await told(payment, 'succeeded')).toBe(PAID);
    const refund = { amount: { currency: 'BRL', value: 10 } };
    expect((await call('refund', payment, refund)).sub_status).toBe('PARTIALLY_REFUNDED');
    expect(await eventsOf(payment)).toEqual(['payment.purchase', 'payment.purchase', 'payment.refund']);
    expect(alarmsOf(payment)).toEqual([]);
  });

  it.each(['boleto', 'oxxo'] as const)(
    '%s is shown, on its way and paid, and its refund is refused before anything is sent',
    async (name) => {
      const { payment, id } = await payBy(name);
      expect(detailOf(payment)).toMatchObject({
        provider_number: expect.stringMatching(/^\d+$/),
        document_url: expect.stringContaining(`https://payments.stripe.com/${name}/${id}`),
      });
      fake.ledger.codes.pay(id, { isConfirmed: false });
      expect(await told(payment, 'processing')).toMatch(/^PENDING\/IN_PROCESS/);
      fake.ledger.codes.pay(id);
      expect(await told(payment, 'succeeded')).toBe(PAID);
      const asked = fake.requests.length;
      expect(await call('refund', payment, {})).toMatchObject({ code: 'OPERATION_NOT_SUPPORTED' });
      expect(fake.requests).toHaveLength(asked);
    },
  );

  it('a voucher expires by the word of Stripe alone, and its intent is canceled', async () => {
    const { payment, id } = await payBy('boleto');
    await runOut(payment);
    await expect.poll(() => fake.calls()).toContain('GET /v1/payment_intents/{id}');
    expect(statesOf(await read(payment))).toBe(OPEN);
    fake.ledger.codes.expire(id);
    expect(await told(payment, 'payment_failed')).toBe(EXPIRED);
    expect(intent()).toMatchObject({ status: 'canceled' });
    expect(alarmsOf(payment)).toEqual([]);
  });

  it('a merchant cancels an unpaid boleto at Stripe, and the cancel of an OXXO voucher is refused by name', async () => {
    const { payment } = await payBy('boleto');
    expect(statesOf(await call('cancel', payment, {}))).toBe(CANCELED);
    expect(intent()).toMatchObject({ status: 'canceled' });
    fake.ledger.intents.clear();
    const { payment: voucher } = await payBy('oxxo');
    expect(await call('cancel', voucher, {})).toMatchObject({ code: 'OPERATION_NOT_SUPPORTED' });
    expect(intent()).toMatchObject({ status: 'requires_action' });
  });

  it('a transfer in two parts is paid once the rest has arrived', async () => {
    const { payment, id } = await payBy('spei');
    expect(detailOf(payment)).toMatchObject({
      bank_account: expect.stringMatching(/^\d{18}$/),
      reference: 'ABC123XYZ',
    });
    fake.ledger.codes.pay(id, { amount: 300_000 });
    expect(await told(payment, 'partially_funded')).toBe(OPEN);
    expect((await read(payment)).transactions.provider_data.amount_received).toBe('3000.00');
    expect(await call('cancel', payment, {})).toMatchObject({ code: 'INVALID_STATUS' });
    fake.ledger.codes.pay(id, { amount: 130_050 });
    expect(await told(payment, 'succeeded')).toBe(PAID);
    expect(alarmsOf(payment)).toEqual([]);
  });

  it('a transfer of too much is paid, and the excess is an alarm', async () => {
    const { payment, id } = await payBy('spei');
    fake.ledger.codes.pay(id, { amount: 500_000 });
    expect(await told(payment, 'succeeded')).toBe(PAID);
    expect(alarmsOf(payment)).toEqual(['overpaid']);
  });

  it('a transfer of too little expires at our own end, with an alarm', async () => {
    const { payment, id } = await payBy('spei');
    fake.ledger.codes.pay(id, { amount: 300_000 });
    await told(payment, 'partially_funded');
    await runOut(payment);
    const ended = await becomes(payment, EXPIRED);
    expect(ended.transactions.provider_data.amount_received).toBe('3000.00');
    expect(alarmsOf(payment)).toEqual(['underpaid']);
    expect(intent()).toMatchObject({ status: 'canceled' });
  });

  it('a transfer that nobody makes ends at our own end', async () => {
    const { payment } = await payBy('spei');
    await runOut(payment);
    await becomes(payment, EXPIRED);
    expect([intent().status, alarmsOf(payment)]).toEqual(['canceled', []]);
  });

  it('a payment whose creation was lost twice is PENDING until a look-up finds its code', async () => {
    for (let i = 0; i < 2; i++) fake.fail(/^POST .*intents$/, 'lost_after');
    fake.fail(/^POST .*intents$/, 'lost_before');
    const payment = await pay(requestFor('pix'));
    const found = await becomes(payment, OPEN);
    expect(detailOf(found).payment_instruction).toContain(String(intent().id));
  });

  it('one refusal names what a boleto lacks at Stripe, and an amount outside its range the range', async () => {
    const { customer_payer: _, ...bare } = request('boleto');
    expect(await clients.create('rest', bare, headersOne())).toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
      fields: expect.arrayContaining([
        expect.objectContaining({ field: 'customer_payer.email', code: 'REQUIRED' }),
        expect.objectContaining({ field: 'customer_payer.document.document_number', code: 'REQUIRED' }),
        expect.objectContaining({ field: 'customer_payer.billing_address.zip_code', code: 'REQUIRED' }),
      ]),
    });
    const dear = withField(requestFor('boleto'), 'amount.value', '50000.00');
    expect(await clients.create('rest', dear, headersOne())).toMatchObject({
      fields: [expect.objectContaining({ field: 'amount.value', code: 'OUT_OF_RANGE' })],
    });
    expect(fake.requests).toEqual([]);
  });
});

describe("payments with a wallet's token at Stripe", () => {
  it("Google Pay's token is charged, and the record shows the card behind it and nothing of the token", async () => {
    const { id } = fake.ledger.createToken('google_pay');
    const tokenizationData = { token: JSON.stringify({ id, object: 'token' }) };
    const answer = JSON.stringify({ paymentMethodData: { tokenizationData } });
    const plain = withField(
      request('google-pay'),
      'payment_method.detail.wallet.stored_credentials',
      undefined,
    );
    const payment = await pay(withField(plain, 'payment_method.detail.wallet.payment_token', answer));
    expect(statesOf(payment)).toBe(PAID);
    expect(detailOf(payment)).toMatchObject({ card_data: { brand: 'VISA', lfd: '4242' }, capture: false });
    expect(JSON.stringify(payment)).not.toContain(String(id));
    expect(intent()).toMatchObject({ status: 'requires_capture', statement_descriptor_suffix: 'LOJA' });
  });
});
