import { afterAll, describe, expect, it } from 'vitest';
import type { NotificationSubject } from '#src/connectors/port/connector.ts';
import { connectAdyen, read } from './adyen-under-test.ts';
import { notificationOf } from './fake-notifications.ts';

const ID = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const PAYMENT = 'NC6HT9CRT65ZGN82';
const OPERATION = 'QFQTPCQ8HXSKGK82';
const money = { minorUnits: 1130n, currency: 'EUR' };

const connection = connectAdyen();
afterAll(() => connection.close());

async function subjectsOf(
  eventCode: string,
  reference = ID,
  over: { success?: boolean; original?: string } = { original: PAYMENT },
): Promise<readonly NotificationSubject[]> {
  const item = { eventCode, success: true, psp: OPERATION, reference, ...over };
  const reading = await read(connection, notificationOf(item, { value: 1130, currency: 'EUR' }));
  return reading.kind === 'about' ? reading.subjects : [];
}

describe.each(['CAPTURE', 'REFUND'])('a %s made at Adyen itself', (eventCode) => {
  const made = {
    providerPaymentId: PAYMENT,
    signed: {
      ...{ ...money, operation: eventCode, paidReference: PAYMENT },
      outcome: { kind: 'approved', providerPaymentId: OPERATION },
    },
  };

  it("an operation with the payment's signed reference may have been made at Adyen, or may be one of ours", async () => {
    const [ours, made_, ...others] = await subjectsOf(eventCode);
    expect(ours).toMatchObject({ providerPaymentId: OPERATION, signed: { outcome: { kind: 'approved' } } });
    expect(ours?.signed).not.toHaveProperty('operation');
    expect([made_, others]).toMatchObject([{ ...made, transactionId: ID }, []]);
  });

  it("an operation made at Adyen with its own reference is found by its payment's signed reference", async () => {
    const subjects = await subjectsOf(eventCode, 'return-17');
    expect(subjects).toMatchObject([{ providerPaymentId: OPERATION }, made]);
    expect(subjects[1]).not.toHaveProperty('transactionId');
    expect(await subjectsOf(eventCode, 'return-17', {})).toHaveLength(1);
  });

  it("an operation made at Adyen with only our payment's reference is not tied to a particular charge", async () => {
    const [, told] = await subjectsOf(eventCode, ID, {});
    expect(told).toMatchObject({ transactionId: ID, signed: { operation: eventCode } });
    expect(told?.signed).not.toHaveProperty('paidReference');
  });

  it('an operation is not reported as made at Adyen if it failed or has the reference of one of ours', async () => {
    expect(await subjectsOf(eventCode, ID, { original: PAYMENT, success: false })).toHaveLength(1);
    for (const kind of ['capture', 'cancel', 'refund']) {
      expect(await subjectsOf(eventCode, `${kind}-${ID}`)).toHaveLength(1);
    }
  });
});

it("a cancel made at Adyen itself is reported with its charge's signed reference", async () => {
  const [, told] = await subjectsOf('CANCELLATION');
  expect(told?.signed).toMatchObject({ outcome: { kind: 'expired' }, paidReference: PAYMENT });
});

it("Adyen's CANCEL_OR_REFUND raises an alarm on success, since the event may be a cancel or a refund", async () => {
  const [subject, ...others] = await subjectsOf('CANCEL_OR_REFUND');
  expect([subject, others]).toMatchObject([
    { transactionId: ID, signed: { ...money, outcome: { kind: 'unknown', alarm: true } } },
    [],
  ]);
  expect(await subjectsOf('CANCEL_OR_REFUND', ID, { original: PAYMENT, success: false })).toEqual([]);
});

it.each(['REFUND_FAILED', 'CAPTURE_FAILED', 'REFUNDED_REVERSED'])(
  'an Adyen event that undoes an operation is not reported as an operation made at Adyen, even if its reference is not ours: %s',
  async (eventCode) => {
    expect(await subjectsOf(eventCode, 'return-17')).toHaveLength(1);
  },
);
