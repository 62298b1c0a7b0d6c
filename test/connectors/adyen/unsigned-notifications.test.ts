import { afterAll, expect, it } from 'vitest';
import { connectAdyen, read } from './adyen-under-test.ts';
import { notificationOf } from './fake-notifications.ts';

const AMOUNT = { value: 1130, currency: 'EUR' };

const connection = connectAdyen();
afterAll(() => connection.close());

const item = (eventCode: string, success: boolean) => ({
  ...{ eventCode, success, psp: 'NC6HT9CRT65ZGN82' },
  reference: '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11',
});

/** The item of a notification, without its signature. */
const unsigned = (eventCode: string, change: object = {}) => {
  const [entry] = JSON.parse(notificationOf(item(eventCode, true), AMOUNT)).notificationItems;
  Object.assign(entry.NotificationRequestItem, { additionalData: {} }, change);
  return entry;
};
const listOf = (...notificationItems: object[]) => JSON.stringify({ live: 'false', notificationItems });

it.each(['REPORT_AVAILABLE', 'PENDING', 'RECURRING_CONTRACT', 'ORDER_OPENED', 'NEW_EVENT_OF_ADYEN'])(
  'an unsigned %s, which Adyen does not sign and this service ignores, is accepted and changes nothing',
  async (eventCode) => {
    const ignored = { kind: 'ignored', acknowledgement: '[accepted]' };
    expect(await read(connection, listOf(unsigned(eventCode)))).toEqual(ignored);
    expect(await read(connection, listOf(unsigned(eventCode, { additionalData: undefined })))).toEqual(
      ignored,
    );
  },
);

it.each([
  ...['AUTHORISATION', 'CAPTURE', 'CAPTURE_FAILED', 'CANCELLATION', 'REFUND', 'REFUND_FAILED'],
  ...['REFUNDED_REVERSED', 'TECHNICAL_CANCEL', 'OFFER_CLOSED', 'EXPIRE', 'CANCEL_OR_REFUND'],
  ...['CHARGEBACK', 'NOTIFICATION_OF_CHARGEBACK', 'PREARBITRATION_LOST', '', 'authorisation', 'a b'],
])('an unsigned %j is refused', async (eventCode) => {
  expect(await read(connection, listOf(unsigned(eventCode)))).toMatchObject({ kind: 'forged' });
});

it('an ignored event with a wrong signature is refused, and so is an unsigned event beside an ignored one', async () => {
  const wrong = unsigned('REPORT_AVAILABLE', { additionalData: { hmacSignature: 'AAAA' } });
  for (const body of [listOf(wrong), listOf(unsigned('REPORT_AVAILABLE'), unsigned('AUTHORISATION'))]) {
    expect(await read(connection, body)).toMatchObject({ kind: 'forged' });
  }
});

it('an unsigned ignored event beside a genuine one does not make the genuine one another notification', async () => {
  const [genuine] = JSON.parse(notificationOf(item('AUTHORISATION', true), AMOUNT)).notificationItems;
  const alone = await read(connection, listOf(genuine));
  expect(alone).toMatchObject({ kind: 'about' });
  expect(await read(connection, listOf(unsigned('REPORT_AVAILABLE'), genuine))).toEqual(alone);
});
