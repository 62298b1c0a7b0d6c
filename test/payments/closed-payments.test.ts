import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import {
  CancelOrRefundPaymentRequestSchema,
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { returnPayer } from '#src/payments/check/payer-return.ts';
import {
  cancelOrRefundPayment,
  cancelPayment,
  capturePayment,
} from '#src/payments/operate/payment-operations.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { writeClosing } from '#src/payments/write-change.ts';
import { APPROVED } from '../support/outcomes.ts';
import { restBody } from '../support/stored-responses.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification' });

const WALLET = { wallet: true } as const;
/** Payments whose observer notes late money. */
const late: string[] = [];
const depsWith = (over: Partial<ProviderConnection> = {}) => {
  const connections = new Map([['ledger', { ...payments.provider.connection, ...over }]]);
  const observer = {
    ...payments.deps.observer,
    moneyAlarmed: (_: unknown, { id }: Payment) => void late.push(id),
  };
  return { ...payments.deps, observer, connections: () => connections };
};

const cancel = ({ id }: Payment, key?: string | null, deps = depsWith()) =>
  cancelPayment(deps, create(CancelPaymentRequestSchema, { paymentId: id }), payments.caller(key));

/** Shows a payment as `STATUS/SUB_STATUS: TYPE STATUS code, …`. */
function shown({ status, subStatus, transactionsHistory }: Payment): string {
  const history = transactionsHistory.map(
    (one) => `${Transaction_Type[one.type]} ${Transaction_Status[one.status]} ${one.responseCode}`,
  );
  return `${Payment_Status[status]}/${Payment_SubStatus_Value[subStatus]}: ${history.join(', ')}`;
}
const standing = async ({ id }: Payment) => shown(await getPayment(payments.deps, id, payments.caller()));
const idOf = (payment: Payment) => payment.transactionsHistory[0]?.id ?? '';

async function checkAll(deps = depsWith()): Promise<void> {
  await payments.makeDue();
  await checkDue(deps);
}

const CLOSED = 'CANCELED/CANCELED: PURCHASE EXPIRED CANCELED_BY_MERCHANT, CANCEL SUCCEEDED SUCCEEDED';
const CLOSING =
  'CANCELED/PENDING_PROVIDER_CONFIRMATION: PURCHASE CREATED SUCCEEDED, CANCEL PENDING PENDING_PROVIDER_CONFIRMATION';
const PAID = 'SUCCEEDED/APPROVED: PURCHASE SUCCEEDED SUCCEEDED, CANCEL DECLINED ALREADY_PAID';
const SILENT: Partial<ProviderConnection> = {
  lookUp: async (): Promise<Outcome> => ({ kind: 'unknown', detail: 'reset', providerData: undefined }),
};

