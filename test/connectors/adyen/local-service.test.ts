import { describe, expect, it } from 'vitest';
import { server, tables } from '../../support/on-service.ts';
import { cardPayment } from '../../support/payment-requests.ts';
import { older } from '../../support/tables.ts';
import {
  alarms,
  call,
  deliver,
  deliverAll,
  fake,
  localPayment,
  onAdyenService,
  payLocally,
  type Record,
  refusalOf,
  stateOf,
} from './adyen-service.ts';
import { BOLETO_BARCODE, BOLETO_LINE, PIX_CODE } from './fake-codes.ts';
import { notificationOf } from './fake-notifications.ts';
import { WALLET_ANSWERS } from './fake-wallets.ts';

/*
 * Local methods and a wallet's token at the fake of Adyen, through the whole service. Only Adyen's notifications end them.
 */

onAdyenService();

const EARLY = '2026-11-22T02:00:00+01:00';
const LATE = '2026-11-22T05:00:00+01:00';

async function latePayments(): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  return [...metrics.matchAll(/^late_payments_total(?:\{[^}]*\})? (\d+)/gm)].reduce(
    (sum, [, count]) => sum + Number(count),
    0,
  );
}

/** An event about a payment, with its time. */
function eventOf(payment: Record, eventCode: string, success: boolean, more: object): string {
  const { id: reference, provider_data } = payment.transactions;
  const about = { eventCode, success, psp: provider_data.transaction_id, reference };
  return notificationOf(about, { value: 1_000, currency: 'BRL' }, { paymentMethod: 'pix', ...more });
}

