import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { withClockAhead } from '../../support/process-clock.ts';
import { lookUp, openedForEach } from '../under-test.ts';
import { refusal } from './answers.ts';
import { FAKE_ACCOUNT, webhookOf } from './fake-mercado-pago.ts';
import { codeAttempt, coded, LOCAL_METHODS, type LocalType, openAccount } from './mercado-pago-under-test.ts';

const DAY_MS = 86_400_000;

/** Opens an account for each test in the country of a local method. */
function accountOf(type: LocalType) {
  const { country, currency } = LOCAL_METHODS[type];
  return openedForEach(() => openAccount(country, currency));
}

describe('what the payer of a local method is shown at Mercado Pago', () => {
  describe('Pix', () => {
    const under = accountOf('PIX');
    it('a Pix payer is shown the code as text and the page of Mercado Pago, until its end', async () => {
      const { attempt, outcome, payment, id } = await coded(under, codeAttempt('PIX'));
      expect(outcome).toMatchObject({
        reference: `/${id}`,
        providerPaymentId: id,
        until: new Date(attempt.expiresAtMs),
        show: {
          instructions: {
            text: expect.stringMatching(/^000201.*6304/),
            document: `${under.fake.url}/payments/${id}/ticket`,
          },
        },
        providerData: { status: 'pending', statusDetail: 'pending_waiting_transfer' },
      });
      // No image: Mercado Pago sends one that is no URL.
      expect(Object.keys((outcome.show as { instructions: object }).instructions)).not.toContain('image');
      expect(payment).toMatchObject({ transaction_amount: 30_000, collector_id: FAKE_ACCOUNT });
    });

    it("a Pix payment's record has no image and no data of the payer's bank", async () => {
      const { outcome } = await coded(under, codeAttempt('PIX'));
      const raw = JSON.stringify(outcome.providerData.rawResponse);
      expect(raw).toContain('qr_code');
      expect(raw).not.toMatch(/qr_code_base64|bank_info|4711|ana@example|12345678909/);
    });
  });

  describe('boleto', () => {
    const under = accountOf('BOLETO');
    it('a boleto has a line for the payer, bars and a document', async () => {
      const { outcome, id } = await coded(under, codeAttempt('BOLETO'));
      expect(outcome.show).toEqual({
        instructions: {
          number: expect.stringMatching(/^\d{47}$/),
          barcode: expect.stringMatching(/^\d{44}$/),
          document: `${under.fake.url}/payments/${id}/ticket`,
        },
      });
    });
  });

  describe('OXXO', () => {
    const under = accountOf('OXXO');
    it('a cash voucher shows every number that Mercado Pago reports', async () => {
      const { outcome, id } = await coded(under, codeAttempt('OXXO'));
      expect(outcome.show).toEqual({
        instructions: {
          number: id,
          barcode: `1357${id}`,
          reference: `9${id}`,
          document: `${under.fake.url}/payments/${id}/ticket`,
        },
      });
    });

    it.each([
      ['only a document', { external_resource_url: 'https://mercadopago.test/1' }, 'awaits_payer'],
      ['nothing', { external_resource_url: 'javascript:alert(1)' }, 'unknown'],
    ])('the outcome of a voucher with %s', async (_what, transaction_details, kind) => {
      const { attempt, payment, reference } = await coded(under, codeAttempt('OXXO'));
      Object.assign(payment, { transaction_details, date_of_expiration: null });
      const outcome = await lookUp(under, attempt, reference);
      expect(outcome).toMatchObject({ kind, reference });
      expect(outcome).not.toHaveProperty('until');
    });
  });

  describe('PSE and Efecty', () => {
    const under = accountOf('PSE');
    it('a PSE payer is redirected to their bank, and back to us', async () => {
      const { attempt, outcome, payment, id } = await coded(under, codeAttempt('PSE'));
      expect(outcome.show).toEqual({ page: `${under.fake.url}/pse/${id}` });
      expect(payment).toMatchObject({
        callback_url: attempt.returnUrl,
        transaction_details: { financial_institution: '1007' },
      });
    });

    it('Efecty shows a reference', async () => {
      const { outcome, id } = await coded(under, codeAttempt('EFECTY'));
      expect(outcome.show).toMatchObject({ instructions: { number: id } });
    });

    it('the banks of PSE have their ACH Colombia codes', async () => {
      expect(await under.connection.listBanks?.('PSE')).toEqual([
        { id: '1007', name: 'BANCOLOMBIA' },
        { id: '1051', name: 'BANCO DAVIVIENDA' },
        { id: '1507', name: 'NEQUI' },
      ]);
      under.fake.answerOnce(/payment_methods$/, 200, [
        {
          id: 'pse',
          financial_institutions: [{ id: 1007, description: 'A' }, { id: 1 }, { description: 'B' }],
        },
      ]);
      expect(await under.connection.listBanks?.('PSE')).toEqual([{ id: '1007', name: 'A' }]);
    });

    it.each<[string, number, unknown]>([
      ['the provider is away', 503, {}],
      ['the answer is no list', 200, { id: 'pse' }],
      ['the account has no PSE', 200, []],
    ])('the banks of PSE cannot be listed if %s', async (_what, status, body) => {
      under.fake.answerOnce(/payment_methods$/, status, body);
      await expect(under.connection.listBanks?.('PSE')).rejects.toThrow(/the banks cannot be|does not have/);
    });

    it('a bank that Mercado Pago does not know, or an amount with cents, is refused, and nothing happened', async () => {
      const attempt = codeAttempt('PSE');
      const method = { ...attempt.method, bankId: '9999' } as typeof attempt.method;
      expect(await under.connection.pay({ ...attempt, method })).toMatchObject({
        kind: 'not_sent',
        because: 'turned_away',
        refused: 'financial_institution',
      });
      const money = { minorUnits: 100_050n, currency: 'COP' };
      expect(await under.connection.pay(codeAttempt('PSE', { money }))).toMatchObject({ kind: 'not_sent' });
      expect(under.fake.requests).toHaveLength(1);
    });

    it('a transfer that the bank refuses is declined', async () => {
      const { attempt, payment, reference } = await coded(under, codeAttempt('PSE'));
      under.fake.move(payment, 'rejected', 'bank_error');
      expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'declined', iso8583Code: '06' });
    });
  });
});

