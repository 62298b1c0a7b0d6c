import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { startFakeMercadoPago, webhookOf } from './connectors/mercado-pago/fake-mercado-pago.ts';
import { AT_FAKES, tell } from './support/fake-providers.ts';
import { alarmsOf, call, pay, read, statesOf } from './support/local-payments.ts';
import { clients, onService, server, tables } from './support/on-service.ts';
import {
  CARD_DATA,
  cardPayment,
  headersOne,
  type RequestJson,
  withField,
} from './support/payment-requests.ts';
import { untilNewsIsSettled } from './support/settled-news.ts';

/* Cards at Mercado Pago's fake, through the whole service: one account in Brazil. */

let fake: Awaited<ReturnType<typeof startFakeMercadoPago>>;

beforeAll(async () => {
  fake = await startFakeMercadoPago('BRL');
});
onService(() => ({
  catalogue: `payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
connections:
  - id: br
    name: Mercado Pago
    provider_id: MERCADO_PAGO
    connector: mercado-pago
    settings: { base_url: '${fake.url}', country: BR, account_id: "123456789" }
    secrets_from_environment: { access_token: MERCADO_PAGO_ACCESS_TOKEN, webhook_secret: MERCADO_PAGO_WEBHOOK_SECRET }
routes:
  - { id: 1, targets: [{ connection: br }] }
`,
  config: AT_FAKES,
}));
afterAll(() => fake?.close());
beforeEach(() => fake.payments.clear());

/** A card payment in Brazil. The cardholder's name decides what becomes of it. */
function requestFor(holder = 'APRO', capture = true): RequestJson {
  const named = withField(cardPayment(), `${CARD_DATA}.holder_name`, holder);
  const captured = withField(named, 'payment_method.detail.card.capture', capture);
  const inBrazil = withField(withField(captured, 'country', 'BR'), 'amount', {
    currency: 'BRL',
    value: 3000,
  });
  return withField(inBrazil, 'customer_payer.email', 'ana@example.com');
}

/** The only payment at Mercado Pago. */
function at() {
  const [only, ...others] = [...fake.payments.values()];
  if (!only || others.length > 0) throw new Error(`${others.length + 1} payments, or none`);
  return only;
}

async function news() {
  expect(await tell(server.url, 'br', webhookOf(String(at().id)))).toBe(200);
  await untilNewsIsSettled(tables);
}

const part = (value: number) => ({ amount: { currency: 'BRL', value } });