describe('a Pix at Adyen', () => {
  it('is shown, paid by notification, and refunded in parts', async () => {
    const payment = await payLocally('PIX');
    expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    expect(payment.payment_method.payment_method_detail.bank_transfer).toMatchObject({
      payment_instruction: PIX_CODE,
      provider_image: expect.stringMatching(/\/qr\.svg$/),
      redirect_url: expect.stringContaining(payment.id),
      expires_at: expect.any(String),
    });
    // That the code was made is no news.
    await deliverAll();
    expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    fake.happens(payment.transactions.id, 'paid');
    await deliverAll();
    expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    const refund = { merchant_reference: 'r-1', amount: { currency: 'BRL', value: 4 } };
    await call(`/${payment.id}/refund`, refund);
    await deliverAll();
    expect(await stateOf(payment)).toBe('SUCCEEDED/PARTIALLY_REFUNDED');
  });

  it('cannot be canceled while it is open', async () => {
    const payment = await payLocally('PIX');
    const refused = await refusalOf(`/${payment.id}/cancel`, { merchant_reference: 'c-1' });
    expect(refused.code).toBe('OPERATION_NOT_SUPPORTED');
    expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  });

  it.each([
    ['OFFER_CLOSED', true, {}],
    ['AUTHORISATION', false, { reason: 'Expired' }],
  ] as const)(
    'ends with %s, and late money still pays it, in whatever order the events happened',
    async (code, success, more) => {
      const payment = await payLocally('PIX');
      const before = await latePayments();
      await deliver(eventOf(payment, code, success, { ...more, eventDate: LATE }));
      expect(await stateOf(payment)).toBe('EXPIRED/EXPIRED');
      await deliver(eventOf(payment, 'AUTHORISATION', true, { eventDate: EARLY }));
      expect([await stateOf(payment), await latePayments()]).toEqual(['SUCCEEDED/APPROVED', before + 1]);
    },
  );

  it('stays paid if its offer is closed afterwards, which raises an alarm', async () => {
    const payment = await payLocally('PIX');
    const before = await alarms();
    await deliver(eventOf(payment, 'AUTHORISATION', true, { eventDate: EARLY }));
    await deliver(eventOf(payment, 'OFFER_CLOSED', true, { eventDate: LATE }));
    await expect.poll(alarms).toBe(before + 1);
    expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('is not paid by a notification about another amount', async () => {
    const payment = await payLocally('PIX');
    const before = await alarms();
    const { id: reference, provider_data } = payment.transactions;
    const about = { eventCode: 'AUTHORISATION', success: true, psp: provider_data.transaction_id, reference };
    await deliver(notificationOf(about, { value: 999, currency: 'BRL' }));
    await expect.poll(alarms).toBe(before + 1);
    expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  });

  it('is declined if its bank refuses it, and paid if the bank corrects itself', async () => {
    const payment = await payLocally('PIX');
    await deliver(eventOf(payment, 'AUTHORISATION', false, { eventDate: EARLY }));
    expect(await stateOf(payment)).toBe('DECLINED/DECLINED');
    await deliver(eventOf(payment, 'AUTHORISATION', true, { eventDate: LATE }));
    expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });
});

describe('a code at Adyen without news', () => {
  const checks = () => fake.requests.filter(({ path }) => path === '/v72/cancels').length;
  const makeOlder = async ({ transactions }: Record, interval: string) => {
    await tables.query(`UPDATE transaction SET ${older(interval)}, check_at = now() WHERE id = $1`, [
      transactions.id,
    ]);
  };

  it('is never canceled by our reference, since its payer may hold it, and ends ten days after its end', async () => {
    const [payment, before] = [await payLocally('PIX'), checks()];
    await makeOlder(payment, '9 days');
    // The pause after the check is a day; a lease is shorter than an hour.
    await expect.poll(() => dueIn(payment)).toBeGreaterThan(3_600);
    expect([await stateOf(payment), checks()]).toEqual(['READY_TO_PAY/CREATED', before]);
    await makeOlder(payment, '3 days');
    await expect.poll(() => stateOf(payment), { timeout: 20_000 }).toBe('EXPIRED/EXPIRED');
    fake.happens(payment.transactions.id, 'paid');
    await deliverAll();
    expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('is canceled by our reference if nobody has seen it, and ends ten days after its end', async () => {
    const before = checks();
    fake.next('lost_answer');
    fake.next('lost_answer');
    const payment = await payLocally('BOLETO');
    expect(await stateOf(payment)).toBe('PENDING/PENDING_PROVIDER_CONFIRMATION');
    await makeOlder(payment, '2 hours');
    await expect.poll(checks, { timeout: 20_000 }).toBe(before + 1);
    // Adyen cancels only what is authorized.
    await deliverAll();
    expect(await stateOf(payment)).toBe('PENDING/PENDING_PROVIDER_CONFIRMATION');
    await makeOlder(payment, '16 days');
    await expect.poll(() => stateOf(payment), { timeout: 20_000 }).toBe('EXPIRED/EXPIRED');
    fake.happens(payment.transactions.id, 'paid');
    await deliverAll();
    expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  /** Seconds until the next check. */
  async function dueIn({ transactions }: Record): Promise<number> {
    const [row] = await tables.query(
      'SELECT extract(epoch FROM check_at - now())::float8 AS due_in_s FROM transaction WHERE id = $1',
      [transactions.id],
    );
    return Number(row?.due_in_s);
  }
});

it('a boleto at Adyen shows its line and its bars, and cannot be refunded', async () => {
  const payment = await payLocally('BOLETO');
  expect(payment.payment_method.payment_method_detail.ticket).toMatchObject({
    ...{ provider_number: BOLETO_LINE, provider_barcode: BOLETO_BARCODE, provider_format: 'barcode' },
  });
  fake.happens(payment.transactions.id, 'paid');
  await deliverAll();
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  const refused = await refusalOf(`/${payment.id}/refund`, { merchant_reference: 'r-1' });
  expect(refused.code).toBe('OPERATION_NOT_SUPPORTED');
});

it("a request that lacks what Adyen's method needs is refused with every field, before any call", async () => {
  const before = fake.requests.length;
  const { customer_payer: _payer, ...bare } = localPayment('PSE') as Record;
  const refused = await refusalOf('', bare);
  expect(refused.code).toBe('OPERATION_NOT_SUPPORTED');
  expect(JSON.stringify(refused)).toMatch(/bank_id.*first_name.*document_number/s);
  const expires_at = '2030-01-01T00:00:00Z';
  const outside = await refusalOf('', localPayment('OXXO', { ticket: { expires_at } }));
  expect(JSON.stringify(outside)).toContain('payment_method.detail.ticket.expires_at');
  expect(fake.requests.length).toBe(before);
});

it.each([
  [true, 'SUCCEEDED/APPROVED'],
  [false, 'DECLINED/DECLINED'],
])('a payer who comes back from the bank of PSE completes the payment (paid: %s)', async (isPaid, state) => {
  const payment = await payLocally('PSE', { bank_transfer: { bank_id: '1022' } });
  expect(await stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  const { redirect_url: page } = payment.payment_method.payment_method_detail.bank_transfer;
  expect(page).toContain(fake.url);
  const query = fake.payAt(page, isPaid);
  fake.notifications.length = 0;
  await fetch(`${server.url}/v1/payments/${payment.id}/return?${query}`, { redirect: 'manual' });
  await expect.poll(() => stateOf(payment)).toBe(state);
});

it('a payer of PSE who came back without a result may have paid: only Adyen ends the payment', async () => {
  const payment = await payLocally('PSE', { bank_transfer: { bank_id: '1040' } });
  const { redirect_url: page } = payment.payment_method.payment_method_detail.bank_transfer;
  const query = fake.payAt(page, true);
  fake.next('lost_answer');
  fake.next('lost_answer');
  await fetch(`${server.url}/v1/payments/${payment.id}/return?${query}`, { redirect: 'manual' });
  await expect.poll(() => stateOf(payment)).toBe('PENDING/IN_PROCESS');
  const canceled = fake.requests.filter(({ path }) => path === '/v72/cancels').length;
  await tables.query(`UPDATE transaction SET ${older('30 days')}, check_at = now() WHERE id = $1`, [
    payment.transactions.id,
  ]);
  const isChecked = async () => {
    const [row] = await tables.query('SELECT check_at > now() AS is_later FROM transaction WHERE id = $1', [
      payment.transactions.id,
    ]);
    return row?.is_later;
  };
  await expect.poll(isChecked).toBe(true);
  expect(await stateOf(payment)).toBe('PENDING/IN_PROCESS');
  await deliverAll();
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  expect(fake.requests.filter(({ path }) => path === '/v72/cancels')).toHaveLength(canceled);
});

it('a payment with Google Pay at Adyen shows its card, and no part of its token is stored', async () => {
  const answer = WALLET_ANSWERS.GOOGLE_PAY();
  const canary = 'c2FudGlhZ29jYW5hcnl0b2tlbnRlc3Q0NDQ0';
  answer.paymentMethodData.tokenizationData.token = JSON.stringify({
    ...{ protocolVersion: 'ECv2', signature: canary, signedMessage: 'approved' },
  });
  const payment_token = JSON.stringify(answer);
  const payment = await call('', {
    ...cardPayment(),
    payment_method: { type: 'GOOGLE_PAY', detail: { wallet: { payment_token } } },
  });
  expect(await stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  expect(payment.payment_method.payment_method_detail.wallet).toMatchObject({
    ...{ capture: true, authorization_code: '033899' },
    card_data: { brand: 'VISA', lfd: '1111', type: 'DEBIT' },
  });
  expect(JSON.stringify(payment)).not.toContain(canary);
  const stored = await tables.query('SELECT payment::text AS payment FROM payment WHERE id = $1', [
    payment.id,
  ]);
  expect(JSON.stringify(stored)).not.toContain(Buffer.from(canary).toString('hex'));
});
