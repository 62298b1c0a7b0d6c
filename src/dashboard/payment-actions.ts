import { create } from '@bufbuild/protobuf';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import {
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { toServiceError } from '#src/api/errors.ts';
import { requireValidOf } from '#src/api/require-valid.ts';
import type { Caller } from '#src/payments/caller.ts';
import type { KeyedResponse } from '#src/payments/keys/stored-response.ts';
import type { OperationDeps } from '#src/payments/operate/claim-operation.ts';
import { cancelPayment, capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { findAccount } from '#src/store/tables/accounts.ts';
import { recordAction } from '#src/store/tables/audit-log.ts';
import { listDisputes, MAX_DISPUTES } from '#src/store/tables/disputes.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { readPaymentStory } from '#src/store/tables/payment-story.ts';
import { findPaymentsById } from '#src/store/tables/search-payments.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, NOTHING } from '#src/web/html.ts';
import { redeliverOne } from '#src/webhooks/manage-deliveries.ts';
import type { ManageDeps } from '#src/webhooks/manage-webhooks.ts';
import type { ExplainPayment } from './explain-payment.ts';
import { DASHBOARD, notice } from './frame.ts';
import { type Action, keyNote, type Refused } from './payment-forms.ts';
import { paymentContent } from './payment-page.ts';
import { readPaymentSettlement } from './settled-payment.ts';
import { money, shortened } from './show.ts';
import type { Page, Reply, Visit } from './visit.ts';

/** Dependencies of a payment's page and its actions. */
export type PaymentPageDeps = {
  readonly operations: OperationDeps;
  readonly webhooks: ManageDeps;
  readonly explainPayment: ExplainPayment;
  /** Makes shutdown wait for the work. */
  readonly track: <T>(work: Promise<T>) => Promise<T>;
};

const validCapture = requireValidOf(CapturePaymentRequestSchema);
const validCancel = requireValidOf(CancelPaymentRequestSchema);
const validRefund = requireValidOf(RefundPaymentRequestSchema);

const EVERY_DISPUTE = { status: undefined, from: undefined, before: undefined };

/** Leaves room for the key in an entry of the audit log. */
const MAX_DETAIL = 700;

const TYPES: Readonly<Record<string, Transaction_Type>> = {
  capture: Transaction_Type.CAPTURE,
  cancel: Transaction_Type.CANCEL,
  refund: Transaction_Type.REFUND,
};

/** The page of one payment. */
export function paymentPage(deps: PaymentPageDeps, visit: Visit): Promise<Page> {
  return show(deps, visit, (payment) => doneMessage(visit.query('did'), payment), { status: 200 });
}

/** Goes to the page of a payment whose account the URL does not name; the id may be of one of its transactions. */
export async function paymentById(database: Database, visit: Visit): Promise<Reply> {
  const id = visit.part('payment');
  const [found] = isUuid(id) ? await findPaymentsById(database, id) : [];
  if (!found) throw notFound();
  return { goTo: `${DASHBOARD}/payments/${found.accountId}/${found.id}` };
}

/** Renders the result of an action. The URL only selects a message, so a link cannot inject text into the page. */
function doneMessage(did: string, { transactionsHistory: history }: Payment): Html {
  if (did === 'redeliver') return notice('done', 'The event is being delivered again.');
  const last = history.findLast(({ type }) => type === TYPES[did]);
  switch (last?.status) {
    case undefined:
      return NOTHING;
    case Transaction_Status.SUCCEEDED:
      return notice('done', `The ${did} succeeded.`);
    case Transaction_Status.CREATED:
    case Transaction_Status.PENDING:
      return notice('done', `The ${did} was sent. The timeline shows its outcome once it is known.`);
    default:
      return notice('refused', `The ${did} failed. The timeline shows the provider’s response.`);
  }
}

async function show(
  deps: PaymentPageDeps,
  visit: Visit,
  message: (payment: Payment) => Html,
  options: { readonly status: number; readonly refused?: Refused },
): Promise<Page> {
  const { accountId, paymentId } = namesOf(visit);
  const { database } = deps.operations;
  const story = await readPaymentStory(database, accountId, paymentId);
  if (!story) throw notFound();
  const payment = decodeRecord(story.record);
  const account = await findAccount(database, accountId);
  const [first] = story.transactions;
  const recorded = {
    ...{ payment, idempotencyKey: story.idempotencyKey },
    capture: first?.capture ?? true,
    methodKind: first?.methodKind,
    merchantReference: first?.merchantReference,
  };
  const explained = await deps.explainPayment(recorded, first?.catalogueVersion ?? 0);
  const content = paymentContent(
    {
      payment,
      story,
      accountName: account?.name ?? accountId,
      explained,
      session: visit.session,
      refused: options.refused,
      disputes: await listDisputes(
        database,
        { ...EVERY_DISPUTE, accountId, paymentId },
        undefined,
        MAX_DISPUTES,
      ),
      settlement: await readPaymentSettlement(database, accountId, paymentId),
    },
    message(payment),
  );
  return {
    title: shortened(payment.merchantOrderId || payment.id, 100),
    section: '/payments',
    content,
    status: options.status,
  };
}

/**
 * Captures, cancels or refunds, as the API does. The form contains the idempotency key, so submitting it twice has one
 * effect.
 */
export async function act(deps: PaymentPageDeps, visit: Visit, action: Action): Promise<Reply> {
  const { accountId, paymentId } = namesOf(visit);
  const key = visit.form('key');
  const amount = visit.form('amount');
  const stored = await getPaymentRecord(deps.operations.database, accountId, paymentId);
  if (!stored) throw notFound();
  const currency = decodeRecord(stored).amount?.currency ?? '';
  const record = (detail: string) =>
    recordAction(deps.operations.database, {
      accountId,
      actor: visit.actor,
      action,
      subject: paymentId,
      detail: `${detail}`.slice(0, MAX_DETAIL) + keyNote(key),
    });
  // Recorded before anything is sent: an action that cannot be audited must not happen.
  await record(`asked for${action === 'cancel' ? '' : ` ${money(amount, currency)}`}`);
  // The operation may have been sent, so an unavailable database must not count as "nothing was sent".
  const recordEnd = (end: string) =>
    record(end).catch((cause) => {
      throw new Error('the end of an action was not recorded', { cause });
    });
  const requested: Asked = { paymentId, reason: visit.form('reason'), amount, currency };
  const caller = { accountId, idempotencyKey: key, secretPresented: true };
  let result: string;
  try {
    result = resultOf(await deps.track(operate(deps.operations, action, requested, caller)));
  } catch (error) {
    const { reason, status, message } = toServiceError(error);
    if (reason === 'INTERNAL_ERROR') throw error;
    await recordEnd(`refused: ${reason}`);
    return show(deps, visit, () => notice('refused', message), { status, refused: { action, key, amount } });
  }
  // Outside the try: a failure to record the result must not count as a refusal.
  await recordEnd(result);
  return { goTo: `${DASHBOARD}/payments/${accountId}/${paymentId}?did=${action}` };
}

type Asked = {
  readonly paymentId: string;
  readonly reason: string;
  readonly amount: string;
  readonly currency: string;
};

async function operate(
  deps: OperationDeps,
  action: Action,
  { paymentId, reason, amount, currency }: Asked,
  caller: Caller,
): Promise<KeyedResponse> {
  const whole = { paymentId, reason };
  const part = { ...whole, amount: { currency, value: { value: amount } } };
  switch (action) {
    case 'capture':
      return capturePayment(deps, validCapture(create(CapturePaymentRequestSchema, part)), caller);
    case 'cancel':
      return cancelPayment(deps, validCancel(create(CancelPaymentRequestSchema, whole)), caller);
    case 'refund':
      return refundPayment(deps, validRefund(create(RefundPaymentRequestSchema, part)), caller);
  }
}

function resultOf({ record, replayed }: KeyedResponse): string {
  const transaction = Transaction_Status[record.transactions?.status ?? 0] ?? '';
  const payment = `${Payment_Status[record.status]}/${Payment_SubStatus_Value[record.subStatus]}`;
  return `${replayed ? 'was made already: ' : ''}${transaction}, payment ${payment}`;
}

/** Sends an event to a webhook again. */
export async function deliverAgain(deps: PaymentPageDeps, visit: Visit): Promise<Reply> {
  const { accountId, paymentId } = namesOf(visit);
  const delivery = visit.part('delivery');
  const { database } = deps.operations;
  const action = { accountId, actor: visit.actor, action: 'redeliver', subject: delivery };
  await recordAction(database, { ...action, detail: `of payment ${paymentId}` });
  await redeliverOne(deps.webhooks, accountId, delivery, '');
  return { goTo: `${DASHBOARD}/payments/${accountId}/${paymentId}?did=redeliver` };
}

function namesOf(visit: Visit): { readonly accountId: string; readonly paymentId: string } {
  const accountId = visit.part('account').toLowerCase();
  const paymentId = visit.part('payment').toLowerCase();
  if (!isUuid(accountId) || !isUuid(paymentId)) throw notFound();
  return { accountId, paymentId };
}

function notFound(): ServiceError {
  return new ServiceError('PAYMENT_NOT_FOUND', 'this account has no such payment');
}
