import { expect, it } from 'vitest';
import { tables } from '../../support/on-service.ts';
import { wantEveryEvent } from '../../support/tables.ts';
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
import type { Item } from './fake-notifications.ts';

/* Captures and refunds that fail at Adyen and are made again, through the whole service. */

onAdyenService();

/** A captured authorization, and the notifications about its capture, each dated so many days after the capture. */
async function capturedTwice() {
  const { payment, told } = await payByCard(false);
  await deliverAll();
  const captured = await call(`/${payment.id}/capture`, { merchant_reference: 'c-1' });
  const { id, provider_data } = captured.transactions;
  const on = (eventCode: string, day: number, over: Partial<Item> = {}) => {
    const item = { eventCode, psp: provider_data.transaction_id, reference: `capture-${id}`, ...over };
    const reason = day > 1 && eventCode === 'CAPTURE' ? 'Transaction Recaptured' : '';
    return told(item, { eventDate: `2026-11-2${day}T02:00:00+01:00`, reason });
  };
  await deliver(on('CAPTURE', 1));
  fake.notifications.length = 0;
  return { payment, on };
}

const capturedOf = async ({ id }: Record) => (await call(`/${id}`)).amount.captured;

it('a capture that Adyen makes again after it failed is in the books, however often that happens', async () => {
  const { payment, on } = await capturedTwice();
  await wantEveryEvent(tables);
  const before = await alarms();
  const captured = [];
  for (const [nth, eventCode] of ['CAPTURE_FAILED', 'CAPTURE', 'CAPTURE_FAILED', 'CAPTURE'].entries()) {
    const body = on(eventCode, nth + 2);
    for (let i = 0; i < 2; i++) await deliver(body);
    captured.push(await capturedOf(payment));
  }
  expect(captured).toEqual([0, 10, 0, 10]);
  expect([await stateOf(payment), await alarms()]).toEqual(['SUCCEEDED/CAPTURED', before]);
  const events = await tables.query('SELECT type FROM event WHERE payment_id = $1', [payment.id]);
  expect(events.map(({ type }) => type)).toEqual(Array(4).fill('payment.capture'));
});

it.each([
  [
    ['CAPTURE', 4],
    ['CAPTURE_FAILED', 2],
    ['CAPTURE_FAILED', 5],
    ['CAPTURE', 3],
  ],
  [
    ['CAPTURE_FAILED', 5],
    ['CAPTURE', 4],
    ['CAPTURE', 3],
    ['CAPTURE_FAILED', 2],
  ],
  [
    ['CAPTURE', 3],
    ['CAPTURE', 4],
    ['CAPTURE_FAILED', 5],
    ['CAPTURE_FAILED', 2],
  ],
] as [string, number][][])(
  'the event of Adyen with the latest date decides about a capture: %j',
  async (...order) => {
    const { payment, on } = await capturedTwice();
    const before = await alarms();
    for (const [eventCode, day] of order) await deliver(on(eventCode, day));
    expect([await capturedOf(payment), await alarms()]).toEqual([0, before]);
    await deliver(on('CAPTURE', 6));
    expect([await capturedOf(payment), await alarms()]).toEqual([10, before]);
  },
);

it('a capture that Adyen makes again with another pspReference is in the books once', async () => {
  const { payment, on } = await capturedTwice();
  const before = await alarms();
  await deliver(on('CAPTURE_FAILED', 2));
  await deliver(on('CAPTURE', 3, { psp: 'AGAIN9CRT65ZGN82' }));
  expect([await capturedOf(payment), await stateOf(payment), await alarms()]).toEqual([
    ...[10, 'SUCCEEDED/CAPTURED', before],
  ]);
});

it('a capture that Adyen makes again after the merchant did raises an alarm, and waits', async () => {
  const { payment, on } = await capturedTwice();
  await deliver(on('CAPTURE_FAILED', 2));
  const atAdyen = [...fake.payments.values()].find((one) => one.reference === payment.transactions.id);
  Object.assign(atAdyen ?? {}, { state: 'authorised', captured: 0 });
  await call(`/${payment.id}/capture`, { merchant_reference: 'c-2' });
  await deliverAll();
  const before = await alarms();
  await post(on('CAPTURE', 3));
  await expect.poll(alarms).toBe(before + 1);
  expect([await capturedOf(payment), await stateOf(payment)]).toEqual([10, 'SUCCEEDED/CAPTURED']);
  await tables.query('DELETE FROM notification WHERE settled_at IS NULL');
});

it('a refund that Adyen makes again after it failed is in the books', async () => {
  const { payment, told } = await payByCard();
  await deliverAll();
  const refunded = await call(`/${payment.id}/refund`, { merchant_reference: 'r-1' });
  const { id, provider_data } = refunded.transactions;
  fake.notifications.length = 0;
  const states = [];
  for (const [nth, eventCode] of [
    'REFUND',
    'REFUND_FAILED',
    'REFUND',
    'REFUNDED_REVERSED',
    'REFUND',
  ].entries()) {
    const item = { eventCode, psp: provider_data.transaction_id, reference: `refund-${id}` };
    await deliver(told(item, { eventDate: `2026-11-2${nth + 1}T02:00:00+01:00` }));
    states.push(await stateOf(payment));
  }
  const [done, failed] = ['REFUNDED/REFUNDED', 'SUCCEEDED/APPROVED'];
  expect(states).toEqual([done, failed, done, failed, done]);
});