describe('the cancel of a payment that awaits its payer', () => {
  it('closes the payment at its provider, and then ends it', async () => {
    const payment = await payments.pay(WALLET);
    const asked: LookUp[] = [];
    const lookUp = async (query: LookUp) => {
      asked.push(query);
      return payments.provider.connection.lookUp?.(query) as Promise<Outcome>;
    };
    const { record } = await cancel(payment, undefined, depsWith({ lookUp }));
    expect(shown(record)).toBe(CLOSED);
    expect(record.transactions?.type).toBe(Transaction_Type.CANCEL);
    expect(record.checkout?.sdkActionRequired).toBe(false);
    expect(asked).toMatchObject([{ transactionId: idOf(payment), close: true }]);
    expect(await standing(payment)).toBe(CLOSED);
  });

  it('leaves one more check of the attempt, which finds money that came at the last moment', async () => {
    const due = () =>
      payments.tables.query('SELECT type, check_at IS NOT NULL AS due FROM transaction ORDER BY created_at');
    const payment = await payments.pay(WALLET);
    await cancel(payment);
    expect(await due()).toEqual([
      { type: 'PURCHASE', due: true },
      { type: 'CANCEL', due: false },
    ]);
    await checkAll();
    expect(await standing(payment)).toBe(CLOSED);
    expect((await due()).map((row) => row.due)).toEqual([false, false]);
    const other = await payments.pay(WALLET);
    await cancel(other);
    payments.provider.payerPays(idOf(other));
    await checkAll();
    expect(await standing(other)).toBe(
      'SUCCEEDED/APPROVED: PURCHASE SUCCEEDED SUCCEEDED, CANCEL SUCCEEDED SUCCEEDED',
    );
    expect(late).toContain(other.id);
  });

  it('keeps the check that news about the attempt asked for, if the check of the cancel learns that it is paid', async () => {
    const payment = await payments.pay(WALLET);
    const { record } = await cancel(payment, undefined, depsWith(SILENT));
    // By chance, both transactions have the same fence.
    await payments.tables.query("UPDATE transaction SET fence = 7, check_at = now() + interval '100 s'");
    const { id: transactionId = '' } = record.transactions ?? {};
    const leased = { accountId: payment.accountId, paymentId: payment.id, transactionId, fence: 7 };
    await writeClosing(depsWith(), leased, { kind: 'outcome', transactionId, outcome: APPROVED, pauseS: 60 });
    expect(await standing(payment)).toBe(PAID);
    const due = 'SELECT extract(epoch FROM check_at - now())::float8 AS in_s FROM transaction WHERE id = $1';
    const [row] = await payments.tables.query(due, [idOf(payment)]);
    expect(row?.in_s).toBeCloseTo(100, -1);
  });

  it('is repeated without a key, and gets the first response', async () => {
    const payment = await payments.pay(WALLET);
    const first = await cancel(payment, null);
    const again = await cancel(payment, null);
    expect(again.replayed).toBe(true);
    expect(restBody(again).equals(restBody(first))).toBe(true);
    // Another cancel finds nothing to close.
    await expect(cancel(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('stays pending while the provider has not confirmed it, and its checks close the payment', async () => {
    const payment = await payments.pay(WALLET);
    const { record } = await cancel(payment, 'key-1', depsWith(SILENT));
    expect(shown(record)).toBe(CLOSING);
    await expect(cancel(payment)).rejects.toMatchObject({ reason: 'OPERATION_IN_PROGRESS' });
    await checkAll(depsWith(SILENT));
    expect(await standing(payment)).toBe(CLOSING);
    await checkAll();
    expect(await standing(payment)).toBe(CLOSED);
    expect(shown((await cancel(payment, 'key-1')).record)).toBe(CLOSING);
  });

  it('is closed by the next check if its process died, and its key then gets the response', async () => {
    const payment = await payments.pay(WALLET);
    await cancel(payment, 'key-1', depsWith(SILENT));
    await payments.tables.query(
      "UPDATE transaction SET response = NULL, response_record = NULL WHERE type = 'CANCEL'",
    );
    await checkAll();
    expect(shown((await cancel(payment, 'key-1')).record)).toBe(CLOSED);
  });

  it('is declined if the payer has paid meanwhile, and the payment succeeds with its own event and an alarm', async () => {
    const payment = await payments.pay(WALLET);
    payments.provider.payerPays(idOf(payment));
    const { record } = await cancel(payment);
    expect(shown(record)).toBe(PAID);
    expect(record.transactions?.type).toBe(Transaction_Type.CANCEL);
    expect(await standing(payment)).toBe(PAID);
    expect(late).toContain(payment.id);
    const [row] = await payments.tables.query('SELECT open_operation, event_sequence FROM payment');
    // One event each: the redirect, the purchase and the cancel.
    expect(row).toEqual({ open_operation: null, event_sequence: 3 });
  });

  it('is declined if the payer pays while the cancel is pending, whoever learns of it first', async () => {
    const payment = await payments.pay(WALLET);
    await cancel(payment, undefined, depsWith(SILENT));
    payments.provider.payerPays(idOf(payment));
    await checkAll();
    expect(await standing(payment)).toBe(PAID);
    // The cancel does not stand in the way of another operation.
    await expect(cancel(payment)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('does not end a payment that is paid after all: the money is accepted, with an alarm', async () => {
    const payment = await payments.pay(WALLET);
    await cancel(payment, null);
    payments.provider.payerPays(idOf(payment));
    const deps = { ...depsWith(), wake: () => void checkAll(), patience: payments.deps.patience };
    await returnPayer(deps, payment.id, '');
    expect(await standing(payment)).toBe(
      'SUCCEEDED/APPROVED: PURCHASE SUCCEEDED SUCCEEDED, CANCEL SUCCEEDED SUCCEEDED',
    );
    expect(late).toContain(payment.id);
    // The earlier cancel is over, so a repeat without a key does not get its response.
    await expect(cancel(payment, null)).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('never completes what the payer has approved in the meantime', async () => {
    const payment = await payments.pay(WALLET);
    const providerData = payment.transactions?.providerData as never;
    const lookUp = async (): Promise<Outcome> => ({ kind: 'to_complete', providerData });
    const complete = () => Promise.reject(new Error('completed'));
    const { record } = await cancel(payment, undefined, depsWith({ lookUp, complete }));
    expect(shown(record)).toBe(CLOSED);
  });

  it('is refused if the provider cannot close it, and nothing changes', async () => {
    const payment = await payments.pay(WALLET);
    const { capabilities } = payments.provider.connection;
    const deps = depsWith({ capabilities: { ...capabilities, close: false } });
    await expect(cancel(payment, undefined, deps)).rejects.toMatchObject({
      reason: 'OPERATION_NOT_SUPPORTED',
    });
    expect(await standing(payment)).toBe('READY_TO_PAY/CREATED: PURCHASE CREATED SUCCEEDED');
  });
});

describe('the other operations on a payment that awaits its payer', () => {
  it('a cancel-or-refund closes the payment, but only without an amount', async () => {
    const payment = await payments.pay(WALLET);
    const undo = (amount?: string) => {
      const init = {
        paymentId: payment.id,
        ...(amount && { amount: { currency: 'USD', value: { value: amount } } }),
      };
      return cancelOrRefundPayment(
        depsWith(),
        create(CancelOrRefundPaymentRequestSchema, init),
        payments.caller(),
      );
    };
    await expect(undo('1')).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    expect(shown((await undo()).record)).toBe(CLOSED);
    await expect(undo()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('a capture is refused', async () => {
    const { id } = await payments.pay(WALLET);
    const request = create(CapturePaymentRequestSchema, { paymentId: id });
    await expect(capturePayment(depsWith(), request, payments.caller())).rejects.toMatchObject({
      reason: 'INVALID_STATUS',
    });
  });
});

describe("a payer who leaves the provider's page by its way to cancel", () => {
  const back = (payment: Payment, over: Partial<ProviderConnection> = {}) => {
    const deps = {
      ...depsWith(over),
      wake: () => void checkAll(depsWith(over)),
      patience: payments.deps.patience,
    };
    return returnPayer(deps, payment.id, 'token=1', { hasCanceled: true });
  };

  it('closes the payment, which can then no longer be paid', async () => {
    const payment = await payments.pay(WALLET);
    expect(shown(await back(payment))).toBe('EXPIRED/EXPIRED: PURCHASE EXPIRED EXPIRED');
  });

  it('only prompts a look-up if the provider cannot close it', async () => {
    const payment = await payments.pay(WALLET);
    const { capabilities } = payments.provider.connection;
    const after = await back(payment, { capabilities: { ...capabilities, close: false } });
    expect(shown(after)).toBe('READY_TO_PAY/CREATED: PURCHASE CREATED SUCCEEDED');
  });
});
