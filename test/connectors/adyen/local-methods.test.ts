import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import { CustomerPayerSchema, DocumentSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import { lookUpOf, operationOn } from '../attempts.ts';
import {
  type AdyenUnderTest,
  codeAttempt,
  connectAdyen,
  openAdyen,
  PAYER,
  read,
  subjectOf,
} from './adyen-under-test.ts';
import type { FakeAdyen } from './fake-adyen.ts';
import { BOLETO_BARCODE, BOLETO_LINE, OXXO_REFERENCE, PIX_CODE } from './fake-codes.ts';
import { notificationOf } from './fake-notifications.ts';

/** The end of 10 January 2030 in Brazil, which is already the eleventh in UTC. */
const END_OF_DAY = Date.parse('2030-01-10T23:59:59-03:00');

describe('local methods at the fake Adyen', () => {
  let adyen: AdyenUnderTest;
  beforeEach(async () => {
    adyen = await openAdyen();
  });
  afterEach(() => adyen.close());

  async function awaiting(attempt = codeAttempt('PIX')) {
    const outcome = await adyen.connection.pay(attempt);
    if (outcome.kind !== 'awaits_payer') throw new Error(`${outcome.kind}: ${JSON.stringify(outcome)}`);
    return outcome;
  }

  /** Adyen's report about a code, besides that it was made. */
  async function told(): Promise<Outcome | undefined> {
    const readings = await adyen.delivered();
    const [reading, ...others] = readings.filter(({ kind }) => kind !== 'ignored');
    expect(others).toEqual([]);
    return subjectOf(reading).signed?.outcome;
  }

  it('a Pix shows its text without an image, until the requested time', async () => {
    const attempt = codeAttempt('PIX', { expiresAtMs: END_OF_DAY });
    const outcome = await awaiting(attempt);
    expect(outcome).toMatchObject({
      show: { instructions: { text: PIX_CODE } },
      until: new Date(END_OF_DAY),
      reference: expect.any(String),
      providerPaymentId: expect.any(String),
      providerData: { status: 'Pending' },
    });
    expect(outcome.show).toEqual({ instructions: { text: PIX_CODE } });
    const [request] = adyen.fake.requests;
    expect(request?.key).toBe(attempt.transactionId);
    expect(request?.body).toMatchObject({
      paymentMethod: { type: 'pix' },
      sessionValidity: '2030-01-11T02:59:59.000Z',
      captureDelayHours: 0,
      shopperName: { firstName: 'Ana', lastName: 'Gómez' },
      socialSecurityNumber: '12345678909',
    });
  });

  it("a boleto shows its line, its bars and its document, and is due on the payer's day", async () => {
    const outcome = await awaiting(codeAttempt('BOLETO', { expiresAtMs: END_OF_DAY }));
    expect(outcome).toMatchObject({
      show: {
        instructions: {
          number: BOLETO_LINE,
          barcode: BOLETO_BARCODE,
          document: expect.stringMatching(/^https:.*boleto\.pdf/),
        },
      },
      // Adyen's time has no offset.
      until: new Date('2030-01-10T23:59:59Z'),
      providerData: { status: 'PresentToShopper' },
    });
    expect(adyen.fake.requests[0]?.body).toMatchObject({
      paymentMethod: { type: 'boletobancario' },
      deliverAt: '2030-01-10T23:59:59.000Z',
    });
  });

  it('an OXXO voucher shows its reference, its bars and its document, and Adyen alone decides its end', async () => {
    const outcome = await awaiting(codeAttempt('OXXO', { customerPayer: create(CustomerPayerSchema) }));
    expect(outcome).toMatchObject({
      show: { instructions: { number: OXXO_REFERENCE, barcode: OXXO_REFERENCE } },
      until: expect.any(Date),
    });
    const { body } = adyen.fake.requests[0] ?? {};
    expect(body).not.toHaveProperty('sessionValidity');
    expect(body).not.toHaveProperty('deliverAt');
    const { OXXO: terms } = adyen.connection.capabilities.localMethods;
    expect(terms?.expiry.least).toBe(terms?.expiry.greatest);
  });

  it("PSE sends the payer to the bank's page, whose result completes the payment", async () => {
    const document = create(DocumentSchema, { documentType: 'cc', documentNumber: '1020304050' });
    const customerPayer = { ...PAYER, document };
    const attempt = codeAttempt('PSE', { customerPayer }, { bankId: '1022' });
    const outcome = await awaiting(attempt);
    expect(payersPage(outcome)).toMatch(/^http/);
    expect(adyen.fake.requests[0]?.body.paymentMethod).toEqual({
      ...{ type: 'pse_payulatam', bank: '1022', clientType: 'N' },
      ...{ identification: '1020304050', identificationType: 'CC' },
    });
    const returnQuery = adyen.fake.payAt(payersPage(outcome), true);
    const completed = await adyen.connection.complete?.(lookUpOf(attempt, { hint: { returnQuery } }));
    expect(completed).toMatchObject({ kind: 'approved', providerPaymentId: expect.any(String) });
  });

  it('a company pays with PSE as a legal person', async () => {
    const customerPayer = create(CustomerPayerSchema, {
      document: { documentType: 'NIT', documentNumber: '900123456' },
    });
    await adyen.connection.pay(codeAttempt('PSE', { customerPayer }, { bankId: '1040' }));
    expect(adyen.fake.requests[0]?.body.paymentMethod).toMatchObject({
      clientType: 'J',
      identificationType: 'NIT',
    });
  });

  it('a bank that refuses a PSE payment declines it, by its return and by its notification', async () => {
    const attempt = codeAttempt('PSE', {}, { bankId: '1022' });
    const returnQuery = adyen.fake.payAt(payersPage(await awaiting(attempt)), false);
    const completed = await adyen.connection.complete?.(lookUpOf(attempt, { hint: { returnQuery } }));
    expect(completed).toMatchObject({ kind: 'declined' });
    expect(await told()).toMatchObject({ kind: 'declined' });
  });

  it('the banks of PSE are the issuers that Adyen lists, without those that are out of order', async () => {
    expect(await adyen.connection.listBanks?.('PSE')).toEqual([
      { id: '1022', name: 'Banco Uno' },
      { id: '1040', name: 'Banco Dos' },
    ]);
    expect(await adyen.connection.listBanks?.('PIX')).toEqual([]);
    adyen.fake.next('error');
    await expect(adyen.connection.listBanks?.('PSE')).rejects.toThrow(/banks/);
  });

  it.each<[string, Parameters<FakeAdyen['happens']>[1], Outcome['kind']]>([
    ['PIX', 'paid', 'approved'],
    ['PIX', 'refused', 'declined'],
    ['PIX', 'expired', 'expired'],
    ['PIX', 'closed', 'expired'],
    ['BOLETO', 'paid', 'approved'],
    ['BOLETO', 'expired', 'expired'],
    ['OXXO', 'closed', 'expired'],
  ])("Adyen's notification about a %s code that is %s reports it as %s", async (type, what, kind) => {
    const attempt = codeAttempt(type);
    const { providerPaymentId } = await awaiting(attempt);
    // The event that a code was made says nothing about money.
    expect(await adyen.delivered()).toEqual([{ kind: 'ignored', acknowledgement: '[accepted]' }]);
    adyen.fake.happens(attempt.transactionId, what);
    expect(await told()).toMatchObject({ kind, providerPaymentId });
  });

  it('an unsigned PENDING event is accepted and says nothing', async () => {
    await awaiting();
    const [made = ''] = adyen.fake.notifications.splice(0);
    const unsigned = made.replace(/"additionalData":\{[^}]*\},/, '');
    expect(await read(adyen.connection, unsigned)).toMatchObject({ kind: 'ignored' });
  });

  it("a card's refusal for an expired card is no expiry", async () => {
    const item = { eventCode: 'AUTHORISATION', success: false, psp: 'NC6HT9CRT65ZGN82' };
    const { transactionId: reference } = codeAttempt('PIX');
    const about = (more: object) =>
      read(adyen.connection, notificationOf({ ...item, reference }, { value: 1_000, currency: 'BRL' }, more));
    const card = await about({ paymentMethod: 'visa', reason: 'Expired Card' });
    expect(subjectOf(card).signed?.outcome.kind).toBe('declined');
    const boleto = await about({ paymentMethod: 'boletobancario_itau', reason: 'Payment expired' });
    expect(subjectOf(boleto).signed?.outcome.kind).toBe('expired');
  });

  describe('a code whose answer is lost', () => {
    it.each(['lost_answer', 'lost_request'] as const)(
      'is created again under its key after %s',
      async (fault) => {
        const attempt = codeAttempt('PIX');
        adyen.fake.next(fault);
        expect(await awaiting(attempt)).toMatchObject({ show: { instructions: { text: PIX_CODE } } });
        const [first, second, ...others] = adyen.fake.requests;
        expect([second, others]).toEqual([first, []]);
        expect(adyen.fake.payments.size).toBe(1);
      },
    );

    it.each([
      ['lost_answer', 'lost_answer'],
      ['lost_answer', 'in_progress'],
      ['lost_answer', 'transient'],
      ['error', 'lost_answer'],
    ] as const)('is unknown after %s and then %s, and was created at most once', async (first, second) => {
      adyen.fake.next(first);
      adyen.fake.next(second);
      expect(await adyen.connection.pay(codeAttempt('BOLETO'))).toMatchObject({ kind: 'unknown' });
      expect(adyen.fake.requests).toHaveLength(2);
      expect(adyen.fake.payments.size).toBeLessThanOrEqual(1);
    });

    it('is not created again if Adyen says that it did nothing', async () => {
      adyen.fake.next('transient');
      const outcome = await adyen.connection.pay(codeAttempt('PIX'));
      expect(outcome).toMatchObject({ kind: 'not_sent', because: 'unreachable' });
      expect(adyen.fake.requests).toHaveLength(1);
    });

    it('is unknown if the whole deadline has passed', async () => {
      const slow = await openAdyen({ timeout_ms: 300 });
      slow.fake.next('silent');
      expect(await slow.connection.pay(codeAttempt('PIX'))).toMatchObject({ kind: 'unknown' });
      expect(slow.fake.payments.size).toBe(1);
      await slow.close();
    });
  });

  it('what Adyen refuses to create is not sent, and names the field', async () => {
    const outcome = await adyen.connection.pay(codeAttempt('PSE', {}, { bankId: '1051' }));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away', refused: 'bank' });
  });

  it('a paid Pix is refunded in parts, for 90 days; vouchers are not', async () => {
    const { localMethods } = adyen.connection.capabilities;
    expect(localMethods.PIX).toMatchObject({ refunds: 'several', refundableDays: 90 });
    expect(['BOLETO', 'OXXO', 'PSE'].map((type) => localMethods[type]?.refunds)).toEqual([
      ...['none', 'none', 'none'],
    ]);
    const attempt = codeAttempt('PIX');
    const { reference } = await awaiting(attempt);
    adyen.fake.happens(attempt.transactionId, 'paid');
    await adyen.delivered();
    for (const [days, kind] of [
      [0, 'approved'],
      [91, 'declined'],
    ] as const) {
      adyen.fake.later(days);
      const money = { minorUnits: 100_000n, currency: 'BRL' };
      const refund = operationOn(attempt, reference, { money, isWhole: false });
      expect(await adyen.connection.refund?.(refund)).toMatchObject({ kind: 'pending' });
      expect(await told()).toMatchObject({ kind });
    }
  });

  it('an unpaid code cannot be closed at Adyen', () => {
    const { localMethods } = adyen.connection.capabilities;
    expect(Object.values(localMethods).map(({ close }) => close)).toEqual([false, false, false, false]);
  });

  it('a method that the settings do not list is not sent', async () => {
    const outcome = await adyen.connection.pay(codeAttempt('SPEI'));
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(adyen.fake.requests).toEqual([]);
  });
});

