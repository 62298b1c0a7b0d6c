import { type Payment, Payment_Status, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { createPayment } from '#src/payments/create/create-payment.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { LedgerProvider } from '../payments/ledger-provider.ts';
import type { OperatedPayments } from '../payments/operated-payments.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Tables } from '../support/tables.ts';

type Deps = OperatedPayments['deps'];
type Row = { readonly id: string; readonly type: string; readonly status: string };

/**
 * Compares the payment with its provider's ledger.
 *
 * @param again repeats the call that made the payment.
 * @throws Error that lists the differences.
 */
export async function judge(
  deps: Deps,
  tables: Tables,
  provider: LedgerProvider,
  responses: readonly string[],
  again: () => ReturnType<typeof createPayment>,
): Promise<void> {
  const faults: string[] = [];
  const expect = (holds: boolean, what: string) => void (holds || faults.push(what));
  const [payment] = await tables.query(
    `SELECT id, status, captured_minor_units AS captured, refunded_minor_units AS refunded, open_operation,
       event_sequence FROM payment`,
  );
  const rows = (await tables.query('SELECT id, type, status FROM transaction')) as unknown as Row[];
  const took = (id: string) => provider.moved.some((one) => one.endsWith(id));
  for (const { id, type, status } of rows) {
    expect(took(id) === (status === 'SUCCEEDED'), `${type} is ${status}, and at the provider ${took(id)}`);
  }
  expect(
    provider.moved.length === rows.filter(({ id }) => took(id)).length,
    'the provider moved money for an unknown transaction',
  );
  expect(provider.moved.filter((one) => one.startsWith('pay')).length <= 1, 'the payer was charged twice');
  if (payment) {
    const base = rows.find(({ type }) => type === 'PURCHASE');
    const book = base && took(base.id) ? provider.bookOf(base.id) : undefined;
    expect(
      BigInt(payment.refunded as string) === (book?.refunded ?? 0n),
      'the refunded amount differs from the provider',
    );
    const captures = rows.filter(({ type, status }) => type === 'CAPTURE' && status === 'SUCCEEDED');
    expect(
      captures.length === 0 || book?.captured === BigInt(payment.captured as string),
      'the captured amount differs from the provider',
    );
    expect(payment.open_operation === null, 'the payment still has an open operation');
    const shown = await getPayment(deps, String(payment.id), {
      accountId: ACCOUNT_ONE,
      secretPresented: true,
    } as never);
    for (const { id, status } of shown.transactionsHistory) {
      const row = rows.find((one) => one.id === id);
      expect(row !== undefined, `the record shows a transaction that is not stored: ${status}`);
    }
    const events = await tables.query('SELECT sequence, record FROM event ORDER BY sequence');
    faults.push(...faultsOfHistory(events.map(({ record }) => decodeRecord(record as Buffer))));
    const sequences = events.map(({ sequence }) => Number(sequence)).join();
    const due = Array.from({ length: Number(payment.event_sequence) }, (_, i) => i + 1).join();
    expect(sequences === due, `events ${sequences} of ${due}`);
    const replay = `${restBody(await again())}`;
    for (const response of responses) expect(response === replay, 'the repeat got a different response');
  }
  if (faults.length > 0) throw new Error(faults.join('; '));
}

/**
 * Finds faults in a payment's records, in the order of its events: each record must show a change, and final statuses
 * must not change.
 */
function faultsOfHistory(records: readonly Payment[]): string[] {
  const faults: string[] = [];
  const final = new Map<string, Transaction_Status>();
  let before = '';
  for (const { status, transactionsHistory } of records) {
    const shown = JSON.stringify([status, transactionsHistory.map((one) => [one.id, one.status])]);
    if (shown === before) faults.push(`an event shows no change: ${Payment_Status[status]}`);
    before = shown;
    for (const one of transactionsHistory) {
      const known = final.get(one.id);
      if (known !== undefined && known !== one.status) {
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
