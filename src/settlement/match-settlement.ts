import type { Database } from '#src/store/engine/database.ts';
import { type CoveredTime, extendCoverage } from '#src/store/tables/settlement-coverage.ts';
import { openSubjects } from '#src/store/tables/settlement-differences.ts';
import {
  accountsByDigits,
  findByOurIds,
  findByProviderIds,
  LINES_AT_ONCE,
  type LineResult,
  linesByKey,
  nextLines,
  type OpenLine,
  type SettledTransaction,
  storeMatches,
  storeResults,
  transactionsOf,
  unmatchedFiles,
} from '#src/store/tables/settlement-matches.ts';
import { finishMatching, leaseMatching } from '#src/store/tables/settlement-progress.ts';
import { chooseTransaction, movesTransaction } from './choose-transaction.ts';
import { compareAlarming, compareFees, comparePayouts, compareSettlement } from './compare-settlement.ts';
import { findMissing } from './find-missing.ts';
import type { SettledAccount } from './settled-connection.ts';

/** Number of lines by result. */
export type MatchCounts = {
  matched: number;
  /** No transaction of ours has their ids. */
  unmatched: number;
  /** Several transactions could be meant. */
  ambiguous: number;
  /** Fees, payouts and the like. */
  none_expected: number;
};

type MatchOptions = { readonly stop?: AbortSignal; readonly onLines?: () => Promise<void> };

/** Number of lines of unknown payments, the newest, that each import searches again. */
const SEARCHED_AGAIN = 10_000;

/**
 * Finds the transactions of all imported lines of an account at a provider that were not searched yet, also of earlier
 * imports that were killed, and again those of unknown payments. Only transactions of that account count. Then finds
 * the successes that no line settles.
 *
 * @param options.again number of lines of unknown payments to search again, and of unexpected fees to compare again, at the
 * most.
 * @param options.stop ends the work after the current lines; another run continues it.
 * @param options.onLines called after some lines are matched and compared; the next lines wait for it.
 */
export async function matchSettlement(
  database: Database,
  account: SettledAccount,
  options: MatchOptions & { readonly again?: number } = {},
): Promise<MatchCounts> {
  const { again = SEARCHED_AGAIN, stop, onLines } = options;
  const counts: MatchCounts = { matched: 0, unmatched: 0, ambiguous: 0, none_expected: 0 };
  const imports = await leaseMatching(database, account.identity);
  for (const file of await unmatchedFiles(database, account.identity)) {
    // Before its lines are matched, so what is interrupted is repeated.
    await comparePayouts(database, account.identity, file);
    for (;;) {
      if (stop?.aborted) return counts;
      const lines = await nextLines(database, file.id);
      if (lines.length === 0) break;
      for (const { transaction } of await match(database, account, lines))
        counts[typeof transaction === 'string' ? transaction : 'matched'] += 1;
      await onLines?.();
    }
  }
  counts.matched += await matchAgain(database, account, again, options);
  if (stop?.aborted) return counts;
  await compareAlarming(database, account);
  await compareFees(database, account, again);
  await findMissing(database, account);
  await finishMatching(database, account.identity, imports);
  return counts;
}

async function match(
  database: Database,
  account: SettledAccount,
  lines: readonly OpenLine[],
): Promise<LineResult[]> {
  const { identity } = account;
  const results = await search(database, account, lines);
  // The result comes last, so what is interrupted before is repeated.
  await storeMatches(database, identity, results);
  await compareSettlement(database, account, results);
  await extendCoverage(database, identity, coveredBy(lines));
  await leaseMatching(database, identity);
  await storeResults(database, identity, results);
  return results;
}

/** Returns the time that lines cover: that of payments alone, since a refund or dispute may have its payment's time. */
function coveredBy(lines: readonly OpenLine[]): CoveredTime[] {
  const payments = lines.filter(({ kind }) => kind === 'payment');
  return [...Map.groupBy(payments, ({ report }) => report)].flatMap(([report, own]) => {
    const times = own.flatMap(({ occurredAt }) => occurredAt?.getTime() ?? []).sort((a, b) => a - b);
    const [first, last] = [times[0], times.at(-1)];
    if (first === undefined || last === undefined) return [];
    return [{ report, from: new Date(first), until: new Date(last) }];
  });
}

