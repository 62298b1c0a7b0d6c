import { createHmac } from 'node:crypto';
import { afterAll, describe, expect, it } from 'vitest';
import type { NotificationSubject } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { connectAdyen, read, SECRETS, subjectOf } from './adyen-under-test.ts';
import { FAKE_ACCOUNT, FAKE_HMAC_KEY, notificationOf } from './fake-notifications.ts';

const ID = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const PAYMENT = 'NC6HT9CRT65ZGN82';
const MODIFICATION = 'QFQTPCQ8HXSKGK82';
const AMOUNT = { value: 1130, currency: 'EUR' };
const ANOTHER_KEY = `${'0'.repeat(63)}1`;

const connection = connectAdyen();
afterAll(() => connection.close());

const item = (eventCode: string, success: boolean, reference = ID) => ({
  eventCode,
  success,
  psp: PAYMENT,
  reference,
});
const modified = (eventCode: string, success: boolean, reference: string) => ({
  eventCode,
  success,
  psp: MODIFICATION,
  original: PAYMENT,
  reference,
});
/** A notification whose item was changed after signing. */
function tampered(change: object): string {
  const notification = JSON.parse(notificationOf(item('AUTHORISATION', true), AMOUNT));
  Object.assign(notification.notificationItems[0].NotificationRequestItem, change);
  return JSON.stringify(notification);
}
const kindOf = ({ signed }: NotificationSubject) => signed?.outcome.kind;

