import { randomUUID } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { beforeAll, beforeEach, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type Payment, Payment_Status, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { CapturePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { applySigned } from '#src/payments/check/apply-signed.ts';
import { followUpNow } from '#src/payments/check/follow-up.ts';
import { recoverDue } from '#src/payments/check/recover-payments.ts';
import { capturePayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { countOpenFollowUps } from '#src/store/engine/follow-ups.ts';
import { insertAccount } from '#src/store/tables/accounts.ts';
import { insertCustomer } from '#src/store/tables/stored-objects.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const NO_CODES = { authorizationCode: '', retrievalReferenceNumber: '' };

onOperatedPayments({ empties: 'payment, transaction, vaulted_token' });
beforeEach(() => payments.setAhead(0));

async function followUpAt(aheadMs: number): Promise<void> {
  payments.setAhead(aheadMs);
  await payments.makeDue();
  await recoverDue(payments.deps);
}

const versionOf = async ({ id }: Payment) =>
  (await payments.tables.query('SELECT version FROM payment WHERE id = $1', [id]))[0]?.version;

describe('a redirect', () => {
  it('that nobody follows stays open until its term is over, is closed at the provider and EXPIRED', async () => {
    const payment = await payments.pay({ wallet: true });
    const before = await versionOf(payment);
    await followUpAt(10 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    expect(await versionOf(payment)).toBe(before);
    await followUpAt(DAY_MS + 2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
    const [row] = await payments.tables.query('SELECT status, follow_up_at FROM transaction');
    expect(row).toEqual({ status: 'EXPIRED', follow_up_at: null });
  });

  it('whose payer pays is SUCCEEDED by its next follow-up', async () => {
    const payment = await payments.pay({ wallet: true });
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await followUpAt(2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('whose payer agreed is not ended by a completion that did not reach the provider', async () => {
    const payment = await payments.pay({ wallet: true });
    const agreed = { kind: 'to_complete', providerData: create(ProviderDataSchema) } as const;
    const connection: ProviderConnection = {
      ...payments.provider.connection,
      lookUp: async () => agreed,
      complete: async () => ({ kind: 'not_sent', because: 'unreachable', detail: 'refused' }),
    };
    expect(await followUpNow(payments.deps, connection, payment.transactions?.id ?? '')).toBe('unchanged');
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  });

  it('that is paid after it expired is not lost: it is SUCCEEDED once the provider tells', async () => {
    const payment = await payments.pay({ wallet: true });
    await followUpAt(DAY_MS + 2 * MINUTE_MS);
    payments.provider.payerPays(payment.transactions?.id ?? '');
    const told = await followUpNow(
      payments.deps,
      payments.provider.connection,
      payment.transactions?.id ?? '',
    );
    expect(told).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    // Told twice, it changes nothing.
    const version = await versionOf(payment);
    expect(
      await followUpNow(payments.deps, payments.provider.connection, payment.transactions?.id ?? ''),
    ).toBe('unchanged');
    expect(await versionOf(payment)).toBe(version);
  });
});

describe('a challenge of a card that is paid directly', () => {
  const comesBack = (payment: Payment) => {
    const pending = { kind: 'pending', providerData: create(ProviderDataSchema) } as const;
    const connection: ProviderConnection = { ...payments.provider.connection, lookUp: async () => pending };
    return followUpNow(payments.deps, connection, payment.transactions?.id ?? '');
  };

  it('is IN_PROCESS once the payer has come back and the provider has yet to confirm', async () => {
    payments.provider.next.push('sends the payer away');
    const payment = await payments.pay();
    expect(await payments.stateOf(payment)).toBe('PENDING/WAITING_ADDITIONAL_STEP');
    expect(await comesBack(payment)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
    const version = await versionOf(payment);
    expect(await comesBack(payment)).toBe('unchanged');
    expect(await versionOf(payment)).toBe(version);
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await followUpAt(2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });
});

describe('a challenge whose card is to be kept', () => {
  beforeAll(() => insertAccount(payments.database, { id: ACCOUNT_ONE, name: 'one', secretAlways: false }));

  const tokens = () => payments.tables.query('SELECT id FROM vaulted_token');
  async function paidAfter(aheadMs: number, customerId?: string): Promise<Payment> {
    payments.provider.next.push('sends the payer away');
    const payment = await payments.pay({ keepsCard: true, ...(customerId && { customerId }) });
    await followUpAt(aheadMs);
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await followUpNow(payments.deps, payments.provider.connection, payment.transactions?.id ?? '');
    return getPayment(payments.deps, payment.id, payments.caller());
  }

  it('names the card that is kept once its payer has passed it', async () => {
    const { paymentMethod } = await paidAfter(2 * MINUTE_MS);
    expect(await tokens()).toEqual([{ id: paymentMethod?.vaultedToken }]);
  });

  it('names no card if it is paid after it expired: the one that waited is gone', async () => {
    const { status, paymentMethod, transactions } = await paidAfter(DAY_MS + 2 * MINUTE_MS);
    expect([status, await tokens()]).toEqual([Payment_Status.SUCCEEDED, []]);
    expect([paymentMethod?.vaultedToken, transactions?.paymentMethod?.vaultedToken]).toEqual(['', '']);
  });

  it('names the card if it is paid after it expired, but the customer had stored the same card before', async () => {
    const customerId = randomUUID();
    const payer = toBinary(CustomerPayerSchema, create(CustomerPayerSchema, { id: customerId }));
    await insertCustomer(payments.database, { id: customerId, accountId: ACCOUNT_ONE, payer });
    const { paymentMethod: stored } = await payments.pay({ keepsCard: true, customerId });
    const { status, paymentMethod } = await paidAfter(DAY_MS + 2 * MINUTE_MS, customerId);
    expect(await tokens()).toEqual([{ id: stored?.vaultedToken }]);
    expect([status, paymentMethod?.vaultedToken]).toEqual([Payment_Status.SUCCEEDED, stored?.vaultedToken]);
  });
});

describe('a card payment that its provider has yet to decide', () => {
  it('is asked about by one look-up at a time, and does not count as waiting for its payer', async () => {
    payments.provider.next.push('delays it');
    const payment = await payments.pay();
    await payments.makeDue();
    expect(await recoverDue(payments.deps)).toBe(1);
    expect(await countOpenFollowUps(payments.database, ['PURCHASE'], 10)).toEqual([]);
    payments.provider.settleDelayed();
    await payments.makeDue();
    await recoverDue(payments.deps);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });
});

describe('an authorization', () => {
  it('that is not captured within its term is EXPIRED, and cannot be captured any more', async () => {
    const payment = await payments.pay({ capture: false });
    await followUpAt(6 * DAY_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await followUpAt(7 * DAY_MS + MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
    const request = create(CapturePaymentRequestSchema, { paymentId: payment.id });
    await expect(capturePayment(payments.deps, request, payments.caller())).rejects.toMatchObject({
      reason: 'INVALID_STATUS',
    });
  });

  it('that lapsed stays EXPIRED when its approval is told again', async () => {
    const payment = await payments.pay({ capture: false });
    await followUpAt(7 * DAY_MS + MINUTE_MS);
    const { connection } = payments.provider;
    expect(await followUpNow(payments.deps, connection, payment.transactions?.id ?? '')).toBe('unchanged');
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });

  it('that was approved after a challenge lapses like any other', async () => {
    payments.provider.next.push('sends the payer away');
    const payment = await payments.pay({ capture: false });
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await followUpAt(2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await followUpAt(6 * DAY_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await followUpAt(7 * DAY_MS + MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });

  it('that was captured is left alone when its term is over', async () => {
    const payment = await payments.pay({ capture: false });
    const request = create(CapturePaymentRequestSchema, { paymentId: payment.id });
    await capturePayment(payments.deps, request, payments.caller());
    const version = await versionOf(payment);
    await followUpAt(8 * DAY_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/CAPTURED');
    expect(await versionOf(payment)).toBe(version);
    expect(await payments.tables.query('SELECT 1 FROM transaction WHERE follow_up_at IS NOT NULL')).toEqual(
      [],
    );
  });
});

describe('what a provider without look-up has signed', () => {
  const providerData = create(ProviderDataSchema);
  const APPROVED = { kind: 'approved', providerData, ...NO_CODES } as const;
  let told: unknown[];
  beforeEach(() => {
    told = [];
  });
  const apply = (id: string, over: { minorUnits?: bigint; currency?: string; outcome?: Outcome } = {}) => {
    const deps = { ...payments.deps, recovery: { followedUp: noted } };
    const connection = { ...payments.provider.connection, lookUp: undefined };
    const signed = { minorUnits: 10_000n, currency: 'USD', outcome: APPROVED, ...over };
    return applySigned(deps, connection, id, signed as Parameters<typeof applySigned>[3]);
  };
  const noted = ({ transactionId }: { transactionId: string }, result: unknown) =>
    told.push([transactionId, result]);

  it.each([
    ['a transaction', true],
    ['an attempt whose outcome is unknown', false],
  ])('is written for %s if its money is the same, and is an alarm otherwise', async (_what, wallet) => {
    if (!wallet) payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay({ wallet });
    const before = await payments.stateOf(payment);
    const id = payment.transactions?.id ?? '';
    expect(await apply(id, { minorUnits: 10_001n })).toBe('unchanged');
    expect(await apply(id, { currency: 'EUR' })).toBe('unchanged');
    expect(told).toEqual([
      [id, 'mismatch'],
      [id, 'mismatch'],
    ]);
    expect(await payments.stateOf(payment)).toBe(before);
    expect(await apply(id)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    expect(await apply(id)).toBe('unchanged');
  });

  it('may be that the provider has yet to decide: that is written, and more is to come', async () => {
    const payment = await payments.pay({ wallet: true });
    const id = payment.transactions?.id ?? '';
    expect(await apply(id, { outcome: { kind: 'pending', providerData } })).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
    expect(await apply(id)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('is kept for later when its transaction is not there yet', async () => {
    expect(await apply(randomUUID())).toBe('waiting');
    const { deps, provider } = payments;
    expect(await followUpNow(deps, provider.connection, randomUUID())).toBe('waiting');
  });
});
