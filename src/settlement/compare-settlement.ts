import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import {
  type FoundDifference,
  type MatchedRow,
  matchedRows,
  storeDifferences,
  sumPayouts,
} from '#src/store/tables/settlement-differences.ts';
import type { LineResult } from '#src/store/tables/settlement-matches.ts';
import { checkPayout, findDifferences } from './find-differences.ts';

/**
 * Finds the differences of the transactions, payouts and lines that a batch of lines is about, with all lines that were
 * imported before, and ends the differences that the batch explains.
 */
export async function compareSettlement(
  database: Database,
  identity: string,
  results: readonly LineResult[],
): Promise<void> {
  const transactions = results.flatMap(({ transaction }) =>
    typeof transaction === 'string' ? [] : [transaction],
  );
  for (const [accountId, own] of Map.groupBy(transactions, (one) => one.accountId)) {
    const ids = [...new Set(own.map(({ id }) => id))];
    await compareTransactions(database, accountId, identity, ids);
  }
  await comparePayouts(database, identity, results);
  await noteUnknown(database, identity, results);
}

/** Finds the differences of transactions of an account, and ends those that are no longer there. */
export async function compareTransactions(
  database: Database,
  accountId: string,
  identity: string,
  ids: readonly string[],
): Promise<void> {
  const rows = await matchedRows(database, accountId, identity, ids);
  const found: FoundDifference[] = [];
  for (const [subject, own] of Map.groupBy(rows, ({ id }) => id)) {
    const [transaction] = own as [MatchedRow, ...MatchedRow[]];
    const lines = own.map((row) => ({ ...row, minorUnits: row.lineMinorUnits, currency: row.lineCurrency }));
    const { connectionId, paymentId } = transaction;
    for (const one of findDifferences(transaction, lines))
      found.push({ ...one, subject, connectionId, paymentId });
  }
  await storeDifferences(database, accountId, identity, { subjects: ids, found });
}

async function comparePayouts(
  database: Database,
  identity: string,
  results: readonly LineResult[],
): Promise<void> {
  const references = [...new Set(results.flatMap(({ line }) => line.payoutReference ?? []))];
  if (references.length === 0) return;
  const connectionId = results[0]?.line.connectionId ?? '';
  const sums = (await sumPayouts(database, identity, references)).map((sum) => ({
    ...sum,
    subject: `${sum.reference} ${sum.currency}`,
  }));
  const found = sums.flatMap((sum): FoundDifference[] => {
    const difference = checkPayout(sum);
    return difference ? [{ ...difference, subject: sum.subject, connectionId, paymentId: undefined }] : [];
  });
  const subjects = sums.map(({ subject }) => subject);
  await storeDifferences(database, NIL_UUID, identity, { subjects, found });
}

/** Stores the lines for which no transaction, or no certain one, was found. */
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
  if (found.length === 0) return;
  await storeDifferences(database, NIL_UUID, identity, {
    subjects: found.map(({ subject }) => subject),
    found,
  });
}
