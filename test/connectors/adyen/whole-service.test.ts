import { expect, it } from 'vitest';
import type { LeasedDelivery } from '#src/store/tables/deliveries.ts';
import { eventBody } from '#src/webhooks/deliver.ts';
import { server, tables } from '../../support/on-service.ts';
import { cardPayment, walletPayment, withField } from '../../support/payment-requests.ts';
import { untilNewsIsSettled } from '../../support/settled-news.ts';
import {
  alarms,
  call,
  deliver,
  deliverAll,
  fake,
  onAdyenService,
  payByCard,
  post,
  type Record,
  stateOf,
} from './adyen-service.ts';
import { notificationOf } from './fake-notifications.ts';

/*
 * Events that Adyen reports only by notification, through the whole service: the fake of Adyen
 * posts to the connection's URL.
 */

onAdyenService();

it('a payment whose completion got no response stays IN_PROCESS until Adyen reports the payment', async () => {
  const request = { ...walletPayment(), amount: { currency: 'EUR', value: 30 }, country: 'NL' };
  const payment = await call('', { ...request, payment_method: { type: 'IDEAL' } });
  expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  const { redirect_url: url } = payment.payment_method.payment_method_detail.wallet;
  const query = fake.payAt(url, true);
  const comesBack = (with_ = query) =>
    fetch(`${server.url}/v1/payments/${payment.id}/return?${with_}`, { redirect: 'manual' });
  await comesBack('redirectResult=forged');
  await untilNewsIsSettled(tables);
  expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  fake.next('lost_answer');
  fake.next('lost_answer');
  await comesBack();
  expect(await stateOf(payment)).toBe('PENDING/IN_PROCESS');
  for (const body of fake.notifications.splice(0)) await deliver(body);
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
});

it('a purchase whose capture failed stays SUCCEEDED and raises an alarm', async () => {
  const { payment, told } = await payByCard();
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  const before = await alarms();
  await deliver(told({ eventCode: 'CAPTURE_FAILED' }));
  await expect.poll(alarms).toBe(before + 1);
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
});

it('an authorization is restored if its capture and refund fail after success, in either order', async () => {
  const { payment, told } = await payByCard(false);
  await deliverAll();
  const captured = await call(`/${payment.id}/capture`, { merchant_reference: 'c-1' });
  await deliverAll();
  const refunded = await call(`/${payment.id}/refund`, { merchant_reference: 'r-1' });
  await deliverAll();
  expect(await stateOf(payment)).toBe('REFUNDED/REFUNDED');
  const before = await alarms();
  const failed = (eventCode: string, { transactions }: Record) =>
    told({ eventCode, psp: transactions.provider_data.transaction_id, reference: '' });
  // The correction waits until the refund has failed as well.
  await post(failed('CAPTURE_FAILED', captured));
  await expect.poll(alarms).toBe(before + 1);
  expect(await stateOf(payment)).toBe('REFUNDED/REFUNDED');
  await deliver(failed('REFUND_FAILED', refunded));
  await expect.poll(() => stateOf(payment), { timeout: 20_000 }).toBe('SUCCEEDED/APPROVED');
  const { amount, transactions_history } = await call(`/${payment.id}`);
  expect(amount).toMatchObject({ captured: 0, refunded: 0 });
  expect(transactions_history.map(({ response_code }: Record) => response_code)).toEqual([
    ...['SUCCEEDED', 'CAPTURE_FAILED', 'REFUND_FAILED'],
  ]);
  const atAdyen = [...fake.payments.values()].find((one) => one.reference === payment.transactions.id);
  Object.assign(atAdyen ?? {}, { state: 'authorised', captured: 0, refunded: 0 });
  await call(`/${payment.id}/capture`, { merchant_reference: 'c-2' });
  await deliverAll();
  expect(await stateOf(payment)).toBe('SUCCEEDED/CAPTURED');
});

it('an operation that Adyen notifies with another amount takes it, raises an alarm, and blocks no other', async () => {
  const { payment } = await payByCard(false);
  await deliverAll();
  const captured = await call(`/${payment.id}/capture`, { merchant_reference: 'c-1' });
  fake.notifications.length = 0;
  const { id, provider_data } = captured.transactions;
  const about = { eventCode: 'CAPTURE', success: true, psp: provider_data.transaction_id };
  const before = await alarms();
  await deliver(notificationOf({ ...about, reference: `capture-${id}` }, { value: 800, currency: 'USD' }));
  await expect.poll(alarms).toBe(before + 1);
  const { amount, transactions } = await call(`/${payment.id}`);
  expect([amount.captured, transactions.amount, transactions.status]).toEqual([8, 8, 'SUCCEEDED']);
  const refunded = await call(`/${payment.id}/refund`, { merchant_reference: 'r-1' });
  expect(refunded.transactions).toMatchObject({ status: 'PENDING', amount: 8 });
  fake.notifications.length = 0;
});