const ALL = Object.keys(LOCAL_METHODS) as LocalType[];

describe.each(ALL)('the life of %s at Mercado Pago', (type) => {
  const under = accountOf(type);

  it('it is open, in process, paid and refunded as Mercado Pago says', async () => {
    const { attempt, outcome, payment, reference, id } = await coded(under, codeAttempt(type));
    const at = () => lookUp(under, attempt, reference);
    expect(await at()).toEqual(outcome);
    under.fake.move(payment, 'in_process', 'pending_contingency');
    expect(await at()).toMatchObject({ kind: 'pending', reference });
    under.fake.move(payment, 'approved', 'accredited');
    expect(await at()).toMatchObject({ kind: 'approved', reference, providerPaymentId: id });
    expect(await at()).not.toHaveProperty('isAnyTry');
    Object.assign(payment, { status: 'refunded', transaction_amount_refunded: 30_000 });
    const refund = { id: 9, payment_id: Number(id), amount: 30_000, status: 'approved' };
    under.fake.refunds.set(id, [refund]);
    expect(await at()).toMatchObject({
      kind: 'approved',
      totals: { captured: 3_000_000n, refunded: 3_000_000n, movements: [{ providerPaymentId: '9' }] },
    });
  });

  it('it expires when Mercado Pago says so, and not by the clock; late money is approved', async () => {
    const { attempt, payment, reference } = await coded(under, codeAttempt(type));
    const at = () => lookUp(under, attempt, reference, { payerTimeLeftMs: -40 * DAY_MS });
    expect(await at()).toMatchObject({ kind: 'awaits_payer' });
    under.fake.move(payment, 'cancelled', 'expired');
    expect(await at()).toMatchObject({ kind: 'expired', reference, providerData: { status: 'cancelled' } });
    under.fake.move(payment, 'approved', 'accredited');
    expect(await at()).toMatchObject({ kind: 'approved', corrects: ['rejected', 'cancelled'] });
  });

  it.skipIf(LOCAL_METHODS[type].closes)('a close changes nothing, since its payer may hold it', async () => {
    const { attempt, outcome, payment, reference } = await coded(under, codeAttempt(type));
    expect(await lookUp(under, attempt, reference, { close: true })).toEqual(outcome);
    expect(payment.status).toBe('pending');
  });

  it.runIf(LOCAL_METHODS[type].closes)('a close cancels it while nobody has paid', async () => {
    const open = await coded(under, codeAttempt(type));
    const close = (one: typeof open) => lookUp(under, one.attempt, one.reference, { close: true });
    expect(await close(open)).toMatchObject({
      kind: 'expired',
      providerData: { statusDetail: 'by_collector' },
    });
    expect(open.payment.status).toBe('cancelled');

    const paid = await coded(under, codeAttempt(type));
    under.fake.move(paid.payment, 'approved', 'accredited');
    expect(await close(paid)).toMatchObject({ kind: 'approved' });

    const meanwhile = await coded(under, codeAttempt(type));
    const before = { ...meanwhile.payment };
    under.fake.move(meanwhile.payment, 'approved', 'accredited');
    // The payer pays between the look-up and the cancel, which is therefore refused.
    under.fake.answerOnce(/^GET .v1.payments.\d+$/, 200, before);
    expect(await close(meanwhile)).toMatchObject({ kind: 'approved' });

    const confirming = await coded(under, codeAttempt(type));
    under.fake.move(confirming.payment, 'in_process', 'pending_contingency');
    expect(await close(confirming)).toMatchObject({ kind: 'pending' });
    expect(confirming.payment.status).toBe('in_process');
  });

  it('its notification names the payment, which is read by its id although the search lags', async () => {
    const { attempt, payment, reference, id } = await coded(under, codeAttempt(type));
    under.fake.lagSearch(true);
    under.fake.move(payment, 'approved', 'accredited');
    const reading = await under.connection.readNotification?.(webhookOf(id), Date.now());
    expect(reading).toMatchObject({
      kind: 'about',
      subjects: [{ transactionId: attempt.transactionId, providerPaymentId: id }],
    });
    const hint = { providerPaymentId: id };
    for (const known of [reference, undefined]) {
      expect(await lookUp(under, attempt, known, { hint })).toMatchObject({
        kind: 'approved',
        totals: { captured: 3_000_000n, refunded: 0n },
      });
    }
    expect(under.fake.requests.some(({ path }) => path.endsWith('/search'))).toBe(false);
  });
});

