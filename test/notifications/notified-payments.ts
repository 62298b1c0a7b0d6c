import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type CheckerDeps, checkDue } from '#src/payments/check/checker.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { payments } from '../payments/operated-payments.ts';
import { bringNews, type Notified } from '../support/bring-news.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { earlier } from '../support/tables.ts';

/* Payments that notifications report on. */

/** Longer than any lease of these payments. */
export const LEASE_S = 600;

/** Every look-up, in order. */
export let asked: LookUp[];
/** The result of each settled notification, in order. */
export let results: string[];
export let failures: unknown[];

/** Clears the recorded look-ups, results and failures. */
export function startOver(): void {
  [asked, results, failures] = [[], [], []];
}

type Says = (query: LookUp) => Promise<Outcome>;

/** Returns the actual state at the provider. */
export const saysWhatIsSo: Says = async (query) =>
  (await payments.provider.connection.lookUp?.(query)) ?? UNKNOWN;

/** Returns a process that checks everything due, and records each look-up. */
export function checkAt(lookUp = saysWhatIsSo): () => Promise<number> {
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    lookUp: (query) => {
      asked.push(query);
      return lookUp(query);
    },
  };
  const deps: CheckerDeps = {
    ...payments.deps,
    connections: () => new Map([['ledger', connection]]),
    settled: (_id, result) => results.push(result),
    checked: { learned: () => {}, failed: (error) => failures.push(error) },
  };
  return () => checkDue(deps);
}

/** Receives the given number of notifications about a payment. */
export async function notify({ transactions }: Payment, times = 1, told: Notified = {}): Promise<void> {
  for (let i = 0; i < times; i++) {
    await bringNews(payments.deps, 'ledger', { transactionId: transactions?.id, ...told });
  }
}

/** Moves the database's clock ahead by the given seconds, by setting every stored time back. */
export async function pass(seconds: number): Promise<void> {
  const back = (column: string) => `${column} = ${earlier(column, `${seconds} s`)}`;
  await payments.tables.query(`UPDATE transaction SET ${back('check_at')}, ${back('created_at')}`);
  await payments.tables.query(
    `UPDATE notification SET ${back('received_at')}, ${back('check_at')}, ${back('settled_at')}`,
  );
}

/** Returns the number of notifications that are not settled. */
export const queued = async (): Promise<number> =>
  (await payments.tables.query('SELECT 1 FROM notification WHERE settled_at IS NULL')).length;

/** Returns the seconds until a payment's own transaction is checked, or null if no check is scheduled. */
export const dueInS = async ({ transactions }: Payment) =>
  (
    await payments.tables.query(
      'SELECT extract(epoch FROM check_at - now())::float8 AS in_s FROM transaction WHERE id = $1',
      [transactions?.id],
    )
  )[0]?.in_s;

export const statusOf = async ({ id }: Payment) =>
  Payment_Status[(await getPayment(payments.deps, id, payments.caller())).status];

export const pays = ({ transactions }: Payment) => payments.provider.payerPays(transactions?.id ?? '');
