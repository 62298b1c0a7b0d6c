import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { webhookOf } from './connectors/mercado-pago/fake-mercado-pago.ts';
import { alarms, call, deliver, fakes, type MerchantRecord, onFakes } from './support/on-fakes.ts';
import { server, tables } from './support/on-service.ts';
import { cardPayment, walletPayment, withField } from './support/payment-requests.ts';

/*
 * Refunds that fail at Stripe, PayPal and Mercado Pago after they had succeeded, through the whole service. Adyen's are
 * in made-again.test.ts. The conformance suite asks every connector for each of its provider's statuses.
 */

onFakes();

/** A paid payment, and its provider: how the provider's refund gets another status, and how that is notified. */
type Paid = {
  readonly id: string;
  readonly money: { readonly currency: string; readonly value: number };
  readonly becomes: (status: string) => void;
  readonly notify: (event: string) => Promise<void>;
};

const sumOf = (amounts: readonly unknown[]) => amounts.reduce<number>((sum, one) => sum + Number(one), 0);

/** Makes a payment of 100.00 USD that Adyen softly declines, so that Stripe gets it. */
async function payAtStripe(): Promise<Paid> {
  const money = { currency: 'USD', value: 100 };
  const card = withField(cardPayment('4242424242424242'), 'amount', money);
  const holder = 'payment_method.detail.card.card_data.holder_name';
  const { id } = await call('', withField(card, holder, 'NOT_ENOUGH_BALANCE'));
  const { ledger } = fakes.stripe;
  const refund = () => [...ledger.refunds.values()].at(-1) ?? {};
  const becomes = (status: string) => {
    const one = refund();
    const isFailed = status !== 'succeeded';
    Object.assign(one, { status, ...(isFailed && { failure_reason: 'expired_or_canceled_card' }) });
    const charge = ledger.charges.get(String(one.charge));
    const kept = [...ledger.refunds.values()].filter(
      (it) => it.charge === one.charge && it.status === 'succeeded',
    );
    Object.assign(charge ?? {}, {
      amount_refunded: sumOf(kept.map(({ amount }) => amount)),
      refunded: !isFailed,
    });
  };
  const notify = async (type: string) => {
    const isCharge = type === 'charge.refunded';
    const object = isCharge ? ledger.charges.get(String(refund().charge)) : refund();
    const { body, signature } = fakes.stripe.notification(type, object as never);
    const header = (name: string) => (name === 'stripe-signature' ? signature : undefined);
    await deliver('stripe-main', { header, query: '', body: Buffer.from(body) });
  };
  return { id, money, becomes, notify };
}

async function payAtPayPal(): Promise<Paid> {
  const money = { currency: 'USD', value: 30 };
  const wallet = withField(walletPayment(), 'payment_method.type', 'PAYPAL');
  const { id } = await call('', { ...wallet, amount: money, country: 'US' });
  const order = [...fakes.paypal.ledger.orders.values()].at(-1);
  fakes.paypal.approve(order?.id ?? '');
  await fetch(`${server.url}/v1/payments/${id}/return`, { redirect: 'manual' });
  const captureId = order?.captures[0]?.id ?? '';
  const becomes = (status: string) => {
    const made = order?.refunds ?? [];
    Object.assign(made.at(-1) ?? {}, { status });
    const kept = made.filter((one) => one.status === 'COMPLETED');
    const isWhole = sumOf(kept.map(({ amount }) => amount.value)) === money.value;
    const partly = kept.length > 0 ? 'PARTIALLY_REFUNDED' : 'COMPLETED';
    Object.assign(order?.captures[0] ?? {}, { status: isWhole ? 'REFUNDED' : partly });
  };
  const notify = async (event_type: string) => {
    const links = [{ rel: 'up', href: `https://api.paypal.com/v2/payments/captures/${captureId}` }];
    const resource = { ...order?.refunds.at(-1), links };
    await deliver('paypal-main', fakes.paypal.notify({ id: `WH-${randomUUID()}`, event_type, resource }));
  };
  return { id, money, becomes, notify };
}

async function payAtMercadoPago(): Promise<Paid> {
  const money = { currency: 'ARS', value: 4500.5 };
  fakes.mercadoPago.preferences.clear();
  const wallet = withField(walletPayment(), 'payment_method.type', 'MERCADO_PAGO_CHECKOUT_PRO');
  const { id } = await call('', { ...wallet, country: 'AR', amount: money });
  const payment = fakes.mercadoPago.pay(fakes.mercadoPago.preference());
  const paidId = String(payment.id);
  await deliver('mercado-pago-ar', webhookOf(paidId));
  const becomes = (status: string) => {
    const made = fakes.mercadoPago.refunds.get(paidId) ?? [];
    Object.assign(made.at(-1) ?? {}, { status });
    const back = sumOf(made.filter((one) => one.status === 'approved').map(({ amount }) => amount));
    const isWhole = back === money.value;
    const partly = back > 0 ? 'partially_refunded' : 'accredited';
    Object.assign(payment, {
      status: isWhole ? 'refunded' : 'approved',
      status_detail: isWhole ? 'refunded' : partly,
      transaction_amount_refunded: back,
    });
  };
  return { id, money, becomes, notify: () => deliver('mercado-pago-ar', webhookOf(paidId)) };
}