describe('the creation of a payment by a local method', () => {
  const under = accountOf('PIX');
  const create_ = /^POST .v1.payments$/;

  it.each(['before', 'after'] as const)(
    'a creation that is lost %s Mercado Pago acts is repeated once, with the same key and bytes',
    async (when) => {
      under.fake.lose(create_, when);
      const { attempt } = await coded(under, codeAttempt('PIX'));
      const { requests, payments } = under.fake;
      expect(requests).toHaveLength(2);
      const [first, second] = requests;
      expect(second).toEqual(first);
      expect(first).toMatchObject({ key: attempt.transactionId });
      expect(payments.size).toBe(1);
    },
  );

  it('a creation that is answered with a 5xx is repeated once', async () => {
    under.fake.answerOnce(create_, 502, {});
    await coded(under, codeAttempt('PIX'));
    expect(under.fake.requests).toHaveLength(2);
  });

  it('a creation that is lost twice is unknown, until a search finds it; absence proves nothing', async () => {
    const attempt = codeAttempt('PIX');
    under.fake.lose(create_, 'after');
    under.fake.lose(create_, 'after');
    expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'unknown' });
    expect(under.fake.requests).toHaveLength(2);
    under.fake.lagSearch(true);
    for (const close of [false, true]) {
      expect(await lookUp(under, attempt, undefined, { close })).toMatchObject({ kind: 'unknown' });
    }
    under.fake.lagSearch(false);
    const id = String([...under.fake.payments.values()][0]?.id);
    expect(await lookUp(under, attempt, undefined)).toMatchObject({
      kind: 'awaits_payer',
      reference: `/${id}`,
      show: { instructions: { text: expect.any(String) } },
    });
  });

  it('a creation that used up its time is not repeated', async () => {
    under.fake.lose(create_, 'silent');
    expect(await under.impatient.pay(codeAttempt('PIX'))).toMatchObject({ kind: 'unknown' });
    expect(under.fake.requests).toHaveLength(1);
  });

  it('what nobody has seen and no search finds has expired days after its end', async () => {
    const at = (days: number) =>
      lookUp(under, codeAttempt('PIX'), undefined, { payerTimeLeftMs: -days * DAY_MS });
    expect(await at(2)).toMatchObject({ kind: 'unknown' });
    expect(await at(4)).toMatchObject({ kind: 'expired' });
  });

  it('a repeat that creates a second payment is told by an alarm once both are paid, and a close cancels both', async () => {
    const attempt = codeAttempt('PIX');
    under.fake.ignoreKeys();
    under.fake.lose(create_, 'after');
    await coded(under, attempt);
    const both = [...under.fake.payments.values()];
    expect(both).toHaveLength(2);
    expect(await lookUp(under, attempt, undefined, { close: true })).toMatchObject({ kind: 'expired' });
    expect(both.map(({ status }) => status)).toEqual(['cancelled', 'cancelled']);
    for (const payment of both) under.fake.move(payment, 'approved', 'accredited');
    expect(await lookUp(under, attempt, undefined)).toMatchObject({ kind: 'approved', alarm: true });
    const [shown, unseen] = both.map(({ id }) => String(id)).toReversed();
    const told = { hint: { providerPaymentId: unseen as string } };
    expect(await lookUp(under, attempt, `/${shown}`, told)).toMatchObject({
      kind: 'approved',
      reference: `/${shown}`,
      providerData: {
        responseMessage: `alarm: charged twice: the first payment is ${shown}; refund ${unseen}`,
      },
    });
  });

  it("the provider keeps a key for ten minutes, and knows another body's", async () => {
    const { attempt } = await coded(under, codeAttempt('PIX'));
    await under.connection.pay(attempt);
    expect(under.fake.payments.size).toBe(1);
    const other = { ...attempt, expiresAtMs: attempt.expiresAtMs + 1_000 };
    expect(await under.connection.pay(other)).toMatchObject({ kind: 'unknown' });
    await withClockAhead(10 * 60_000, () => under.connection.pay(attempt));
    expect(under.fake.payments.size).toBe(2);
  });

  it.each([
    [400, 'not_sent', 'turned_away'],
    [401, 'not_sent', 'unreachable'],
    [403, 'not_sent', 'unreachable'],
    [404, 'not_sent', 'turned_away'],
    [422, 'not_sent', 'turned_away'],
    ...[409, 423, 424, 429].map((status) => [status, 'unknown', undefined] as const),
  ] as const)('a refusal with %i makes the outcome %s', async (status, kind, because) => {
    under.fake.answerOnce(create_, status, refusal(status));
    expect(await under.connection.pay(codeAttempt('PIX'))).toMatchObject({
      kind,
      ...(because && { because }),
    });
    expect(under.fake.requests).toHaveLength(1);
  });

  it('the refusal of a malformed end is named', async () => {
    const past = codeAttempt('PIX', { expiresAtMs: Date.now() });
    expect(await under.connection.pay(past)).toMatchObject({
      kind: 'not_sent',
      refused: 'date_of_expiration',
    });
  });

  it.each([
    ['another amount', { transaction_amount: 29_999 }],
    ['another currency', { currency_id: 'ARS' }],
    ['another reference', { external_reference: 'theirs' }],
    ['another account', { collector_id: 1 }],
    ['no id', { id: null }],
  ])('a payment with %s raises an alarm, and is not cancelled', async (_what, change) => {
    const { attempt, payment, reference } = await coded(under, codeAttempt('PIX'));
    Object.assign(payment, change);
    expect(await lookUp(under, attempt, reference)).toMatchObject({ kind: 'unknown', alarm: true });
  });

  it.each([
    ['refused for its state, and it is still open', 400, 'awaits_payer'],
    ['refused for the key', 401, 'unknown'],
    ['refused for the rate', 429, 'unknown'],
    ['answered with a 5xx', 500, 'unknown'],
  ])('a cancel that is %s has this outcome', async (_what, status, kind) => {
    const { attempt, reference } = await coded(under, codeAttempt('PIX'));
    under.fake.answerOnce(/^PUT/, status, refusal(status));
    expect(await lookUp(under, attempt, reference, { close: true })).toMatchObject({ kind });
  });

  it('a method of another country, another currency or nobody knows is turned away', async () => {
    const money = { minorUnits: 1_000n, currency: 'MXN' };
    for (const attempt of [
      codeAttempt('OXXO', { money: codeAttempt('PIX').money }),
      codeAttempt('PIX', { money }),
    ])
      expect(await under.connection.pay(attempt)).toMatchObject({ kind: 'not_sent', because: 'turned_away' });
    expect(under.fake.requests).toEqual([]);
  });

  it('a document from elsewhere is not sent with a Pix payment', async () => {
    const customerPayer = create(CustomerPayerSchema, {
      email: 'ana@example.com',
      document: { documentType: 'PASSPORT', documentNumber: 'X1' },
    });
    const { payment } = await coded(under, codeAttempt('PIX', { customerPayer }));
    expect(payment.payer).toEqual({ email: 'ana@example.com' });
  });
});
