import { afterAll, describe, expect, it } from 'vitest';
import { connectAdyen, read, subjectOf } from './adyen-under-test.ts';
import { notificationOf } from './fake-notifications.ts';

const ID = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const PAYMENT = 'NC6HT9CRT65ZGN82';
const MODIFICATION = 'QFQTPCQ8HXSKGK82';
const AMOUNT = { value: 1130, currency: 'EUR' };

const connection = connectAdyen();
afterAll(() => connection.close());

const item = (eventCode: string, success: boolean) => ({ eventCode, success, psp: PAYMENT, reference: ID });
const modified = (eventCode: string) => ({
  ...{ eventCode, success: true, reference: ID },
  ...{ psp: MODIFICATION, original: PAYMENT },
});

describe('notifications from Adyen about undone payments', () => {
  it("Adyen's CAPTURE_FAILED with a purchase's own reference raises an alarm", async () => {
    const body = notificationOf(modified('CAPTURE_FAILED'), AMOUNT, { reason: 'Capture Failed' });
    const reading = await read(connection, body);
    if (reading.kind !== 'about') throw new Error(reading.kind);
    expect(reading.subjects).toMatchObject([
      { providerPaymentId: MODIFICATION, signed: { outcome: { kind: 'declined', reference: MODIFICATION } } },
      {
        transactionId: ID,
        providerPaymentId: PAYMENT,
        signed: {
          ...{ minorUnits: 1130n, currency: 'EUR', ofPurchase: true },
          // The notification decides nothing: Adyen may retry the capture.
          outcome: {
            kind: 'unknown',
            alarm: true,
            detail: expect.stringMatching(/^alarm: .* Capture Failed$/),
          },
        },
      },
    ]);
    // The failed capture may also be one of ours, which only the first subject reports.
    expect(reading.subjects[0]).not.toHaveProperty('transactionId');
  });

  it("Adyen's EXPIRE reports that the uncaptured rest has lapsed", async () => {
    const reading = await read(connection, notificationOf(modified('EXPIRE'), AMOUNT));
    expect(subjectOf(reading)).toMatchObject({
      ...{ transactionId: ID, providerPaymentId: PAYMENT },
      signed: { minorUnits: 1130n, currency: 'EUR', outcome: { kind: 'expired', reference: PAYMENT } },
    });
  });

  it("Adyen's CANCELLATION with the payment's reference reports our cancel or the authorization's end", async () => {
    const reading = await read(connection, notificationOf(modified('CANCELLATION'), AMOUNT));
    if (reading.kind !== 'about') throw new Error(reading.kind);
    const money = { minorUnits: 1130n, currency: 'EUR' };
    expect(reading.subjects).toMatchObject([
      { providerPaymentId: MODIFICATION, signed: { ...money, outcome: { kind: 'approved' } } },
      { transactionId: ID, providerPaymentId: PAYMENT, signed: { ...money, outcome: { kind: 'expired' } } },
    ]);
    expect(reading.subjects[0]).not.toHaveProperty('transactionId');
  });

  it.each([
    ['CAPTURE_FAILED', true, true],
    ['REFUND_FAILED', true, true],
    ['REFUNDED_REVERSED', true, undefined],
    ['CAPTURE', false, undefined],
    ['CAPTURE', true, undefined],
    ['REFUND', true, undefined],
    ['AUTHORISATION', true, true],
    ['AUTHORISATION', false, undefined],
    ['TECHNICAL_CANCEL', true, undefined],
  ])("Adyen's %s (success: %s) corrects an earlier report: %s", async (eventCode, success, corrects) => {
    const reading = await read(connection, notificationOf(item(eventCode, success), AMOUNT));
    if (reading.kind !== 'about') throw new Error(reading.kind);
    const outcome = reading.subjects[0]?.signed?.outcome;
    expect(outcome?.kind).toMatch(/^(approved|declined)$/);
    expect(Object.entries(outcome ?? {}).find(([name]) => name === 'corrects')?.[1]).toBe(corrects);
  });

  it.each([
    ['CAPTURE', 'CAPTURE_FAILED', 'capture'],
    ['REFUND', 'REFUND_FAILED', 'refund'],
  ])("Adyen's %s names the event that may have undone the operation, %s", async (done, undone, kind) => {
    const told = async (eventCode: string) => {
      const about = { ...modified(eventCode), reference: `${kind}-${ID}` };
      return subjectOf(await read(connection, notificationOf(about, AMOUNT))).signed;
    };
    expect((await told(done))?.undoneBy).toBe(undone);
    expect(await told(undone)).toMatchObject({ outcome: { providerData: { status: undone } } });
    expect((await told(undone))?.undoneBy).toBeUndefined();
  });

  it("Adyen's AUTHORISATION names the technical cancel as the event that may have undone the payment", async () => {
    const told = async (about: Parameters<typeof notificationOf>[0]) =>
      subjectOf(await read(connection, notificationOf(about, AMOUNT))).signed;
    const approval = await told(item('AUTHORISATION', true));
    const cancel = await told(modified('TECHNICAL_CANCEL'));
    expect(approval?.undoneBy).toBe('TECHNICAL_CANCEL');
    // Both have the reference of the same authorization.
    expect([approval, cancel].map((one) => one?.outcome)).toMatchObject([
      { kind: 'approved', reference: PAYMENT },
      { kind: 'declined', reference: PAYMENT, providerData: { status: 'TECHNICAL_CANCEL' } },
    ]);
    expect((await told(item('AUTHORISATION', false)))?.undoneBy).toBeUndefined();
  });
});
