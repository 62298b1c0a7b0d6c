import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { notificationOf } from './connectors/adyen/fake-notifications.ts';
import { FAKE_ACCESS_TOKEN, webhookOf } from './connectors/mercado-pago/fake-mercado-pago.ts';
import { pathOf, signIn } from './support/dashboard.ts';
import { tell } from './support/fake-providers.ts';
import { alarms, call, deliver, fakes, type MerchantRecord, onFakes } from './support/on-fakes.ts';
import { server, tables } from './support/on-service.ts';
import { cardPayment, walletPayment, withField } from './support/payment-requests.ts';
import { untilNewsIsSettled } from './support/settled-news.ts';

/*
 * Operations that a merchant makes in a provider's dashboard, through the whole service with the fakes of all four
 * providers.
 */

onFakes();
const stateOf = async ({ id }: MerchantRecord) => {
  const { status, sub_status } = await call(`/${id}`);
  return `${status}/${sub_status}`;
};

/** Returns the operations of a payment: type, status and amount. */
const operationsOf = async ({ id }: MerchantRecord) => {
  const { transactions_history: history } = await call(`/${id}`);
  return history
    .filter(({ parent_transaction_id: parent }: MerchantRecord) => parent)
    .map(({ type, status, amount }: MerchantRecord) => `${type} ${status} ${amount}`);
};

/** Returns the ids by which the provider names the operations of a payment. */
async function idsOf({ id }: MerchantRecord): Promise<unknown[]> {
  const rows = await tables.query(
    'SELECT provider_payment_id AS id FROM transaction WHERE payment_id = $1 AND parent_id IS NOT NULL ORDER BY created_at, id',
    [id],
  );
  return rows.map((row) => row.id);
}

async function eventsOf({ id }: MerchantRecord): Promise<unknown[]> {
  const rows = await tables.query('SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence', [id]);
  return rows.map(({ type }) => type);
}

