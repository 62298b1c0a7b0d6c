import { clone, create } from '@bufbuild/protobuf';
import { type Timestamp, timestampFromDate } from '@bufbuild/protobuf/wkt';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import {
  type BankTransfer,
  type Card,
  CardDataSchema,
  type PaymentMethodDetail,
  type Ticket,
  TransactionPaymentMethodSchema,
  type Wallet,
} from '#gen/payments/v1/payment_method_pb.js';
import {
  ConnectionDataSchema,
  type Payment,
  type ProviderData,
  ProviderDataSchema,
  type Transaction,
  Transaction_Status,
} from '#gen/payments/v1/payment_pb.js';
import { type Outcome, payersPage } from '#src/connectors/port/outcome.ts';
import { formatMoney } from '#src/money.ts';
import { type ShownAttempt, type States, shownTransaction, statesOf, WAITING } from './states.ts';

/** An attempt that begins after another one has failed. */
type NextAttempt = {
  readonly transactionId: string;
  readonly at: Timestamp;
  /** When a local method's code is to expire at its connection. */
  readonly expiresAt: Timestamp | undefined;
};

/** Returns the record with another attempt after the last one failed, so that the payment waits again. */
export function withAttempt(
  record: Payment,
  { transactionId, at, expiresAt }: NextAttempt,
  connection: ConnectionConfig,
): Payment {
  const last = record.transactionsHistory.at(-1);
  if (!last?.paymentMethod) throw new Error('the record has no transaction');
  const transaction: Transaction = {
    ...last,
    ...atConnection(connection),
    id: transactionId,
    // A copy, since the outcome's details are written into the attempt's own method.
    paymentMethod: clone(TransactionPaymentMethodSchema, last.paymentMethod),
    createdAt: at,
  };
  const detail = transaction.paymentMethod?.detail;
  const local = localDetailOf(detail);
  if (local && expiresAt) local.expiresAt = expiresAt;
  const { paymentMethod } = record;
  const shown = paymentMethod && detail && { ...paymentMethod, paymentMethodDetail: detail };
  const next = { ...record, ...(shown && { paymentMethod: shown }) };
  setStates(next, transaction, WAITING, at);
  return next;
}

/** Data that a record shows only once its provider has approved the payment. */
export type ShownOnApproval = {
  /** The token of the stored card, if any. */
  readonly vaultedToken?: string | undefined;
  /** Keyed hash of the card number, if there is a card. Without an approval, it would tell guessed numbers apart. */
  readonly cardFingerprint?: string | undefined;
};

/**
 * Writes the outcome of the last attempt into a record.
 *
 * @returns the states that follow from the outcome.
 */
export function recordOutcome(
  record: Payment,
  outcome: Outcome,
  { vaultedToken, cardFingerprint, methodKind }: ShownOnApproval & Pick<ShownAttempt, 'methodKind'>,
  at: Timestamp,
): States {
  const { transactionsHistory: history } = record;
  const transaction = history.at(-1);
  const detail = transaction?.paymentMethod?.detail;
  if (!transaction?.paymentMethod || !detail || !record.paymentMethod)
    throw new Error('the record has no transaction');
  const providerData = providerDataAfter(transaction, outcome);
  if (providerData) transaction.providerData = providerData;
  recordLocalOutcome(detail, outcome);
  const { kind } = detail;
  if (kind.case === 'card') recordCardOutcome(record, kind.value, outcome, cardFingerprint);
  else if (kind.case === 'wallet' && methodKind === 'CARD') recordTokenOutcome(record, kind.value, outcome);
  else if (kind.case === 'wallet' && outcome.kind === 'awaits_payer')
    kind.value.redirectUrl = payersPage(outcome);
  if (outcome.kind === 'approved' && vaultedToken) {
    transaction.paymentMethod.vaultedToken = vaultedToken;
    record.paymentMethod.vaultedToken = vaultedToken;
  }
  // A new record holds the same detail object twice; a record read from the database holds two copies of it.
  record.paymentMethod.paymentMethodDetail = detail;
  const isDeclinedBefore = history.some(
    (one) => one !== transaction && one.status === Transaction_Status.DECLINED,
  );
  const states = statesOf(outcome, { type: transaction.type, methodKind, isDeclinedBefore });
  setStates(record, transaction, states, at);
  return states;
}

/** Returns an attempt's provider data after an outcome. What has arrived stays known, unless it was the whole amount. */
export function providerDataAfter(
  { providerData: before }: Pick<Transaction, 'providerData'>,
  outcome: Outcome,
): ProviderData | undefined {
  const reported = (outcome.kind !== 'not_sent' && outcome.providerData) || before;
  const arrived = 'received' in outcome && outcome.received ? formatMoney(outcome.received) : undefined;
  const amountReceived = arrived ?? (outcome.kind === 'approved' ? '' : before?.amountReceived);
  return reported && amountReceived ? { ...reported, amountReceived } : reported;
}

/**
 * Returns the amount that the payer of a payment has transferred, if it is not the payment's. After a cancel, the payment
 * shows the cancel, and its history the transfer.
 */