/** Searches lines of unknown payments again. @returns the number of lines whose transaction was found. */
async function matchAgain(
  database: Database,
  account: SettledAccount,
  limit: number,
  { stop, onLines }: MatchOptions,
): Promise<number> {
  const open = await openSubjects(database, account.identity, ['unknown_line', 'ambiguous_line'], limit);
  let found = 0;
  for (let at = 0; at < open.length && !stop?.aborted; at += LINES_AT_ONCE) {
    const keys = open.slice(at, at + LINES_AT_ONCE).map(({ subject }) => subject);
    const lines = await linesByKey(database, account.identity, keys);
    const results = await match(database, account, lines);
    found += results.filter(({ transaction }) => typeof transaction !== 'string').length;
    await onLines?.();
  }
  return found;
}

async function search(
  database: Database,
  account: SettledAccount,
  lines: readonly OpenLine[],
): Promise<LineResult[]> {
  const { anchors, payments } = await findPayments(
    database,
    account,
    lines.filter(({ kind }) => movesTransaction(kind)),
  );
  return lines.map((line) => ({ line, transaction: resultOf(line, anchors.get(line.key) ?? [], payments) }));
}

function resultOf(
  line: OpenLine,
  anchors: readonly SettledTransaction[],
  payments: ReadonlyMap<string, readonly SettledTransaction[]>,
): LineResult['transaction'] {
  if (!movesTransaction(line.kind)) return 'none_expected';
  const { minorUnits, currency } = line;
  const amount = minorUnits === undefined || currency === undefined ? undefined : { minorUnits, currency };
  const found = [...new Set(anchors.map(({ paymentId }) => paymentId))].map(
    (id) => chooseTransaction({ ...line, amount }, payments.get(id) ?? []) ?? ('unmatched' as const),
  );
  return found.length > 1 ? 'ambiguous' : (found[0] ?? 'unmatched');
}

/**
 * Finds the transactions that the ids of lines name, by the key of the line, and the transactions of their payments, by
 * payment: by our id, and by the provider's only if ours names none.
 */
async function findPayments(
  database: Database,
  { identity, connectionIds }: SettledAccount,
  lines: readonly OpenLine[],
): Promise<{
  readonly anchors: ReadonlyMap<string, readonly SettledTransaction[]>;
  readonly payments: ReadonlyMap<string, readonly SettledTransaction[]>;
}> {
  const isHere = ({ connectionIdentity }: SettledTransaction) => connectionIdentity === identity;
  const anchors = new Map<string, readonly SettledTransaction[]>();
  const ids = [...new Set(lines.flatMap(({ ourId }) => ourId ?? []))];
  const ours = (await byOurIds(database, ids)).filter(isHere);
  const byId = new Map(ours.map((one) => [one.id, one]));
  for (const { key, ourId } of lines) {
    const own = ourId === undefined ? undefined : byId.get(ourId);
    if (own) anchors.set(key, [own]);
  }
  const rest = lines.filter(({ key }) => !anchors.has(key));
  const names = [...new Set(rest.flatMap(namesOf))];
  const named =
    names.length === 0 ? [] : (await findByProviderIds(database, connectionIds, names)).filter(isHere);
  const byName = Map.groupBy(named, ({ providerPaymentId }) => providerPaymentId);
  for (const line of rest) {
    const found = namesOf(line).map((name) => byName.get(name) ?? []);
    anchors.set(line.key, found.find((some) => some.length > 0) ?? []);
  }
  const known = new Set(ours.map(({ paymentId }) => paymentId));
  const others = await readPayments(
    database,
    named.filter(({ paymentId }) => !known.has(paymentId)),
  );
  return {
    anchors,
    payments: Map.groupBy([...ours, ...others.filter(isHere)], ({ paymentId }) => paymentId),
  };
}

/** The provider's ids of a line, the most precise first. */
function namesOf({ providerReference, disputeReference, parentReference }: OpenLine): string[] {
  return [providerReference, disputeReference, parentReference].filter((name) => name !== undefined);
}

async function byOurIds(database: Database, ids: readonly string[]): Promise<SettledTransaction[]> {
  if (ids.length === 0) return [];
  const byDigits = Map.groupBy(ids, (id) => id.slice(-6));
  const found: SettledTransaction[] = [];
  const accounts = await accountsByDigits(database, [...byDigits.keys()]);
  for (const [digits, own] of byDigits) {
    for (const accountId of accounts.get(digits) ?? []) {
      found.push(...(await findByOurIds(database, accountId, own)));
    }
  }
  return found;
}

/** Reads all transactions of the payments to which some transactions belong. */
async function readPayments(
  database: Database,
  anchors: readonly SettledTransaction[],
): Promise<SettledTransaction[]> {
  const all: SettledTransaction[] = [];
  for (const [accountId, own] of Map.groupBy(anchors, (one) => one.accountId)) {
    const ids = [...new Set(own.map(({ paymentId }) => paymentId))];
    all.push(...(await transactionsOf(database, accountId, ids)));
  }
  return all;
}