describe('a notification from Adyen', () => {
  it("the example notification in Adyen's documentation is genuine, with the signature given there", async () => {
    const account = connectAdyen({ merchant_account: 'TestMerchant' });
    const example = {
      eventCode: 'AUTHORISATION',
      success: 'true',
      pspReference: '7914073381342284',
      merchantAccountCode: 'TestMerchant',
      merchantReference: 'TestPayment-1407325143704',
      amount: { value: 1130, currency: 'EUR' },
      additionalData: { hmacSignature: 'coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=' },
    };
    const body = (change: object) =>
      JSON.stringify({ notificationItems: [{ NotificationRequestItem: { ...example, ...change } }] });
    // Genuine, but the payment lacks our reference.
    expect(await read(account, body({}))).toEqual({ kind: 'ignored', acknowledgement: '[accepted]' });
    expect(await read(account, body({ success: 'false' }))).toMatchObject({ kind: 'forged' });
    await account.close();
  });

  it("Adyen's signed AUTHORISATION reports that a payment was authorized", async () => {
    const additionalData = JSON.parse(notificationOf(item('AUTHORISATION', true), AMOUNT))
      .notificationItems[0].NotificationRequestItem.additionalData;
    const body = tampered({ additionalData: { ...additionalData, authCode: '033899' } });
    const reading = await read(connection, body);
    expect(reading).toMatchObject({ kind: 'about', acknowledgement: '[accepted]' });
    expect(subjectOf(reading)).toMatchObject({
      transactionId: ID,
      providerPaymentId: PAYMENT,
      signed: {
        minorUnits: 1130n,
        currency: 'EUR',
        outcome: {
          kind: 'approved',
          authorizationCode: '033899',
          ...{ reference: PAYMENT, providerPaymentId: PAYMENT },
          providerData: { id: 'ADYEN', transactionId: PAYMENT, status: 'AUTHORISATION' },
        },
      },
    });
  });

  it("Adyen's failed AUTHORISATION is a soft decline that shows its unsigned reason", async () => {
    const body = notificationOf(item('AUTHORISATION', false), AMOUNT, { reason: 'FRAUD' });
    expect(subjectOf(await read(connection, body)).signed?.outcome).toMatchObject({
      kind: 'declined',
      iso8583Code: '05',
      providerData: { responseMessage: 'FRAUD' },
    });
  });

  it.each([
    ['CAPTURE', 'capture', true, 'approved'],
    ['CAPTURE', 'capture', false, 'declined'],
    ['CAPTURE_FAILED', 'capture', true, 'declined'],
    ['CANCELLATION', 'cancel', true, 'approved'],
    ['CANCELLATION', 'cancel', false, 'declined'],
    ['REFUND', 'refund', true, 'approved'],
    ['REFUND', 'refund', false, 'declined'],
    ['REFUND_FAILED', 'refund', true, 'declined'],
    ['REFUNDED_REVERSED', 'refund', true, 'declined'],
  ])(
    "Adyen's %s about a %s (success: %s) reports that it is %s",
    async (eventCode, kind, success, outcome) => {
      const subject = subjectOf(
        await read(connection, notificationOf(modified(eventCode, success, `${kind}-${ID}`), AMOUNT)),
      );
      expect(subject).toMatchObject({ transactionId: ID, providerPaymentId: MODIFICATION });
      expect(subject.signed?.outcome).toMatchObject({ kind: outcome, providerPaymentId: MODIFICATION });
    },
  );

  it.each(['CAPTURE', 'CANCELLATION', 'REFUND'])(
    "Adyen's %s with the payment's own reference is not the payment's outcome",
    async (eventCode) => {
      const subject = subjectOf(
        await read(connection, notificationOf(modified(eventCode, false, ID), AMOUNT)),
      );
      expect(subject.transactionId).toBeUndefined();
      expect(subject.providerPaymentId).toBe(MODIFICATION);
    },
  );

  it("Adyen's CAPTURE is not the outcome of a refund", async () => {
    const body = notificationOf(modified('CAPTURE', true, `refund-${ID}`), AMOUNT);
    expect(subjectOf(await read(connection, body)).transactionId).toBeUndefined();
  });

  it('an Adyen notification of a technical cancel reports the cancel, or is ignored if Adyen found no payment', async () => {
    const canceled = await read(connection, notificationOf(modified('TECHNICAL_CANCEL', true, ID), AMOUNT));
    expect(subjectOf(canceled)).toMatchObject({ transactionId: ID, providerPaymentId: PAYMENT });
    expect(kindOf(subjectOf(canceled))).toBe('declined');
    const none = await read(connection, notificationOf(modified('TECHNICAL_CANCEL', false, ID), AMOUNT));
    expect(none).toEqual({ kind: 'ignored', acknowledgement: '[accepted]' });
  });

  it("Adyen's OFFER_CLOSED reports that an unused offer has expired", async () => {
    const reading = await read(connection, notificationOf(item('OFFER_CLOSED', true), AMOUNT));
    expect(kindOf(subjectOf(reading))).toBe('expired');
  });

  it.each<[string, string, string, number?]>([
    ['REQUEST_FOR_INFORMATION', 'opened', 'INQUIRY NEEDS_RESPONSE'],
    ['NOTIFICATION_OF_CHARGEBACK', 'opened', 'CHARGEBACK NEEDS_RESPONSE'],
    ['DISPUTE_OPENED_WITH_CHARGEBACK', 'opened', 'CHARGEBACK NEEDS_RESPONSE'],
    ['CHARGEBACK', 'opened', 'CHARGEBACK NEEDS_RESPONSE', 1],
    ['CHARGEBACK_REVERSED', 'won', 'CHARGEBACK WON', 2],
    ['ISSUER_RESPONSE_TIMEFRAME_EXPIRED', 'won', 'CHARGEBACK WON'],
    ['SECOND_CHARGEBACK', 'lost', 'as before LOST', 3],
    ['PREARBITRATION_OPEN', 'opened', 'PRE_ARBITRATION NEEDS_RESPONSE'],
    ['PREARBITRATION_DECLINED', 'opened', 'PRE_ARBITRATION UNDER_REVIEW'],
    ['PREARBITRATION_ACCEPTED', 'opened', 'PRE_ARBITRATION UNDER_REVIEW'],
    ['PREARBITRATION_ISSUER_WITHDRAWN', 'won', 'PRE_ARBITRATION WON'],
    ['PREARBITRATION_WON', 'won', 'PRE_ARBITRATION WON'],
    ['PREARBITRATION_LOST', 'lost', 'PRE_ARBITRATION LOST'],
    ['SCHEME_ARBITRATION', 'opened', 'ARBITRATION UNDER_REVIEW'],
    ['SCHEME_ARBITRATION_WON', 'won', 'ARBITRATION WON'],
    ['SCHEME_ARBITRATION_LOST', 'lost', 'ARBITRATION LOST'],
  ])(
    "Adyen's %s reports a dispute with the stage %s, as %s, and no outcome of the payment",
    async (eventCode, stage, state, moves) => {
      const subject = subjectOf(
        await read(connection, notificationOf(modified(eventCode, true, ID), AMOUNT)),
      );
      const money = { minorUnits: 1130n, currency: 'EUR' };
      expect(subject).toMatchObject({
        transactionId: ID,
        providerPaymentId: PAYMENT,
        dispute: { stage, reference: MODIFICATION, money, moves },
      });
      const { case: reported, isAddition } = subject.dispute ?? {};
      expect(isAddition).toBeUndefined();
      expect(`${reported?.stage ?? 'as before'} ${reported?.status}`).toBe(state);
    },
  );

  it.each([
    ['INFORMATION_SUPPLIED', 'opened', 'UNDER_REVIEW'],
    ['ISSUER_COMMENTS', 'opened', undefined],
    ['DISPUTE_DEFENSE_PERIOD_ENDED', 'lost', 'EXPIRED'],
  ])(
    "Adyen's %s adds to a dispute that another event has reported, whose stage it does not know",
    async (eventCode, stage, status) => {
      const body = notificationOf(
        modified(eventCode, true, ID),
        AMOUNT,
        {},
        {
          data: { disputeStatus: 'Won', defensePeriodEndsAt: '2026-12-18T10:15:30+01:00' },
        },
      );
      const { dispute, signed } = subjectOf(await read(connection, body));
      expect(signed).toBeUndefined();
      expect(dispute).toMatchObject({ stage, isAddition: true, reference: MODIFICATION });
      expect(dispute?.moves).toBeUndefined();
      expect(dispute?.case).toMatchObject({ status, respondBy: new Date('2026-12-18T09:15:30Z') });
      expect(dispute?.case?.stage).toBeUndefined();
    },
  );

  it.each([
    ['https://checkout-test.adyen.com', 'https://ca-test.adyen.com'],
    ['https://0a1b-Shop-checkout-live.adyenpayments.com/checkout', 'https://ca-live.adyen.com'],
    ['http://127.0.0.1:1', undefined],
  ])("a dispute at %s has a link to its payment's page at %s", async (base_url, site) => {
    const account = connectAdyen({ base_url });
    const body = notificationOf(modified('CHARGEBACK', true, ID), AMOUNT);
    const link = subjectOf(await read(account, body)).dispute?.case?.link;
    const page = `/ca/ca/accounts/showTx.shtml?pspReference=${PAYMENT}&txType=Payment`;
    expect(link).toBe(site && site + page);
    await account.close();
  });

  it("a dispute at Adyen has no reference if its only reference may be the payment's", async () => {
    const alone = notificationOf(item('CHARGEBACK_REVERSED', true), AMOUNT);
    expect(subjectOf(await read(connection, alone)).dispute).toMatchObject({
      ...{ stage: 'won', reference: undefined },
    });
  });

  it.each(['REPORT_AVAILABLE', 'AUTHORISATION_ADJUSTMENT', 'NOTIFICATION_OF_FRAUD', 'INVENTED', ''])(
    'an Adyen notification about %j is genuine and ignored',
    async (eventCode) => {
      const reading = await read(connection, notificationOf(item(eventCode, true), AMOUNT));
      expect(reading).toEqual({ kind: 'ignored', acknowledgement: '[accepted]' });
    },
  );

  it.each([
    ['a payment of another payment system', item('AUTHORISATION', true, 'order-1')],
    ['a payment whose reference has a colon', item('AUTHORISATION', true, `a:${ID}`)],
    ['a dispute of another payment system', { ...item('CHARGEBACK', true, 'order-1'), psp: 'not one' }],
    ['a payment that neither succeeded nor failed', { ...item('AUTHORISATION', true), success: 'perhaps' }],
    ['a payment whose own reference is malformed', { ...item('AUTHORISATION', true), psp: 'not one' }],
  ])('an Adyen notification about %s is ignored', async (_what, about) => {
    expect(await read(connection, notificationOf(about, AMOUNT))).toMatchObject({ kind: 'ignored' });
  });

  it('an Adyen notification is ignored if moving colons would make its signature match different fields', async () => {
    const genuine = item('AUTHORISATION', true, `${ID}:1130:EUR:CHARGEBACK`);
    const moved = {
      ...{ merchantReference: ID, amount: AMOUNT },
      ...{ eventCode: 'CHARGEBACK', success: '1:EUR:AUTHORISATION:true' },
    };
    const body = notificationOf(genuine, { value: 1, currency: 'EUR' }, moved);
    expect(await read(connection, body)).toMatchObject({ kind: 'ignored' });
  });

  it('an Adyen notification for another merchant account is ignored', async () => {
    const other = connectAdyen({ merchant_account: 'OtherECOM' });
    const reading = await read(other, notificationOf(item('AUTHORISATION', true), AMOUNT));
    expect(reading).toMatchObject({ kind: 'ignored' });
    await other.close();
  });

  it('an Adyen notification reports money only in whole ISO 4217 minor units', async () => {
    const pesos = (value: number) => notificationOf(item('AUTHORISATION', true), { value, currency: 'CLP' });
    expect(subjectOf(await read(connection, pesos(500)))).toMatchObject({
      signed: { minorUnits: 5n, currency: 'CLP' },
    });
    expect(subjectOf(await read(connection, pesos(501))).signed).toBeUndefined();
  });

  it.each([
    ['pspReference', { pspReference: MODIFICATION }],
    ['originalReference', { originalReference: MODIFICATION }],
    ['merchantAccountCode', { merchantAccountCode: 'OtherECOM' }],
    ['merchantReference', { merchantReference: ID.replace('3', '4') }],
    ['amount', { amount: { value: 1, currency: 'EUR' } }],
    ['currency', { amount: { value: 1130, currency: 'USD' } }],
    ['eventCode', { eventCode: 'REFUND' }],
    ['success', { success: 'false' }],
    ['signature', { additionalData: { hmacSignature: 'coqCmt/IZ4E3CzPvMY8zTjQVL5hYJUiBRg8UU+iCWo0=' } }],
    ['signature (left out)', { additionalData: {} }],
    ['signature (of another type)', { additionalData: { hmacSignature: 1 } }],
    ['signature (of another length)', { additionalData: { hmacSignature: 'AAAA' } }],
  ])('an Adyen notification is treated as forged if its %s was changed', async (_name, change) => {
    expect(await read(connection, tampered(change))).toEqual({
      kind: 'forged',
      detail: 'the signature is missing or wrong',
    });
  });

  it.each([
    '',
    'null',
    '[]',
    '{}',
    '{"notificationItems":[]}',
    '{"notificationItems":[1]}',
    '<xml/>',
    '{"notificationItems":{}}',
  ])('an Adyen notification is treated as forged if its body is %j', async (body) => {
    expect(await read(connection, body)).toMatchObject({ kind: 'forged' });
  });

  it('an Adyen notification is treated as forged if one of its items is not signed', async () => {
    const genuine = JSON.parse(notificationOf(item('AUTHORISATION', true), AMOUNT));
    const forged = JSON.parse(tampered({ success: 'false' }));
    const notificationItems = [...genuine.notificationItems, ...forged.notificationItems];
    expect(await read(connection, JSON.stringify({ notificationItems }))).toMatchObject({ kind: 'forged' });
  });

  it('every item of an Adyen notification is reported', async () => {
    const [first, second] = [item('AUTHORISATION', true), item('AUTHORISATION', false, ID.replace('3', '4'))];
    const notificationItems = [first, second].flatMap(
      (it) => JSON.parse(notificationOf(it, AMOUNT)).notificationItems,
    );
    const reading = await read(connection, JSON.stringify({ live: 'false', notificationItems }));
    expect(reading.kind === 'about' && reading.subjects.map(kindOf)).toEqual(['approved', 'declined']);
  });

  it('an Adyen notification keeps its deduplication key when sent again; another result has another key', async () => {
    const keyOf = async (body: string) => {
      const reading = await read(connection, body);
      return reading.kind === 'about' && reading.deduplicationKey;
    };
    const first = await keyOf(notificationOf(item('AUTHORISATION', false), AMOUNT));
    const again = await keyOf(
      notificationOf(item('AUTHORISATION', false), AMOUNT, { reason: 'Refused', paymentMethod: 'mc' }),
    );
    const corrected = await keyOf(notificationOf(item('AUTHORISATION', true), AMOUNT));
    expect(first).toMatch(/^[\w-]{43}$/);
    expect([again === first, corrected === first]).toEqual([true, false]);
  });

  it.each([
    ['INFORMATION_SUPPLIED', false],
    ['CHARGEBACK', true],
  ])('an Adyen notification about %s on another day has the same key: %s', async (eventCode, isSame) => {
    const keyOn = async (eventDate: string) => {
      const body = notificationOf(modified(eventCode, true, ID), AMOUNT, { eventDate });
      const reading = await read(connection, body);
      return reading.kind === 'about' && reading.deduplicationKey;
    };
    const first = await keyOn('2026-11-22T02:00:00+01:00');
    expect((await keyOn('2026-11-28T02:00:00+01:00')) === first).toBe(isSame);
    expect(await keyOn('2026-11-22T01:00:00Z')).toBe(first);
  });

  it('an Adyen notification can be verified with either of two keys during a rotation, but not with a third', async () => {
    const rolling = connectAdyen({}, { ...SECRETS, hmac_key_next: new Secret(ANOTHER_KEY) });
    const kinds: string[] = [];
    for (const hmacKey of [FAKE_HMAC_KEY, ANOTHER_KEY, 'f'.repeat(64)]) {
      const body = notificationOf(item('AUTHORISATION', true), AMOUNT, {}, { hmacKey });
      kinds.push((await read(rolling, body)).kind);
    }
    expect(kinds).toEqual(['about', 'about', 'forged']);
    await rolling.close();
  });

  it('an Adyen notification is signed over the fields that Adyen documents, in that order', () => {
    const signed = `${PAYMENT}::${FAKE_ACCOUNT}:${ID}:1130:EUR:AUTHORISATION:true`;
    const mac = createHmac('sha256', Buffer.from(FAKE_HMAC_KEY, 'hex')).update(signed).digest('base64');
    expect(notificationOf(item('AUTHORISATION', true), AMOUNT)).toContain(JSON.stringify(mac).slice(1, -1));
  });
});
