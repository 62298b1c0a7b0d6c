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

  it.each<[string, boolean, readonly string[] | undefined]>([
    ['CAPTURE_FAILED', true, ['CAPTURE']],
    ['REFUND_FAILED', true, ['REFUND']],
    ['REFUNDED_REVERSED', true, ['REFUND']],
    ['CAPTURE', false, undefined],
    ['CAPTURE', true, ['CAPTURE', 'CAPTURE_FAILED']],
    ['REFUND', true, ['REFUND', 'REFUND_FAILED', 'REFUNDED_REVERSED']],
    ['AUTHORISATION', true, expect.arrayContaining(['AUTHORISATION', 'Refused'])],
    ['AUTHORISATION', false, undefined],
    ['TECHNICAL_CANCEL', true, undefined],
  ])("Adyen's %s (success: %s) corrects earlier reports: %s", async (eventCode, success, corrects) => {
    const reading = await read(connection, notificationOf(item(eventCode, success), AMOUNT));
    if (reading.kind !== 'about') throw new Error(reading.kind);
    const outcome = reading.subjects[0]?.signed?.outcome;
    expect(outcome?.kind).toMatch(/^(approved|declined)$/);
    expect(Object.entries(outcome ?? {}).find(([name]) => name === 'corrects')?.[1]).toEqual(corrects);
  });

  const keyOf = async (about: Parameters<typeof notificationOf>[0], more: object) => {
    const reading = await read(connection, notificationOf(about, AMOUNT, more));
    if (reading.kind !== 'about') throw new Error(reading.kind);
    return reading.deduplicationKey;
  };
  const dated = (eventDate: string, reason = '') => ({ eventDate, reason });

  it.each(['CAPTURE', 'CAPTURE_FAILED', 'REFUND', 'REFUND_FAILED', 'REFUNDED_REVERSED', 'AUTHORISATION'])(
    'another %s about the same operation is another notification if its date differs, however the date is written',
    async (eventCode) => {
      const about = modified(eventCode);
      const first = await keyOf(about, dated('2026-11-22T02:00:00+01:00'));
      expect(await keyOf(about, dated('2026-11-22T01:00:00Z', 'delivered again'))).toBe(first);
      expect(await keyOf(about, dated('2026-11-24T02:00:00+01:00'))).not.toBe(first);
    },
  );

  it('an Adyen event that is never repeated is one notification, whatever its unsigned fields say', async () => {
    const about = modified('CHARGEBACK');
    expect(await keyOf(about, dated('2026-11-24T02:00:00+01:00'))).toBe(
      await keyOf(about, dated('2026-11-22T02:00:00+01:00')),
    );
  });

  it("the date of Adyen's event orders reports, unless it is missing, unreadable or ahead of our clock", async () => {
    const at = async (eventDate: unknown) => {
      const body = notificationOf({ ...modified('CAPTURE'), reference: `capture-${ID}` }, AMOUNT, {
        eventDate,
      });
      return subjectOf(await read(connection, body)).signed?.at;
    };
    expect(await at('2026-11-22T02:00:00+01:00')).toEqual(new Date('2026-11-22T01:00:00Z'));
    const ahead = (ms: number) => new Date(Date.now() + ms).toISOString();
    expect(await at(ahead(4 * 60_000))).toBeInstanceOf(Date);
    for (const other of [undefined, '', 'yesterday', 7, ahead(6 * 60_000)])
      expect(await at(other)).toBeUndefined();
  });
});