/** A payment's state, its refunded amount and its refunds. */
async function refundedOf({ id }: Paid): Promise<string[]> {
  const { status, sub_status, amount, transactions_history: history } = await call(`/${id}`);
  const refunds = history
    .filter(({ type }: MerchantRecord) => type === 'REFUND')
    .map(({ status: its, response_code }: MerchantRecord) => `${its} ${response_code}`);
  return [`${status}/${sub_status}`, String(amount.refunded), ...refunds];
}

async function refundEvents({ id }: Paid): Promise<number> {
  const rows = await tables.query("SELECT 1 FROM event WHERE payment_id = $1 AND type = 'payment.refund'", [
    id,
  ]);
  return rows.length;
}

const APPROVED = ['SUCCEEDED/APPROVED', '0', 'DECLINED REFUND_FAILED'];

it.each([
  ['Stripe', 'failed', payAtStripe, 'refund.failed', 'succeeded', 'refund.updated'],
  ['Stripe', 'canceled', payAtStripe, 'charge.refund.updated', 'succeeded', 'charge.refunded'],
  ['PayPal', 'FAILED', payAtPayPal, 'PAYMENT.REFUND.FAILED', 'COMPLETED', 'PAYMENT.CAPTURE.REFUNDED'],
  ['Mercado Pago', 'rejected', payAtMercadoPago, 'payment.updated', 'approved', 'payment.updated'],
] as const)(
  'a refund at %s that becomes %s after it was done is DECLINED, and can be repeated',
  async (_name, failed, pay, failedEvent, done, doneEvent) => {
    const paid = await pay();
    const before = await alarms();
    const refund = (merchant_reference: string) => call(`/${paid.id}/refund`, { merchant_reference });
    await refund('r-1');
    const refunded = ['REFUNDED/REFUNDED', String(paid.money.value), 'SUCCEEDED SUCCEEDED'];
    await expect.poll(() => refundedOf(paid)).toEqual(refunded);
    paid.becomes(failed);
    for (let i = 0; i < 2; i++) await paid.notify(failedEvent);
    await expect.poll(() => refundedOf(paid)).toEqual(APPROVED);
    expect(await refundEvents(paid)).toBe(2);
    paid.becomes(done);
    await paid.notify(doneEvent);
    await expect.poll(() => refundedOf(paid)).toEqual(refunded);
    paid.becomes(failed);
    await paid.notify(failedEvent);
    await expect.poll(() => refundedOf(paid)).toEqual(APPROVED);
    await refund('r-2');
    await expect
      .poll(() => refundedOf(paid))
      .toEqual([...refunded.slice(0, 2), 'DECLINED REFUND_FAILED', 'SUCCEEDED SUCCEEDED']);
    expect([await refundEvents(paid), await alarms()]).toEqual([5, before]);
  },
);

it.each([
  ['Stripe', 'failed', payAtStripe, 'refund.failed'],
  ['PayPal', 'FAILED', payAtPayPal, 'PAYMENT.REFUND.FAILED'],
  ['Mercado Pago', 'rejected', payAtMercadoPago, 'payment.updated'],
] as const)(
  'of two partial refunds at %s, only the one that becomes %s leaves the books, and its amount can be refunded',
  async (_name, failed, pay, event) => {
    const paid = await pay();
    const before = await alarms();
    const refund = (merchant_reference: string, value?: number) =>
      call(`/${paid.id}/refund`, {
        merchant_reference,
        ...(value && { amount: { currency: paid.money.currency, value } }),
      });
    await refund('r-1', 10);
    await refund('r-2', 10);
    const done = 'SUCCEEDED SUCCEEDED';
    const partly = 'SUCCEEDED/PARTIALLY_REFUNDED';
    await expect.poll(() => refundedOf(paid)).toEqual([partly, '20', done, done]);
    paid.becomes(failed);
    await paid.notify(event);
    await expect.poll(() => refundedOf(paid)).toEqual([partly, '10', done, 'DECLINED REFUND_FAILED']);
    await refund('r-3');
    await expect
      .poll(() => refundedOf(paid))
      .toEqual(['REFUNDED/REFUNDED', String(paid.money.value), done, 'DECLINED REFUND_FAILED', done]);
    expect([await refundEvents(paid), await alarms()]).toEqual([4, before]);
  },
);
