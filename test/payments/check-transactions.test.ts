import { randomUUID } from 'node:crypto';
import { create, toBinary } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { type Payment, Payment_Status, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { CapturePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection, SignedOutcome } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { capturePayment } from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { countOpenLater } from '#src/store/engine/checks.ts';
import { insertCustomer } from '#src/store/tables/stored-objects.ts';
import { notified, signed } from '../support/news.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const NO_CODES = { authorizationCode: '', retrievalReferenceNumber: '' };

onOperatedPayments({ empties: 'payment, transaction, vaulted_token, notification' });

async function checkAt(aheadMs: number): Promise<void> {
  payments.setAhead(aheadMs);
  await payments.makeDue();
  await checkDue(payments.deps);
}

/** Delivers a notification about a payment. */
const news = ({ transactions }: Payment, connection: ProviderConnection = payments.provider.connection) =>
  notified({ ...payments.deps, connections: () => new Map([['ledger', connection]]) }, 'ledger', {
    transactionId: transactions?.id,
  });

const versionOf = async ({ id }: Payment) =>
  (await payments.tables.query('SELECT version FROM payment WHERE id = $1', [id]))[0]?.version;

describe('a redirect', () => {
  it('a redirect that nobody follows is closed at the provider at the end of its term and is EXPIRED', async () => {
    const payment = await payments.pay({ wallet: true });
    const before = await versionOf(payment);
    await checkAt(10 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    expect(await versionOf(payment)).toBe(before);
    await checkAt(DAY_MS + 2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
    const [row] = await payments.tables.query('SELECT status, check_at FROM transaction');
    expect(row).toEqual({ status: 'EXPIRED', check_at: null });
  });

  it('a redirect whose payer pays is SUCCEEDED by its next check', async () => {
    const payment = await payments.pay({ wallet: true });
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await checkAt(2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('a redirect whose payer agreed is not ended by a completion that did not reach the provider', async () => {
    const payment = await payments.pay({ wallet: true });
    const agreed = { kind: 'to_complete', providerData: create(ProviderDataSchema) } as const;
    const connection: ProviderConnection = {
      ...payments.provider.connection,
      lookUp: async () => agreed,
      complete: async () => ({ kind: 'not_sent', because: 'unreachable', detail: 'refused' }),
    };
    expect(await news(payment, connection)).toBe('unchanged');
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
  });

  it.each<[Outcome, string]>([
    [{ kind: 'approved', providerData: create(ProviderDataSchema), ...NO_CODES }, 'SUCCEEDED/APPROVED'],
    [
      { kind: 'declined', iso8583Code: '05', advice: 'NONE', providerData: create(ProviderDataSchema) },
      'DECLINED/DECLINED',
    ],
    [{ kind: 'unknown', detail: 'reset', providerData: undefined }, 'READY_TO_PAY/CREATED'],
  ])(
    'a redirect whose payer agreed is completed, and ends as its completion does: $kind',
    async (outcome, state) => {
      const payment = await payments.pay({ wallet: true });
      const completed: (string | undefined)[] = [];
      const connection: ProviderConnection = {
        ...payments.provider.connection,
        lookUp: async () => ({ kind: 'to_complete', providerData: create(ProviderDataSchema) }),
        complete: async ({ transactionId }) => {
          completed.push(transactionId);
          return outcome;
        },
      };
      await news(payment, connection);
      expect([completed, await payments.stateOf(payment)]).toEqual([[payment.transactions?.id], state]);
    },
  );

  it('a redirect that is paid after it expired is SUCCEEDED once the provider reports it', async () => {
    const payment = await payments.pay({ wallet: true });
    await checkAt(DAY_MS + 2 * MINUTE_MS);
    payments.provider.payerPays(payment.transactions?.id ?? '');
    const told = await news(payment);
    expect(told).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    // A second report changes nothing.
    const version = await versionOf(payment);
    expect(await news(payment)).toBe('unchanged');
    expect(await versionOf(payment)).toBe(version);
  });
});

describe('a challenge of a card that is charged directly', () => {
  const comesBack = (payment: Payment) => {
    const pending = { kind: 'pending', providerData: create(ProviderDataSchema) } as const;
    const connection: ProviderConnection = { ...payments.provider.connection, lookUp: async () => pending };
    return news(payment, connection);
  };

  it('a challenge is IN_PROCESS once the payer is back and the provider has yet to confirm', async () => {
    payments.provider.next.push('sends the payer away');
    const payment = await payments.pay();
    expect(await payments.stateOf(payment)).toBe('PENDING/WAITING_ADDITIONAL_STEP');
    expect(await comesBack(payment)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
    const version = await versionOf(payment);
    expect(await comesBack(payment)).toBe('unchanged');
    expect(await versionOf(payment)).toBe(version);
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await checkAt(2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });
});

describe('a challenge whose card is to be stored', () => {
  const tokens = () => payments.tables.query('SELECT id FROM vaulted_token');
  async function paidAfter(aheadMs: number, customerId?: string): Promise<Payment> {
    payments.provider.next.push('sends the payer away');
    const payment = await payments.pay({ keepsCard: true, ...(customerId && { customerId }) });
    await checkAt(aheadMs);
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await news(payment);
    return getPayment(payments.deps, payment.id, payments.caller());
  }

  it('a challenged payment names the card stored for it once the payer has passed the challenge', async () => {
    const { paymentMethod } = await paidAfter(2 * MINUTE_MS);
    expect(await tokens()).toEqual([{ id: paymentMethod?.vaultedToken }]);
  });

  it('a challenge paid after it expired names no card, since the waiting card is gone', async () => {
    const { status, paymentMethod, transactions } = await paidAfter(DAY_MS + 2 * MINUTE_MS);
    expect([status, await tokens()]).toEqual([Payment_Status.SUCCEEDED, []]);
    expect([paymentMethod?.vaultedToken, transactions?.paymentMethod?.vaultedToken]).toEqual(['', '']);
  });

  it('a challenge paid after it expired names the card if the customer had already stored it', async () => {
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
  it('a card payment in progress is looked up by one check at a time, and does not wait for its payer', async () => {
    payments.provider.next.push('delays it');
    const payment = await payments.pay();
    await payments.makeDue();
    expect(await checkDue(payments.deps)).toBe(1);
    expect(await countOpenLater(payments.database, 10)).toEqual([]);
    payments.provider.settleDelayed();
    await payments.makeDue();
    await checkDue(payments.deps);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });
});

describe('an authorization', () => {
  it('an authorization that is not captured within its term is EXPIRED and can no longer be captured', async () => {
    const payment = await payments.pay({ capture: false });
    await checkAt(6 * DAY_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await checkAt(7 * DAY_MS + MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
    const request = create(CapturePaymentRequestSchema, { paymentId: payment.id });
    await expect(capturePayment(payments.deps, request, payments.caller())).rejects.toMatchObject({
      reason: 'INVALID_STATUS',
    });
  });

  it('an authorization that lapsed stays EXPIRED when its approval is reported again', async () => {
    const payment = await payments.pay({ capture: false });
    await checkAt(7 * DAY_MS + MINUTE_MS);
    const { connection } = payments.provider;
    expect(await news(payment, connection)).toBe('unchanged');
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });

  it('an authorization that was approved after a challenge lapses like any other', async () => {
    payments.provider.next.push('sends the payer away');
    const payment = await payments.pay({ capture: false });
    payments.provider.payerPays(payment.transactions?.id ?? '');
    await checkAt(2 * MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await checkAt(6 * DAY_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    await checkAt(7 * DAY_MS + MINUTE_MS);
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });

  it('an authorization that was captured is left alone when its term ends', async () => {
    const payment = await payments.pay({ capture: false });
    const request = create(CapturePaymentRequestSchema, { paymentId: payment.id });
    await capturePayment(payments.deps, request, payments.caller());
    const version = await versionOf(payment);
    await checkAt(8 * DAY_MS);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/CAPTURED');
    expect(await versionOf(payment)).toBe(version);
    expect(await payments.tables.query('SELECT 1 FROM transaction WHERE check_at IS NOT NULL')).toEqual([]);
  });
});

describe('a signed report from a provider without look-up', () => {
  const providerData = create(ProviderDataSchema);
  const APPROVED = { kind: 'approved', providerData, ...NO_CODES } as const;
  let told: unknown[];
  beforeEach(() => {
    told = [];
  });
  const apply = (id: string, over: { minorUnits?: bigint; currency?: string; outcome?: Outcome } = {}) => {
    const deps = { ...payments.deps, checked: { ...payments.deps.checked, learned: noted } };
    const outcome = { minorUnits: 10_000n, currency: 'USD', outcome: APPROVED, ...over } as SignedOutcome;
    return signed(deps, 'ledger', payments.provider.connection, id, outcome);
  };
  /** Drops the outcome of a look-up at a provider that offers none. */
  const noted = ({ transactionId }: { transactionId: string }, result: unknown) => {
    if (typeof result === 'string') told.push([transactionId, result]);
  };

  it.each([
    ['a transaction', true],
    ['an attempt whose outcome is unknown', false],
  ])(
    'a signed report about %s is written if the amounts match, and raises an alarm otherwise',
    async (_what, wallet) => {
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
    },
  );

  it('a signed report of an undecided payment is written, and a later report follows', async () => {
    const payment = await payments.pay({ wallet: true });
    const id = payment.transactions?.id ?? '';
    expect(await apply(id, { outcome: { kind: 'pending', providerData } })).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
    expect(await apply(id)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it('a signed report is kept for later if its transaction does not exist yet', async () => {
    expect(await apply(randomUUID())).toBe('waiting');
    expect(await notified(payments.deps, 'ledger', { transactionId: randomUUID() })).toBe('waiting');
    const rows = await payments.tables.query('SELECT result, check_at > now() AS searched FROM notification');
    expect(rows).toEqual([
      { result: null, searched: true },
      { result: null, searched: true },
    ]);
  });
});
