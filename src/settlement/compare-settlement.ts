import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import {
  type DifferenceKind,
  type FoundDifference,
  type MatchedRow,
  matchedRows,
  openSubjects,
  storeDifferences,
} from '#src/store/tables/settlement-differences.ts';
import { LINES_AT_ONCE, type LineResult, type UnmatchedFile } from '#src/store/tables/settlement-matches.ts';
import { type PayoutSum, payoutsOfFile, sumPayouts } from '#src/store/tables/settlement-payouts.ts';
import { countAlarm } from '#src/store/tables/settlement-progress.ts';
import { checkPayout, findDifferences } from './find-differences.ts';
import type { SettledAccount } from './settled-connection.ts';

/**
 * Finds the differences of the transactions and lines that a batch of lines is about, with all lines that were imported
 * before, and ends the differences that the batch explains.
 */
export async function compareSettlement(
  database: Database,
  account: SettledAccount,
  results: readonly LineResult[],
): Promise<void> {
  const { identity } = account;
  const transactions = results.flatMap(({ transaction }) =>
    typeof transaction === 'string' ? [] : [transaction],
  );
  let isAlarming = false;
  for (const [accountId, own] of Map.groupBy(transactions, (one) => one.accountId)) {
    const ids = [...new Set(own.map(({ id }) => id))];
    const found = await compareTransactions(database, accountId, account, ids);
    isAlarming ||= found.some(({ kind }) => kind === ALARMING);
  }
  if (isAlarming) await countAlarm(database, identity);
  await noteUnknown(database, identity, results);
}

/** The kind of differences that raise an alarm. */
export const ALARMING: DifferenceKind = 'status_differs';
/** Maximum number of alarming differences that are compared again, from each node of a distributed database. */
const MAX_AGAIN = 1_000;

/** Compares again what raises alarms: the transaction may have changed. */
export async function compareAlarming(database: Database, account: SettledAccount): Promise<void> {
  await compareAgain(database, account, ALARMING, MAX_AGAIN);
}

/**
 * Compares again the transactions with unexpected fees, the newest: the agreed fees may have changed.
 *
 * @param limit from each node of a distributed database.
 */
export async function compareFees(database: Database, account: SettledAccount, limit: number): Promise<void> {
  const found = await compareAgain(database, account, 'fee_unexpected', limit);
  if (found.has(ALARMING)) await countAlarm(database, account.identity);
}

/** @returns the kinds of the differences that are there. */
async function compareAgain(
  database: Database,
  account: SettledAccount,
  kind: DifferenceKind,
  limit: number,
): Promise<ReadonlySet<DifferenceKind>> {
  const kinds = new Set<DifferenceKind>();
  const open = await openSubjects(database, account.identity, [kind], limit);
  for (const [accountId, own] of Map.groupBy(open, (one) => one.accountId)) {
    const ids = own.map(({ subject }) => subject);
    for (let at = 0; at < ids.length; at += LINES_AT_ONCE) {
      const some = ids.slice(at, at + LINES_AT_ONCE);
      for (const one of await compareTransactions(database, accountId, account, some)) kinds.add(one.kind);
    }
  }
  return kinds;
}

/**
 * Finds the differences of transactions of an account, and ends those that are no longer there.
 *
 * @returns the differences that are there.
 */
export async function compareTransactions(
  database: Database,
  accountId: string,
  { identity, windowMs, agreedFees }: SettledAccount,
  ids: readonly string[],
): Promise<readonly FoundDifference[]> {
  const rows = await matchedRows(database, accountId, identity, ids);
  const found: FoundDifference[] = [];
  for (const [subject, own] of Map.groupBy(rows, ({ id }) => id)) {
    const [transaction] = own as [MatchedRow, ...MatchedRow[]];
    const lines = own.map((row) => ({ ...row, minorUnits: row.lineMinorUnits, currency: row.lineCurrency }));
    const { connectionId, paymentId } = transaction;
    const fees = agreedFees.get(connectionId) ?? [];
    for (const one of findDifferences(transaction, lines, { windowMs, fees }))
      found.push({ ...one, subject, connectionId, paymentId });
  }
  await storeDifferences(database, accountId, identity, { subjects: ids, found });
  return found;
}

/** Maximum number of payouts that are added up at once: a payout may have many thousands of lines. */
const PAYOUTS_AT_ONCE = 20;

const subjectOf = ({ reference, currency }: PayoutSum) => `${reference} ${currency}`;

/** Compares the payouts that a complete file has lines of, with all lines that were imported before. */
export async function comparePayouts(
  database: Database,
  identity: string,
  file: UnmatchedFile,
): Promise<void> {
  const { connectionId } = file;
  const references = await payoutsOfFile(database, file.id);
  for (let at = 0; at < references.length; at += PAYOUTS_AT_ONCE) {
    const sums = await sumPayouts(database, identity, references.slice(at, at + PAYOUTS_AT_ONCE));
    const found = sums.flatMap((sum): FoundDifference[] => {
      const difference = checkPayout(sum);
      return difference
        ? [{ ...difference, subject: subjectOf(sum), connectionId, paymentId: undefined }]
        : [];
    });
    await storeDifferences(database, NIL_UUID, identity, { subjects: sums.map(subjectOf), found });
  }
}

/**
 * Stores the lines for which no transaction, or no certain one, was found, and ends the differences about lines that have
 * one by now.
 */
async function noteUnknown(
  database: Database,
  identity: string,
  results: readonly LineResult[],
): Promise<void> {
  const kinds = { unmatched: 'unknown_line', ambiguous: 'ambiguous_line' } as const;
  const found = results.flatMap(({ line, transaction }): FoundDifference[] => {
    if (transaction !== 'unmatched' && transaction !== 'ambiguous') return [];
    const { connectionId, kind, providerReference = 'no id', key: subject } = line;
    const detail = `a ${kind} with the provider's id ${providerReference}`;
    return [{ kind: kinds[transaction], subject, connectionId, paymentId: undefined, detail }];
  });
  const subjects = results
    .filter(
      ({ line, transaction }) =>
        line.result !== undefined || (typeof transaction === 'string' && transaction in kinds),
    )
    .map(({ line }) => line.key);
  if (subjects.length > 0) await storeDifferences(database, NIL_UUID, identity, { subjects, found });
}
