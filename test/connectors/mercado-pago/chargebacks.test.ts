import type { JsonObject } from '@bufbuild/protobuf';
import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { NotificationReading } from '#src/connectors/port/connector.ts';
import { chargebackWebhookOf, webhookOf } from './fake-mercado-pago.ts';
import { type MercadoPagoUnderTest, MONEY, openMercadoPago, sentAway } from './mercado-pago-under-test.ts';

let under: MercadoPagoUnderTest;
beforeEach(async () => {
  under = await openMercadoPago();
});
afterEach(() => under.close());

const read = (notification: ReturnType<typeof webhookOf>) =>
  under.connection.readNotification?.(notification, Date.now());
const subjectsOf = (reading: NotificationReading | undefined) =>
  reading?.kind === 'about' ? reading.subjects : [];

/** A payment whose money its payer's bank takes back, and the reading of the webhook about it. */
async function chargedBack(over: JsonObject = {}, detail = 'in_process') {
  const { attempt } = await sentAway(under);
  const payment = under.fake.pay(under.fake.preference());
  const id = under.fake.chargeBack(payment, over);
  under.fake.move(payment, 'charged_back', detail);
  const [subject] = subjectsOf(await read(chargebackWebhookOf(id)));
  return { attempt, payment, id, subject };
}

/** The chargeback in the form of the provider's own library. */
const ofLibrary = (over: JsonObject) => ({
  ...{ payments: null, currency: null, currency_id: 'ARS', documentation_required: null },
  ...{ documentation_status: null, date_documentation_deadline: null, date_last_updated: null },
  last_modified: '2026-11-29T10:00:00.000-04:00',
  ...over,
});

describe('a webhook from Mercado Pago about a chargeback', () => {
  it('the chargeback is read, and its payment, whose dispute has a due date, a reason and an amount', async () => {
    const { attempt, payment, subject } = await chargedBack();
    expect(subject).toEqual({
      transactionId: attempt.transactionId,
      providerPaymentId: String(payment.id),
      dispute: {
        ...{ stage: 'opened', reference: `chargeback/${payment.id}`, moves: undefined, money: MONEY },
        case: {
          ...{ status: 'NEEDS_RESPONSE', reason: 'FRAUDULENT', rawReason: 'fraud', networkCode: undefined },
          ...{ respondBy: new Date('2026-12-08T13:50:37Z'), at: new Date('2026-11-28T20:20:54Z') },
        },
      },
    });
    // The webhook about the payment reports the same dispute, and says nothing about its case.
    const [other] = subjectsOf(await read(webhookOf(String(payment.id))));
    expect(other?.dispute).toMatchObject({ stage: 'opened', reference: subject?.dispute?.reference });
    expect(other?.dispute?.case).toBeUndefined();
  });

  it.each<[JsonObject, string]>([
    [{ documentation_status: 'not_supplied' }, 'NEEDS_RESPONSE'],
    [{ documentation_status: 'invalid' }, 'NEEDS_RESPONSE'],
    [{ documentation_status: 'review_pending' }, 'UNDER_REVIEW'],
    [{ documentation_status: 'valid' }, 'UNDER_REVIEW'],
    [{ documentation_required: false }, 'UNDER_REVIEW'],
    [{ documentation_status: 'to_come', coverage_applied: true }, 'NEEDS_RESPONSE'],
    [ofLibrary({ status: 'new' }), 'NEEDS_RESPONSE'],
    [ofLibrary({ status: 'in_review' }), 'UNDER_REVIEW'],
    // Only the payment says who has the money.
    [ofLibrary({ status: 'won' }), 'NEEDS_RESPONSE'],
  ])('a chargeback in process with %j is %s', async (over, status) => {
    const { payment, id } = await chargedBack(over);
    const body = under.fake.chargebacks.get(id);
    under.fake.chargebacks.set(id, {
      ...body,
      ...(body?.payments === null && { payment_id: payment.id ?? 0 }),
    });
    const [subject] = subjectsOf(await read(chargebackWebhookOf(id)));
    expect(subject?.dispute).toMatchObject({ stage: 'opened', money: MONEY, case: { status } });
  });

  it.each([
    ['settled', 'lost', 'LOST', 1],
    ['reimbursed', 'won', 'WON', 2],
  ])("a chargeback has ended as its payment's detail %s says: %s", async (detail, stage, status, moves) => {
    const { subject } = await chargedBack({ documentation_status: 'review_pending' }, detail);
    expect(subject?.dispute).toMatchObject({ stage, moves, case: { status, rawReason: 'fraud' } });
  });

  it('a chargeback whose payment does not show it yet only brings a look-up forward', async () => {
    const { attempt, payment, id } = await chargedBack();
    under.fake.move(payment, 'approved', 'accredited');
    expect(subjectsOf(await read(chargebackWebhookOf(id)))).toEqual([
      { transactionId: attempt.transactionId, providerPaymentId: String(payment.id) },
    ]);
  });

  it("a chargeback of several payments concerns ours among them, without the payments' amounts", async () => {
    const { attempt, payment, id } = await chargedBack();
    const theirs = under.fake.pay(under.fake.preference(), 'charged_back', 'in_process', {
      external_reference: 'order 5',
    });
    const payments = [payment.id ?? 0, theirs.id ?? 0, 404];
    under.fake.chargebacks.set(id, { ...under.fake.chargebacks.get(id), payments });
    const subjects = subjectsOf(await read(chargebackWebhookOf(id)));
    expect(subjects.map(({ transactionId }) => transactionId)).toEqual([attempt.transactionId]);
    expect(subjects[0]?.dispute?.money).toBeUndefined();
  });

  it("another account's chargeback, or one without a payment of ours, is ignored", async () => {
    expect(await read(chargebackWebhookOf('404404'))).toEqual({ kind: 'ignored' });
    const { id } = await chargedBack();
    under.fake.chargebacks.set(id, { id });
    expect(await read(chargebackWebhookOf(id))).toEqual({ kind: 'ignored' });
  });

  it.each([/chargebacks/, /payments/])(
    'a webhook about a chargeback is sent again while %s cannot be read',
    async (path) => {
      const { id } = await chargedBack();
      under.fake.answerOnce(path, 403, { message: 'forbidden', status: 403 });
      expect(await read(chargebackWebhookOf(id))).toMatchObject({ kind: 'send_again' });
      under.fake.lose(path, 'before');
      expect(await read(chargebackWebhookOf(id))).toMatchObject({ kind: 'send_again' });
      expect(await read(chargebackWebhookOf(id))).toMatchObject({ kind: 'about' });
    },
  );

  it('a chargeback is not looked up for a forged webhook or an id that could be a path', async () => {
    const before = under.fake.requests.length;
    const forged = webhookOf('123', {
      secret: 'another secret',
      query: 'data.id=123&type=topic_chargebacks_wh',
    });
    expect(await read(forged)).toMatchObject({ kind: 'forged' });
    const query = 'data.id=..%2Fpayments&type=topic_chargebacks_wh';
    expect(await read(webhookOf('../payments', { query }))).toEqual({ kind: 'ignored' });
    expect(under.fake.requests).toHaveLength(before);
  });
});