describe('operations in the Stripe dashboard', () => {
  const chargeOf = ({ latest_charge: id }: MerchantRecord) => fakes.stripe.ledger.charges.get(id) ?? {};

  /** Makes a payment of 100.00 USD that Adyen softly declines, so that Stripe gets it. */
  async function pay(capture = true) {
    const amount = { currency: 'USD', value: 100 };
    const card = withField(cardPayment('4242424242424242'), 'amount', amount);
    const named = withField(card, 'payment_method.detail.card.card_data.holder_name', 'NOT_ENOUGH_BALANCE');
    const payment = await call('', withField(named, 'payment_method.detail.card.capture', capture));
    const intent = [...fakes.stripe.ledger.intents.values()].at(-1);
    if (!intent) throw new Error('Stripe has no payment intent');
    return { payment, intent };
  }

  const event = (type: string, object: object): RawNotification => {
    const { body, signature } = fakes.stripe.notification(type, object as never);
    return {
      header: (name) => (name === 'stripe-signature' ? signature : undefined),
      query: '',
      body: Buffer.from(body),
    };
  };

  const refundThere = (intent: { id: string }, amount: number) => {
    const { body } = fakes.stripe.ledger.refund({ payment_intent: intent.id, amount });
    return event('refund.created', body);
  };

  it('a refund in the Stripe dashboard is recorded, and only the rest can be refunded here', async () => {
    const { payment, intent } = await pay();
    await deliver('stripe-main', refundThere(intent, 4_000));
    expect(await stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
    const refund = await call(`/${payment.id}/refund`, { merchant_reference: 'rest' });
    expect(refund.transactions.amount).toBe(60);
    expect(await stateOf(payment)).toBe('REFUNDED/REFUNDED');
    await deliver('stripe-main', event('charge.refunded', chargeOf(intent)));
    expect(await operationsOf(payment)).toEqual(['REFUND SUCCEEDED 40', 'REFUND SUCCEEDED 60']);
    expect((await eventsOf(payment)).slice(-2)).toEqual(['payment.refund', 'payment.refund']);
    const operator = await signIn(server, SANDBOX_OPERATOR_KEY);
    const page = await (await operator.get(pathOf(payment))).text();
    expect(page.match(/Made at the provider itself/g)).toHaveLength(1);
  });

  it('a capture in the Stripe dashboard and a refund of it are recorded', async () => {
    const { payment, intent } = await pay(false);
    fakes.stripe.ledger.capture(intent.id, { amount_to_capture: 7_000 });
    await deliver('stripe-main', event('charge.captured', chargeOf(intent)));
    expect(await stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_CAPTURED');
    await deliver('stripe-main', refundThere(intent, 7_000));
    expect(await stateOf(payment)).toBe('REFUNDED/REFUNDED');
    expect(await operationsOf(payment)).toEqual(['CAPTURE SUCCEEDED 70', 'REFUND SUCCEEDED 70']);
    const made = [...fakes.stripe.ledger.refunds.values()].findLast(({ amount }) => amount === 7_000);
    expect(await idsOf(payment)).toEqual([intent.latest_charge, made?.id]);
  });

  it('simultaneous refunds in the Stripe dashboard and through the service are each recorded once', async () => {
    const { payment, intent } = await pay();
    const before = await alarms();
    fakes.stripe.fail(/^POST .*refunds$/, 'lost_after');
    const refund = (reference: string) =>
      call(`/${payment.id}/refund`, {
        merchant_reference: reference,
        amount: { currency: 'USD', value: 10 },
      });
    const told = refundThere(intent, 2_000);
    await Promise.all([
      refund('lost').catch(() => {}),
      deliver('stripe-main', told),
      deliver(
        'stripe-main',
        event('refund.updated', JSON.parse(Buffer.from(told.body).toString()).data.object),
      ),
    ]);
    const refunds = async () => (await operationsOf(payment)).sort();
    await expect.poll(refunds).toEqual(['REFUND SUCCEEDED 10', 'REFUND SUCCEEDED 20']);
    expect((await call(`/${payment.id}`)).amount.refunded).toBe(30);
    expect(await alarms()).toBe(before);
  });
});

it('a refund in the PayPal dashboard is recorded, with or without our id in its notification', async () => {
  const wallet = withField(walletPayment(), 'payment_method.type', 'PAYPAL');
  const payment = await call('', { ...wallet, amount: { currency: 'USD', value: 30 }, country: 'US' });
  const order = [...fakes.paypal.ledger.orders.values()].at(-1);
  fakes.paypal.approve(order?.id ?? '');
  await fetch(`${server.url}/v1/payments/${payment.id}/return`, { redirect: 'manual' });
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  const [capture] = order?.captures ?? [];
  const captureId = capture?.id ?? '';
  const refundThere = (value: string, names: object) => {
    const amount = { currency_code: 'USD', value };
    const { body } = fakes.paypal.ledger.refund(captureId, { amount, ...names }, undefined);
    const links = [{ rel: 'up', href: `https://api.paypal.com/v2/payments/captures/${captureId}` }];
    const resource = { ...body, links };
    return fakes.paypal.notify({
      id: `WH-${randomUUID()}`,
      event_type: 'PAYMENT.CAPTURE.REFUNDED',
      resource,
    });
  };
  await deliver('paypal-main', refundThere('10.00', { custom_id: capture?.custom_id }));
  expect(await stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
  await deliver('paypal-main', refundThere('20.00', {}));
  expect(await stateOf(payment)).toBe('REFUNDED/REFUNDED');
  expect(await operationsOf(payment)).toEqual(['REFUND SUCCEEDED 10', 'REFUND SUCCEEDED 20']);
  expect(await idsOf(payment)).toEqual(order?.refunds.map(({ id }) => id));
});

/** Makes a payment at Mercado Pago. `id` is Mercado Pago's. */
async function payInPesos(value: number): Promise<{ payment: MerchantRecord; id: string }> {
  fakes.mercadoPago.preferences.clear();
  const wallet = withField(walletPayment(), 'payment_method.type', 'MERCADO_PAGO_CHECKOUT_PRO');
  const payment = await call('', { ...wallet, country: 'AR', amount: { currency: 'ARS', value } });
  const id = String(fakes.mercadoPago.pay(fakes.mercadoPago.preference()).id);
  await deliver('mercado-pago-ar', webhookOf(id));
  return { payment, id };
}

/** Refunds a payment in the Mercado Pago dashboard. */
async function refundInPesos(id: string, amount: number): Promise<void> {
  await fetch(`${fakes.mercadoPago.url}/v1/payments/${id}/refunds`, {
    method: 'POST',
    headers: { authorization: `Bearer ${FAKE_ACCESS_TOKEN}`, 'x-idempotency-key': randomUUID() },
    body: JSON.stringify({ amount }),
  });
  await deliver('mercado-pago-ar', webhookOf(id));
}

it('a refund in the Mercado Pago dashboard is recorded', async () => {
  const { payment, id } = await payInPesos(4500.5);
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  await refundInPesos(id, 1000.5);
  expect(await stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
  expect(await operationsOf(payment)).toEqual(['REFUND SUCCEEDED 1000.5']);
});

it.each([
  ['ours', 'before'],
  ['ours', 'after'],
  ['external', 'before'],
  ['external', 'after'],
] as const)(
  'the second of two equal refunds at Mercado Pago is made once; the first is %s, and the call fails %s it is made',
  async (first, when) => {
    const { payment, id } = await payInPesos(30);
    const amount = { currency: 'ARS', value: 10 };
    const refund = (merchant_reference: string) =>
      call(`/${payment.id}/refund`, { merchant_reference, amount });
    await (first === 'ours' ? refund('first') : refundInPesos(id, 10));
    fakes.mercadoPago.lose(/^POST .*refunds$/, when);
    await refund('second');
    await expect.poll(() => operationsOf(payment)).toEqual(['REFUND SUCCEEDED 10', 'REFUND SUCCEEDED 10']);
    const made = fakes.mercadoPago.refunds.get(id) ?? [];
    expect(await idsOf(payment)).toEqual(made.map((refund) => String(refund.id)));
  },
);

it('captures and refunds in Adyen’s dashboard are recorded, except the capture of a purchase', async () => {
  const request = withField(cardPayment(), 'amount', { currency: 'USD', value: 10 });
  const purchase = await call('', request);
  const payment = await call('', withField(request, 'payment_method.detail.card.capture', false));
  fakes.adyen.notifications.length = 0;
  const told = async (about: MerchantRecord, eventCode: string, value: number, psp: string) => {
    const reference = about.transactions.id;
    const paid = [...fakes.adyen.payments.values()].find((one) => one.reference === reference);
    const item = { eventCode, success: true, psp, reference, original: paid?.pspReference ?? '' };
    const body = Buffer.from(notificationOf(item, { value, currency: 'USD' }));
    await deliver('adyen-main', { header: () => undefined, query: '', body });
  };
  await told(payment, 'CAPTURE', 1_000, 'QFQTPCQ8HXSKGK81');
  await expect.poll(() => stateOf(payment)).toBe('SUCCEEDED/CAPTURED');
  await told(purchase, 'CAPTURE', 1_000, 'QFQTPCQ8HXSKGK82');
  await told(payment, 'REFUND', 400, 'QFQTPCQ8HXSKGK83');
  await expect.poll(() => stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
  await told(payment, 'REFUND', 600, 'QFQTPCQ8HXSKGK84');
  await expect.poll(() => stateOf(payment)).toBe('REFUNDED/REFUNDED');
  expect(await operationsOf(payment)).toEqual([
    'CAPTURE SUCCEEDED 10',
    'REFUND SUCCEEDED 4',
    'REFUND SUCCEEDED 6',
  ]);
  expect(await operationsOf(purchase)).toEqual([]);
  // A refund of ours is recorded in addition, with its own reference.
  const refund = await call(`/${purchase.id}/refund`, { merchant_reference: 'ours' });
  expect(refund.transactions.status).toBe('PENDING');
  await fakes.tellAdyens(server.url);
  await expect.poll(() => stateOf(purchase)).toBe('REFUNDED/REFUNDED');
  expect(await operationsOf(purchase)).toEqual(['REFUND SUCCEEDED 10']);
});

it('a refund at Adyen whose response was lost is not recorded a second time when Adyen reports it', async () => {
  const purchase = await call('', withField(cardPayment(), 'amount', { currency: 'USD', value: 10 }));
  const paid = [...fakes.adyen.payments.values()].find(
    ({ reference }) => reference === purchase.transactions.id,
  );
  fakes.adyen.notifications.length = 0;
  fakes.adyen.next('lost_answer');
  const amount = { currency: 'USD', value: 4 };
  await call(`/${purchase.id}/refund`, { merchant_reference: 'lost', amount });
  const [told = ''] = fakes.adyen.notifications.splice(0);
  const { pspReference: psp } = JSON.parse(told).notificationItems[0].NotificationRequestItem;
  const tellRefund = async () => {
    const item = { eventCode: 'REFUND', success: true, psp, reference: purchase.transactions.id };
    const body = notificationOf(
      { ...item, original: paid?.pspReference ?? '' },
      { value: 400, currency: 'USD' },
    );
    const notification = { header: () => undefined, query: '', body: Buffer.from(body) };
    expect(await tell(server.url, 'adyen-main', notification)).toBe(200);
  };
  await tellRefund();
  expect(await operationsOf(purchase)).toEqual(['REFUND PENDING 4']);
  // Repeating the refund with its key returns its reference, which matches the notification.
  await expect.poll(() => operationsOf(purchase)).toEqual(['REFUND SUCCEEDED 4']);
  await untilNewsIsSettled(tables);
  expect((await call(`/${purchase.id}`)).amount.refunded).toBe(4);
});
