import { type Payment, Payment_SubStatus_Value, type Transaction } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import { movedBy } from '#src/payments/model/movement.ts';
import type {
  ExportedDispute,
  ExportedMovement,
  ExportedPayment,
  ExportedPaymentRow,
  ExportedTransaction,
  PaymentSum,
} from '#src/store/tables/exported-rows.ts';
import type { Cell } from './csv.ts';

/** A column, with the cell of a row. */
export type Column<Row> = readonly [name: string, cell: (row: Row) => Cell];

/** A row with what else is known about it: its account's name, and its payment's record where it was read. */
export type Told<Row> = Row & { readonly accountName: string; readonly record: Payment | undefined };

/** The column of the account. */
export const ACCOUNT = ['account_id', ({ accountId }: ExportedPayment) => accountId] as const;
/** The column of the account's name. */
export const ACCOUNT_NAME = ['account_name', ({ accountName }: Told<unknown>) => accountName] as const;
/** The columns of a row's payment, the last of every file. */
export const PAYMENT: readonly Column<ExportedPayment>[] = [
  ['payment_method_type', ({ methodType }) => methodType],
  ['brand', ({ cardBrand }) => cardBrand],
  ['card_last_four', ({ cardLastFour }) => cardLastFour],
  ['country', ({ country }) => country],
  ['customer_id', ({ customerId }) => customerId],
];
/** The column of the payment's order. */
export const ORDER = [
  'merchant_order_id',
  ({ merchantOrderId }: ExportedPayment) => merchantOrderId,
] as const;

/** The columns that `include=payer` adds at the end: the payer as the payment's record has them. */
export const PAYER_COLUMNS: readonly Column<Told<unknown>>[] = [
  ['payer_first_name', ({ record }) => record?.customerPayer?.firstName],
  ['payer_last_name', ({ record }) => record?.customerPayer?.lastName],
  ['payer_email', ({ record }) => record?.customerPayer?.email],
  ['payer_document_type', ({ record }) => record?.customerPayer?.document?.documentType],
  ['payer_document_number', ({ record }) => record?.customerPayer?.document?.documentNumber],
];

/**
 * The columns of a movement. None of them changes once the movement is written, so that a month that is over always
 * gives the same file.
 */
export const MOVEMENT_COLUMNS: readonly Column<ExportedMovement>[] = [
  ACCOUNT,
  ['movement_id', ({ id }) => id],
  ['payment_id', ({ paymentId }) => paymentId],
  ['transaction_id', ({ transactionId }) => transactionId],
  ['parent_transaction_id', ({ parentId }) => parentId],
  ORDER,
  ['merchant_reference', ({ merchantReference }) => merchantReference],
  ['type', ({ kind, type }) => kind ?? type],
  ['moved_at_utc', ({ at }) => shortTime(at)],
  ['amount', movementMoney],
  ['currency', ({ currency }) => currency],
  ['connection_id', ({ connectionId }) => connectionId],
  ['provider_reference', ({ providerPaymentId }) => providerPaymentId],
  ...PAYMENT,
];

/**
 * Returns the money that a movement moved: positive to the merchant, negative from the merchant. The first success of a
 * transaction that failed later moved the opposite of that correction, since its amount may have changed since.
 *
 * @returns undefined for a succeeded transaction that moves no money, such as an authorization.
 */
export function movementMoney(row: ExportedMovement): Money | undefined {
  const { movedMinorUnits, undoneMinorUnits, currency } = row;
  const minorUnits = movedMinorUnits ?? (undoneMinorUnits === undefined ? movedBy(row) : -undoneMinorUnits);
  return minorUnits === 0n ? undefined : { minorUnits, currency };
}

/** A transaction with its payment. */
export type FullTransaction = ExportedPayment & ExportedTransaction;

/** The columns of a transaction, as it is now. */
export const TRANSACTION_COLUMNS: readonly Column<Told<FullTransaction>>[] = [
  ACCOUNT,
  ACCOUNT_NAME,
  ['payment_id', ({ paymentId }) => paymentId],
  ['transaction_id', ({ transactionId }) => transactionId],
  ['parent_transaction_id', ({ parentId }) => parentId],
  ORDER,
  ['merchant_reference', ({ merchantReference }) => merchantReference],
  ['type', ({ type }) => type],
  ['status', ({ status }) => status],
  ['response_code', (row) => reported(row)?.responseCode],
  ['created_at_utc', ({ createdAt }) => shortTime(createdAt)],
  ['succeeded_at_utc', ({ succeededAt }) => succeededAt && shortTime(succeededAt)],
  ['updated_at_utc', ({ updatedAt }) => shortTime(updatedAt)],
  ['amount', transactionMoney],
  ['currency', ({ currency }) => currency],
  ['attempted_amount', ({ minorUnits, currency }) => ({ minorUnits, currency })],
  ['authorized_amount', authorizedMoney],
  ['connection_id', ({ connectionId }) => connectionId],
  ['provider', (row) => reported(row)?.providerId],
  ['provider_reference', ({ providerPaymentId }) => providerPaymentId],
  ...PAYMENT,
];

