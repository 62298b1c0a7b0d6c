import { describe, expect, it, vi } from 'vitest';
import {
  alarmsOf,
  becomes,
  CANCELED,
  call,
  described,
  EXPIRED,
  OPEN,
  onLocalPayments,
  PAID,
  pay,
  press,
  read,
  request,
  statesOf,
} from './support/local-payments.ts';

/* Transfers at the sandbox that come late, or of another amount, which take seconds. */

onLocalPayments();

const WITHIN = { timeout: 15_000, interval: 50 };

describe.concurrent('money that is late, too little or too much', () => {
  it.each([
    ['expired', 'paid_late:1000', false],
    ['canceled', 'paid_late:3000', true],
  ])(
    'a payment that is paid after it was %s succeeds, with an alarm',
    { timeout: 30_000 },
    async (_end, order, isCanceled) => {
      const payment = await pay(described('pix', order));
      if (isCanceled) expect(statesOf(await call('cancel', payment))).toBe(CANCELED);
      else await becomes(payment, EXPIRED);
      await vi.waitFor(async () => expect((await read(payment)).sub_status).toBe('APPROVED'), WITHIN);
      expect((await read(payment)).status).toBe('SUCCEEDED');
      await vi.waitFor(() => expect(alarmsOf(payment)).toContain('late_payment'));
    },
  );

  it('a transfer of too little stays open, and may be completed', async () => {
    const payment = await pay(request('spei'));
    await press(payment, 'pay-half');
    const received = async () => (await read(payment)).transactions.provider_data.amount_received;
    await vi.waitFor(async () => expect(await received()).toBe('2150.25'), WITHIN);
    expect(statesOf(await read(payment))).toBe(OPEN);
    expect(await call('cancel', payment)).toMatchObject({ code: 'INVALID_STATUS' });
    await press(payment, 'pay');
    await becomes(payment, PAID);
    expect(alarmsOf(payment)).toEqual([]);
  });

  it('a transfer of too little that expires is an alarm', { timeout: 30_000 }, async () => {
    const payment = await pay(described('spei', 'underpaid,expire_after:5000'));
    await becomes(payment, EXPIRED);
    await vi.waitFor(() => expect(alarmsOf(payment)).toEqual(['underpaid']));
    expect((await read(payment)).transactions.provider_data.amount_received).toBe('2150.25');
  });

  it('a transfer of too much succeeds for the amount, with an alarm', { timeout: 30_000 }, async () => {
    const payment = await pay(described('spei', 'overpaid'));
    const paid = await becomes(payment, PAID);
    expect(paid.amount).toMatchObject({ value: 4300.5 });
    expect(paid.transactions.provider_data.amount_received).toBe('6450.75');
    await vi.waitFor(() => expect(alarmsOf(payment)).toEqual(['overpaid']));
    // What the provider received does not stand in the way of a refund.
    expect((await call('refund', payment)).sub_status).toBe('REFUNDED');
  });

  it('a payment that the provider has yet to confirm is in process', { timeout: 30_000 }, async () => {
    const payment = await pay(described('oxxo', 'confirm_after:4000'));
    await becomes(payment, 'PENDING/IN_PROCESS, PURCHASE PENDING PENDING_PROVIDER_CONFIRMATION');
    await becomes(payment, PAID);
  });
});