describe('the setting methods of an Adyen connection', () => {
  it('adds to the local methods, overrides their names, and leaves the redirect methods as they are', async () => {
    const connection = connectAdyen({
      redirect_methods: { IDEAL: 'ideal', PIX: 'pix' },
      methods: {
        ...{ BOLETO: 'boletobancario_santander', BOLETO_ITAU: 'boletobancario_itau', BLIK: 'blik' },
        ...{ GOOGLE_PAY: 'paywithgoogle', APPLE: 'applepay' },
      },
    });
    const { methods, localMethods, walletTokens } = connection.capabilities;
    expect(methods).toEqual(['CARD', 'PAYER_PAGE']);
    expect(Object.keys(localMethods).sort()).toEqual(['BOLETO', 'BOLETO_ITAU', 'OXXO', 'PIX', 'PSE']);
    expect(localMethods.BOLETO_ITAU).toEqual(localMethods.BOLETO);
    expect([...walletTokens].sort()).toEqual(['APPLE', 'APPLE_PAY', 'GOOGLE_PAY']);
    await connection.close();
  });

  it.each([
    ['BOLETO', 'boletobancario_santander'],
    ['BOLETO_ITAU', 'boletobancario_itau'],
  ])('the name at Adyen for %s is sent as %s', async (type, name) => {
    const methods = { BOLETO: 'boletobancario_santander', BOLETO_ITAU: 'boletobancario_itau' };
    const adyen = await openAdyen({ methods });
    const outcome = await adyen.connection.pay({ ...codeAttempt('BOLETO'), ...methodOf(type) });
    expect(outcome.kind).toBe('awaits_payer');
    expect(adyen.fake.requests[0]?.body.paymentMethod).toEqual({ type: name });
    await adyen.close();
  });

  const methodOf = (type: string) => ({ method: codeAttempt(type).method });
});