it('an AUTHORISATION that is corrected from failure to success makes the payment SUCCEEDED only once', async () => {
  const declined = withField(cardPayment(), 'amount', { currency: 'USD', value: 10 });
  const holder = 'payment_method.detail.card.card_data.holder_name';
  const payment = await call('', withField(declined, holder, 'DECLINED'));
  expect(await stateOf(payment)).toBe('DECLINED/DECLINED');
  await deliverAll();
  const before = await alarms();
  const { id: reference, provider_data } = payment.transactions;
  const about = { eventCode: 'AUTHORISATION', success: true, psp: provider_data.transaction_id, reference };
  for (const success of [false, true, true]) {
    await deliver(notificationOf({ ...about, success }, { value: 1_000, currency: 'USD' }));
  }
  expect([await stateOf(payment), await alarms()]).toEqual(['SUCCEEDED/APPROVED', before]);
});

it('an authorization undone by a technical cancel stays DECLINED, without an alarm, if reported late', async () => {
  fake.next('lost_answer');
  const { payment, about, told } = await payByCard();
  fake.notifications.length = 0;
  expect(await stateOf(payment)).toBe('PENDING/PENDING_PROVIDER_CONFIRMATION');
  const before = await alarms();
  await deliver(told({ eventCode: 'TECHNICAL_CANCEL' }));
  expect(await stateOf(payment)).toBe('DECLINED/DECLINED');
  await deliver(notificationOf(about, { value: 1_000, currency: 'USD' }));
  expect([await stateOf(payment), await alarms()]).toEqual(['DECLINED/DECLINED', before]);
  // Another authorization under the same reference is money that was never requested.
  await deliver(notificationOf({ ...about, psp: 'ANOTHER9CRT65ZGN' }, { value: 1_000, currency: 'USD' }));
  await expect.poll(alarms).toBe(before + 1);
});

it.each(['CANCELLATION', 'EXPIRE'])(
  'after %s an authorization is EXPIRED, and a purchase stays SUCCEEDED with an alarm',
  async (eventCode) => {
    const [authorized, purchased] = [await payByCard(false), await payByCard()];
    const before = await alarms();
    await deliver(authorized.told({ eventCode, psp: 'QFQTPCQ8HXSKGK8A' }));
    expect([await stateOf(authorized.payment), await alarms()]).toEqual(['EXPIRED/EXPIRED', before]);
    await deliver(purchased.told({ eventCode, psp: 'QFQTPCQ8HXSKGK8B' }));
    await expect.poll(alarms).toBe(before + 1);
    expect(await stateOf(purchased.payment)).toBe('SUCCEEDED/APPROVED');
  },
);

it("our cancel succeeds without an alarm even if it is reported with the payment's reference", async () => {
  const { payment, told } = await payByCard(false);
  const before = await alarms();
  const canceled = await call(`/${payment.id}/cancel`, { merchant_reference: 'c' });
  fake.notifications.length = 0;
  const psp = canceled.transactions.provider_data.transaction_id;
  await deliver(told({ eventCode: 'CANCELLATION', psp }));
  await expect.poll(() => stateOf(payment)).toBe('CANCELED/CANCELED');
  expect([await stateOf(payment), await alarms()]).toEqual(['CANCELED/CANCELED', before]);
});

it("a declined payment and its event show Mastercard's advice; payments without advice do not have the fields", async () => {
  const request = withField(cardPayment(), 'amount', { currency: 'USD', value: 10 });
  const payAs = (holderName: string) =>
    call('', withField(request, 'payment_method.detail.card.card_data.holder_name', holderName));
  const declined = await payAs('DECLINED');
  const advice = { merchant_advice_code: '03', merchant_advice_code_message: 'Do not try again' };
  expect(declined.transactions.provider_data).toMatchObject(advice);
  expect((await call(`/${declined.id}`)).transactions.provider_data).toMatchObject(advice);
  const [stored] = await tables.query('SELECT record FROM payment WHERE id = $1', [declined.id]);
  const event = {
    id: '',
    type: 'payment.purchase',
    createdAt: new Date(),
    sequence: 1,
    idempotencyKey: null,
  };
  const told = eventBody('', { event: { ...event, record: stored?.record }, retry: 0 } as LeasedDelivery);
  expect(JSON.parse(told).data.payment.transactions.provider_data).toMatchObject(advice);
  const { provider_data } = (await payAs('NOT_ENOUGH_BALANCE')).transactions;
  expect(Object.keys(provider_data).filter((name) => name.startsWith('merchant_advice'))).toEqual([]);
});