export function amountReceivedOf({ transactionsHistory }: Payment): string | undefined {
  return transactionsHistory.map(({ providerData }) => providerData?.amountReceived).find(Boolean);
}

/** Returns the bank transfer or the ticket of a payment with a local method; undefined for cards and wallets. */
export function localDetailOf(detail: PaymentMethodDetail | undefined): BankTransfer | Ticket | undefined {
  const kind = detail?.kind;
  return kind?.case === 'bankTransfer' || kind?.case === 'ticket' ? kind.value : undefined;
}

/** Writes what the payer of a local method is shown. */
function recordLocalOutcome(detail: PaymentMethodDetail, outcome: Outcome): void {
  const { kind } = detail;
  const local = localDetailOf(detail);
  if (!local) return;
  if (outcome.kind === 'approved' && kind.case === 'bankTransfer') {
    kind.value.retrievalReferenceNumber = outcome.retrievalReferenceNumber || undefined;
  }
  if (outcome.kind !== 'awaits_payer') return;
  const { show, until } = outcome;
  if (until) local.expiresAt = timestampFromDate(until);
  if (show.page !== undefined) {
    local.redirectUrl = show.page;
    return;
  }
  const { text, image, number, barcode, account, bankName, beneficiary, reference, document } =
    show.instructions;
  local.documentUrl = document ?? '';
  if (kind.case === 'bankTransfer') {
    const { value } = kind;
    // Without the provider's image, our own page draws the code.
    value.providerImage = image ?? (text === undefined ? undefined : `${value.redirectUrl}/qr.svg`);
    value.paymentInstruction = text;
    value.bankAccount = account;
    value.bankName = bankName;
    value.beneficiaryName = beneficiary;
    value.reference = reference;
  }
  if (kind.case === 'ticket') {
    const { value } = kind;
    value.type = barcode === undefined ? 'reference_code' : 'barcode';
    value.providerNumber = number ?? reference;
    value.providerBarcode = barcode;
    value.providerFormat = barcode === undefined ? 'custom' : 'barcode';
  }
}

function recordCardOutcome(
  record: Payment,
  card: Card,
  outcome: Outcome,
  fingerprint: string | undefined,
): void {
  if (outcome.kind === 'approved') {
    if (card.cardData && fingerprint) card.cardData = { ...card.cardData, fingerprint };
    card.authorizationCode = outcome.authorizationCode;
    card.retrievalReferenceNumber = outcome.retrievalReferenceNumber;
  }
  recordCharge(record, card, outcome);
}

/** Writes the outcome of a charge with a wallet's token, and the card behind it. */
function recordTokenOutcome(record: Payment, wallet: Wallet, outcome: Outcome): void {
  if (outcome.kind === 'approved') {
    wallet.authorizationCode = outcome.authorizationCode || undefined;
    const { brand, lastFour, expirationMonth, expirationYear, type } = outcome.card ?? {};
    const reported = { brand, lfd: lastFour, expirationMonth, expirationYear, type };
    const known = Object.entries(reported).filter(([, value]) => value !== undefined);
    if (known.length > 0)
      wallet.cardData = { ...(wallet.cardData ?? create(CardDataSchema)), ...Object.fromEntries(known) };
  }
  recordCharge(record, wallet, outcome);
}

/** Writes what a charge of a card and that of the card behind a wallet have in common. */
function recordCharge(record: Payment, charged: Card | Wallet, outcome: Outcome): void {
  if (outcome.kind === 'approved') {
    // Needed for the next charge of a stored card. Reported only if the request gave the reason or usage of stored
    // credentials.
    const { storedCredentials: stored } = charged;
    const isAsked = stored?.reason !== undefined || stored?.usage !== undefined;
    if (stored && isAsked && stored.networkTransactionId === undefined && outcome.networkTransactionId)
      charged.storedCredentials = { ...stored, networkTransactionId: outcome.networkTransactionId };
  }
  if (outcome.kind === 'awaits_payer') {
    charged.redirectUrl = payersPage(outcome);
    if (record.checkout) record.checkout = { ...record.checkout, sdkActionRequired: true };
  } else if (outcome.kind !== 'pending' && outcome.kind !== 'unknown') {
    charged.redirectUrl = '';
  }
}

/** Sets the states of a record and of its last attempt, and copies the attempt into the record. */
export function setStates(record: Payment, transaction: Transaction, states: States, at: Timestamp): void {
  transaction.status = states.transaction;
  transaction.responseCode = states.responseCode;
  transaction.responseMessage = states.responseMessage;
  transaction.updatedAt = at;
  record.status = states.payment;
  record.subStatus = states.subStatus;
  record.updatedAt = at;
  record.transactionsHistory = [
    ...record.transactionsHistory.filter(({ id }) => id !== transaction.id),
    transaction,
  ];
  record.transactions = shownTransaction(record) ?? transaction;
}

/** Returns the fields that a transaction takes from its connection before the provider has answered. */
export function atConnection({ id, name, providerId }: ConnectionConfig) {
  return {
    providerId,
    providerData: create(ProviderDataSchema, { id: providerId, rawResponse: {} }),
    connectionData: create(ConnectionDataSchema, { id, name: name || undefined }),
  };
}