describe('cards at Mercado Pago', () => {
  it('a purchase is charged, refunded in parts here and there, and lost to a chargeback', async () => {
    const payment = await pay(requestFor());
    expect(statesOf(payment)).toBe('SUCCEEDED/APPROVED, PURCHASE SUCCEEDED SUCCEEDED');
    expect(statesOf(await call('refund', payment, part(100)))).toContain('REFUND SUCCEEDED');
    const id = String(at().id);
    const there = { id: 77, payment_id: Number(id), amount: 50, status: 'approved' };
    fake.refunds.get(id)?.push({ ...there, date_created: new Date().toISOString() });
    at().transaction_amount_refunded = 150;
    await news();
    expect(statesOf(await read(payment)).match(/REFUND SUCCEEDED/g)).toHaveLength(2);
    expect((await read(payment)).sub_status).toBe('PARTIALLY_REFUNDED');
    fake.move(at(), 'charged_back', 'settled');
    await news();
    expect(statesOf(await read(payment))).toContain('CHARGEBACK');
    expect(alarmsOf(payment)).toEqual([]);
  });

  it.each([
    ['FUND', 'DECLINED/DECLINED, PURCHASE DECLINED INSUFFICIENT_FUNDS'],
    ['SECU', 'DECLINED/DECLINED, PURCHASE DECLINED INVALID_SECURITY_CODE'],
  ])('a card of %s is declined', async (holder, states) => {
    expect(statesOf(await pay(requestFor(holder)))).toBe(states);
  });

  it('a payment in review is PENDING until Mercado Pago decides', async () => {
    const payment = await pay(requestFor('CONT'));
    expect(statesOf(payment)).toMatch(/^PENDING/);
    fake.move(at(), 'approved', 'accredited');
    await news();
    expect(statesOf(await read(payment))).toBe('SUCCEEDED/APPROVED, PURCHASE SUCCEEDED SUCCEEDED');
  });

  it('an authorization is captured in part, and the rest of it is released', async () => {
    const payment = await pay(requestFor('APRO', false));
    expect(at().status).toBe('authorized');
    expect(statesOf(await call('capture', payment, part(1000)))).toContain('CAPTURE SUCCEEDED');
    expect(at()).toMatchObject({ status: 'approved', transaction_amount: 1000 });
    await news();
    expect(statesOf(await read(payment)).match(/CAPTURE SUCCEEDED/g)).toHaveLength(1);
    expect(statesOf(await call('refund', payment, part(400)))).toContain('REFUND SUCCEEDED');
    expect(alarmsOf(payment)).toEqual([]);
  });

  it('an authorization that was captured at Mercado Pago itself is recorded once', async () => {
    const payment = await pay(requestFor('APRO', false));
    Object.assign(at(), { status: 'approved', status_detail: 'accredited', transaction_amount: 500 });
    await news();
    await news();
    expect(statesOf(await read(payment)).match(/CAPTURE SUCCEEDED/g)).toHaveLength(1);
    expect((await read(payment)).status).toBe('SUCCEEDED');
  });

  it('an authorization is canceled', async () => {
    const payment = await pay(requestFor('APRO', false));
    expect(statesOf(await call('cancel', payment, {}))).toMatch(/^CANCELED.*CANCEL SUCCEEDED/);
    expect(at().status).toBe('cancelled');
  });

  it.each(['capture', 'cancel'] as const)('a lost %s ends as Mercado Pago says, once', async (kind) => {
    for (const when of ['before', 'after'] as const) {
      fake.payments.clear();
      const payment = await pay(requestFor('APRO', false));
      fake.lose(/^PUT/, when);
      expect(statesOf(await call(kind, payment, {}))).toContain(`${kind.toUpperCase()} PENDING`);
      await expect
        .poll(async () => statesOf(await read(payment)))
        .toContain(`${kind.toUpperCase()} SUCCEEDED`);
      expect(at().status).toBe(kind === 'capture' ? 'approved' : 'cancelled');
    }
  });

  it('a lost charge is found once the search lists it, and is never sent again', async () => {
    const before = fake.requests.length;
    fake.lagSearch(true);
    fake.lose(/^POST .v1.payments$/, 'after');
    const made = pay(requestFor());
    await expect.poll(() => fake.payments.size).toBe(1);
    await new Promise((resolve) => setTimeout(resolve, 500));
    fake.lagSearch(false);
    const payment = await made;
    await expect
      .poll(async () => statesOf(await read(payment)))
      .toBe('SUCCEEDED/APPROVED, PURCHASE SUCCEEDED SUCCEEDED');
    const sent = fake.requests.slice(before).filter(({ path }) => path === '/v1/payments');
    expect(sent).toHaveLength(1);
  });

  it.each([
    ['an e-mail', 'customer_payer.email', 'customer_payer.email'],
    ['a security code', `${CARD_DATA}.security_code`, `${CARD_DATA}.security_code`],
  ])('a card without %s is refused by name, before anything is sent', async (_, path, field) => {
    const before = fake.requests.length;
    const refused = await clients.create('rest', withField(requestFor(), path, undefined), headersOne());
    expect(refused.reason).toBe('OPERATION_NOT_SUPPORTED');
    expect(refused.fields).toMatchObject([{ field, code: 'REQUIRED' }]);
    expect(fake.requests).toHaveLength(before);
  });
});
