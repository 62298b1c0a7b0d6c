import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { beforeEach } from 'vitest';
import { type Payment, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { CheckerDeps } from '#src/payments/check/checker.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { type Reported, type WriteDeps, writeOwnOutcome, writeReport } from '#src/payments/write-change.ts';
import { findByKey } from '#src/store/tables/payment-keys.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import type { OpenAttempt } from '../support/claimed-rows.ts';
import { coreDeps } from '../support/core-deps.ts';
import { database, onOwnDatabase as openOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { silentConnection } from '../support/silent-connection.ts';
import { RESPONSES, shownUnder } from '../support/stored-responses.ts';

export { database, tables };
/** Every look-up, in order. */
export let asked: LookUp[];
/** Every result that the checker reported to its observer. */
export let seen: string[];

/** Gives a file's tests their own database, empty before each test. */
export function onOwnDatabase(): void {
  openOwnDatabase({ empties: 'payment, transaction, vaulted_token, notification' });
  beforeEach(() => {
    [asked, seen] = [[], []];
  });
}

/** The checker at a provider with a constant answer. */
export function depsOf(says: Says): CheckerDeps {
  return depsWith({ scripted: connectionOf(says) });
}

type Says = Outcome | ((query: LookUp) => Promise<Outcome>);

/** A connection that offers look-ups. */
export function connectionOf(says: Says, over: Partial<ProviderConnection> = {}): ProviderConnection {
  return silentConnection({
    lookUp: async (query: LookUp) => {
      asked.push(query);
      return typeof says === 'function' ? says(query) : says;
    },
    ...over,
  });
}

/** The checker with these connections. */
export function depsWith(connections: Readonly<Record<string, ProviderConnection>>): CheckerDeps {
  const deps = coreDeps({
    ...{ database, responses: RESPONSES, connections: new Map(Object.entries(connections)) },
  });
  return {
    ...deps,
    // No lease ends during a look-up, however busy the machine is: a second look-up would follow.
    schedule: { leaseMarginMs: 60_000, firstCheckMs: 5_000, closingMarginMs: 10_000 },
    checked: {
      learned: (_about, result) => seen.push(typeof result === 'string' ? result : result.kind),
      failed: (error) => seen.push(String(error)),
    },
  };
}

export async function standing(attempt: OpenAttempt): Promise<Payment> {
  const record = await getPaymentRecord(database, ACCOUNT_ONE, attempt.paymentId);
  return decodeRecord(record ?? new Uint8Array());
}

export async function answerOf(attempt: OpenAttempt): Promise<string | undefined> {
  return shownUnder(await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey));
}

export async function rowOf(attempt: OpenAttempt): Promise<Record<string, unknown>> {
  const [row] = await tables.query(
    `SELECT p.status, t.status AS transaction_status, t.fence,
      extract(epoch FROM t.check_at - now())::float8 AS due_in_s
      FROM payment p JOIN transaction t ON t.account_id = p.account_id AND t.payment_id = p.id WHERE p.id = $1`,
    [attempt.paymentId],
  );
  return row ?? {};
}

/**
 * Runs a hook that has an attempt looked up again after a pause. @returns bounds of that pause, in
 * seconds: they differ by the time that this took on a busy machine.
 */
export async function pauseOf(attempt: OpenAttempt, work: () => Promise<unknown>) {
  const begunMs = performance.now();
  await work();
  const leastS = Number((await rowOf(attempt)).due_in_s);
  return { leastS, mostS: leastS + (performance.now() - begunMs) / 1_000 };
}

export async function rowsOf(attempts: readonly OpenAttempt[]): Promise<Record<string, unknown>[]> {
  const rows: Record<string, unknown>[] = [];
  for (const attempt of attempts) rows.push(await rowOf(attempt));
  return rows;
}

export async function openCount(): Promise<unknown> {
  const [row] = await tables.query(
    "SELECT count(*)::integer AS open FROM transaction WHERE check_at IS NOT NULL AND status = 'PENDING'",
  );
  return row?.open;
}

export const makeDue = () =>
  tables.query('UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL');

/**
 * Writes an outcome of an attempt as a process that holds an older token, or the last one.
 * @param fence the token: 0 for the process that claimed the attempt, which reads nothing.
 */
export function writeLate(
  deps: WriteDeps,
  attempt: OpenAttempt,
  fence: number,
  outcome: Outcome,
): Promise<Reported> {
  const { paymentId, transactionId, vaultedToken } = attempt;
  const leased = { accountId: ACCOUNT_ONE, paymentId, transactionId, fence };
  if (fence > 0) return writeReport(deps, leased, { kind: 'outcome', transactionId, outcome, pauseS: 5 });
  const record = fromBinary(PaymentSchema, toBinary(PaymentSchema, attempt.record));
  const claimed = {
    id: transactionId,
    vaultedToken,
    cardFingerprint: undefined,
    ...{ capture: false, methodKind: 'CARD' as const, awaitsPayer: false },
  } as const;
  return writeOwnOutcome(deps, { ...leased, version: 0, record, attempt: claimed, stepMs: 0 }, outcome);
}

/** Makes open requests appear to have been sent so many seconds ago, by the database's clock. */
export async function setAge(ageS: number): Promise<void> {
  // In UTC and with a parameter, because a distributed database refuses an update that depends on the session.
  const [row] = await tables.query(
    "SELECT (now() - make_interval(secs => $1)) AT TIME ZONE 'UTC' AS created_at",
    [ageS],
  );
  await tables.query(
    `UPDATE transaction SET created_at = $1::timestamp AT TIME ZONE 'UTC',
       payer_due_at = (payer_due_at AT TIME ZONE 'UTC' - (created_at AT TIME ZONE 'UTC' - $1::timestamp))
         AT TIME ZONE 'UTC'`,
    [row?.created_at],
  );
}