/** Returns the sum of a transaction's movements so far; undefined if it has moved no money. */
function transactionMoney(row: FullTransaction): Money | undefined {
  const { type, status, currency, correctedMinorUnits } = row;
  const moved = status === 'SUCCEEDED' ? movedBy(row) : 0n;
  const minorUnits = type === 'CHARGEBACK' ? (correctedMinorUnits ?? 0n) : moved;
  return minorUnits === 0n ? undefined : { minorUnits, currency };
}

/** Returns the money that a transaction reserved, or released; undefined if it did neither. */
function authorizedMoney(row: FullTransaction): Money | undefined {
  const { type, status, capture, minorUnits, currency } = row;
  if (status !== 'SUCCEEDED') return undefined;
  if (type === 'CANCEL') return { minorUnits: -minorUnits, currency };
  return type === 'AUTHORIZE' || (type === 'PURCHASE' && !capture) ? { minorUnits, currency } : undefined;
}

/** A payment with the sums of its transactions. */
export type SummedPayment = ExportedPaymentRow & { readonly sums: readonly PaymentSum[] };

/** The columns of a payment, as it is now. `amount` is captured, less refunded and disputed. */
export const PAYMENT_COLUMNS: readonly Column<Told<SummedPayment>>[] = [
  ACCOUNT,
  ACCOUNT_NAME,
  ['payment_id', ({ paymentId }) => paymentId],
  ORDER,
  ['status', ({ status }) => status],
  ['sub_status', ({ record }) => record && Payment_SubStatus_Value[record.subStatus]],
  ['response_code', ({ record }) => record?.transactions?.responseCode],
  ['created_at_utc', ({ createdAt }) => shortTime(createdAt)],
  ['updated_at_utc', ({ updatedAt }) => shortTime(updatedAt)],
  ['amount', (row) => total(row, takenBy(row) - refundedBy(row) - disputedBy(row))],
  ['currency', ({ currency }) => currency],
  ['attempted_amount', ({ minorUnits, currency }) => ({ minorUnits, currency })],
  ['captured_amount', (row) => total(row, takenBy(row))],
  ['refunded_amount', (row) => total(row, refundedBy(row))],
  ['disputed_amount', (row) => total(row, disputedBy(row))],
  ['connection_id', ({ record }) => record?.transactions?.connectionData?.id],
  ['provider', ({ record }) => record?.transactions?.providerId],
  ...PAYMENT,
];

const total = ({ currency }: SummedPayment, minorUnits: bigint): Money => ({ minorUnits, currency });

function takenBy({ sums }: SummedPayment): bigint {
  return sums.reduce((sum, one) => sum + (movedBy(one) > 0n ? movedBy(one) : 0n), 0n);
}

function refundedBy({ sums }: SummedPayment): bigint {
  return sums.reduce((sum, one) => sum - (movedBy(one) < 0n ? movedBy(one) : 0n), 0n);
}

function disputedBy({ sums }: SummedPayment): bigint {
  return sums.reduce(
    (sum, one) => sum - (one.type === 'CHARGEBACK' ? (one.correctedMinorUnits ?? 0n) : 0n),
    0n,
  );
}

/** The columns of a dispute, as it is now. */
export const DISPUTE_COLUMNS: readonly Column<Told<ExportedDispute>>[] = [
  ACCOUNT,
  ACCOUNT_NAME,
  ['dispute_id', ({ id }) => id],
  ['payment_id', ({ paymentId }) => paymentId],
  ORDER,
  ['dispute_stage', ({ stage }) => stage],
  ['dispute_status', ({ status }) => status],
  ['dispute_reason', ({ reason }) => reason],
  ['dispute_network_code', ({ networkCode }) => networkCode],
  ['opened_at_utc', ({ openedAt }) => shortTime(openedAt)],
  ['updated_at_utc', ({ updatedAt }) => shortTime(updatedAt)],
  ['closed_at_utc', ({ closedAt }) => closedAt && shortTime(closedAt)],
  ['dispute_respond_by_utc', ({ respondBy }) => respondBy && shortTime(respondBy)],
  [
    'amount',
    ({ correctedMinorUnits: units, currency }) => (units ? { minorUnits: units, currency } : undefined),
  ],
  ['currency', ({ currency }) => currency],
  ['attempted_amount', ({ minorUnits, currency }) => ({ minorUnits, currency })],
  ['dispute_fee', disputeFee],
  ['dispute_fee_currency', ({ feeCurrency }) => feeCurrency],
  ['connection_id', ({ connectionId }) => connectionId],
  ['dispute_reference', ({ reference }) => reference],
  ...PAYMENT,
];

/** Returns the provider's fee, in its own currency; undefined if it says none. */
function disputeFee({
  feeMinorUnits: minorUnits,
  feeCurrency: currency,
}: ExportedDispute): Money | undefined {
  return minorUnits === undefined || currency === undefined ? undefined : { minorUnits, currency };
}

/** Returns the transaction as its payment's record shows it. */
function reported({ record, id }: Told<FullTransaction>): Transaction | undefined {
  return record?.transactionsHistory.find((one) => one.id === id);
}

/** Cuts a time to milliseconds, as the API writes times. */
export function shortTime(at: string): string {
  return `${at.slice(0, 23)}Z`;
}
