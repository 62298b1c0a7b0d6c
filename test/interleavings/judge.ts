import {
  type Payment,
  Payment_Status,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { createPayment } from '#src/payments/create/create-payment.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { type LedgerProvider, ledgerReference } from '../payments/ledger-provider.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Tables } from '../support/tables.ts';
import type { Deps } from './replica.ts';

type Row = {
  readonly id: string;
  readonly type: string;
  readonly status: string;
  readonly reference: string | null;
  readonly provider_payment_id: string | null;
  readonly amount: string;
  readonly final: boolean;
  /** True for an operation made at the provider itself. */
  readonly is_outside: boolean;
};

type PaymentRow = {
  readonly id: string;
  readonly captured: string;
  readonly refunded: string;
  readonly released: boolean;
  readonly open_operation: string | null;
  readonly event_sequence: string;
};

/**
 * Compares the payment with its provider's ledger.
 *
 * @param again repeats the call that made the payment.
 * @returns the differences.
 */
export async function judge(
  deps: Deps,
  tables: Tables,
  provider: LedgerProvider,
  responses: readonly string[],
  again: () => ReturnType<typeof createPayment>,
): Promise<string[]> {
  const [payment] = (await tables.query(
    `SELECT id, captured_minor_units AS captured, refunded_minor_units AS refunded, released, open_operation,
       event_sequence FROM payment`,
  )) as unknown as PaymentRow[];
  const rows = (await tables.query(
    `SELECT id, type, status, reference, provider_payment_id, amount_minor_units AS amount, final,
       parent_id IS NOT NULL AND method IS NULL AS is_outside FROM transaction`,
  )) as unknown as Row[];
  const faults = faultsOfTransactions(rows, provider);
  if (!payment) return faults;
  faults.push(...faultsOfBooks(payment, rows, provider));
  const caller = { accountId: ACCOUNT_ONE, secretPresented: true };
  const shown = await getPayment(deps, payment.id, caller as never);
  for (const { id, status } of shown.transactionsHistory) {
    if (!rows.some((one) => one.id === id)) {
      faults.push(`the record shows a transaction that is not stored: ${status}`);
    }
  }
  // Events of disputes have sequences of their own.
  const events = await tables.query(
    "SELECT sequence, record FROM event WHERE type LIKE 'payment.%' ORDER BY sequence",
  );
  faults.push(...faultsOfHistory(events.map(({ record }) => decodeRecord(record as Buffer))));
  const sequences = events.map(({ sequence }) => Number(sequence)).join();
  const due = Array.from({ length: Number(payment.event_sequence) }, (_, i) => i + 1).join();
  if (sequences !== due) faults.push(`events ${sequences} of ${due}`);
  const replay = `${restBody(await again())}`;
  if (responses.some((response) => response !== replay)) faults.push('the repeat got a different response');
  return faults;
}

/** Compares each transaction with the calls that moved money at the provider, and with its id there. */
function faultsOfTransactions(rows: readonly Row[], { moved, isPayable }: LedgerProvider): string[] {
  const faults: string[] = [];
  const own = rows.filter(({ is_outside }) => !is_outside);
  const took = ({ id }: Row) => moved.some((one) => one.endsWith(id));
  for (const row of own) {
    const { id, type, status, reference, provider_payment_id } = row;
    if (isPayable(id)) faults.push(`the payer can still pay, and ${type} is ${status}`);
    // A cancel that closes a payment moves nothing.
    const isClose = type === 'CANCEL' && !row.final;
    if (!isClose && took(row) !== (status === 'SUCCEEDED'))
      faults.push(`${type} is ${status}, and at the provider ${took(row)}`);
    const names = [reference, provider_payment_id];
    if (took(row) && names.some((name) => name !== ledgerReference(id))) {
      faults.push(`${type} has the references ${names}`);
    }
  }
  const names = rows.flatMap(({ provider_payment_id }) => provider_payment_id ?? []);
  if (new Set(names).size < names.length) faults.push('two transactions have one id of the provider');
  if (moved.length !== own.filter(took).length) {
    faults.push('the provider moved money for an unknown transaction');
  }
  if (moved.filter((one) => one.startsWith('pay')).length > 1) faults.push('the payer was charged twice');
  return faults;
}

/** Compares the books with the provider's. */
function faultsOfBooks(payment: PaymentRow, rows: readonly Row[], provider: LedgerProvider): string[] {
  const faults: string[] = [];
  const base = rows.find(({ type }) => type === 'PURCHASE' || type === 'AUTHORIZE');
  const isCharged = base && provider.moved.includes(`pay ${base.id}`);
  const book = isCharged ? provider.bookOf(base.id) : undefined;
  const compare = (what: string, ours: unknown, theirs: unknown) => {
    if (ours !== theirs) faults.push(`${what}: here ${ours}, at the provider ${theirs}`);
  };
  compare('refunded', BigInt(payment.refunded), book?.refunded ?? 0n);
  // The column has the sum of the captures; a purchase is captured at once.
  if (base?.type === 'AUTHORIZE') compare('captured', BigInt(payment.captured), book?.captured ?? 0n);
  compare('released', payment.released, book?.released ?? false);
  for (const [type, theirs] of [
    ['CAPTURE', book?.outside.captured],
    ['REFUND', book?.outside.refunded],
  ] as const) {
    const outside = rows.filter((row) => row.is_outside && row.type === type && row.status === 'SUCCEEDED');
    const ours = outside.reduce((sum, { amount }) => sum + BigInt(amount), 0n);
    compare(`${type} by the merchant at the provider itself`, ours, theirs ?? 0n);
  }
  if (payment.open_operation !== null) faults.push('the payment still has an open operation');
  return faults;
}

/**
 * Finds faults in a payment's records, in the order of its events: each record must show a change, and final statuses
 * must not change.
 */
function faultsOfHistory(records: readonly Payment[]): string[] {
  const faults: string[] = [];
  const final = new Map<string, Transaction_Status>();
  let before = '';
  for (const { status, transactions, transactionsHistory } of records) {
    const shown = JSON.stringify([status, transactionsHistory.map((one) => [one.id, one.status])]);
    // A look-up that overlapped the creation of a code shows the code again.
    const isCodeAgain = shown === before && status === Payment_Status.READY_TO_PAY;
    if (shown === before && !isCodeAgain) faults.push(`an event shows no change: ${Payment_Status[status]}`);
    // A dispute that does not wait for an open operation shows it first; the operation's own event then adds nothing.
    before = transactions?.type === Transaction_Type.CHARGEBACK ? '' : shown;
    for (const one of transactionsHistory) {
      const known = final.get(one.id);
      // Money that comes after the end is accepted.
      const isLate = known === Transaction_Status.EXPIRED && one.status === Transaction_Status.SUCCEEDED;
      if (known !== undefined && known !== one.status && !isLate) {
        faults.push(`${Transaction_Status[known]} became ${Transaction_Status[one.status]}`);
      }
      if (!OPEN.has(one.status)) final.set(one.id, one.status);
    }
  }
  return faults;
}

const OPEN: ReadonlySet<Transaction_Status> = new Set([
  Transaction_Status.CREATED,
  Transaction_Status.PENDING,
]);
