import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { listAccounts } from '#src/store/tables/accounts.ts';
import { type Coverage, noteCompared, readCoverage } from '#src/store/tables/settlement-coverage.ts';
import { type DifferenceKind, storeDifferences } from '#src/store/tables/settlement-differences.ts';
import { LINES_AT_ONCE, unsettledMovements } from '#src/store/tables/settlement-matches.ts';
import { inWords } from './find-differences.ts';
import type { SettledAccount } from './settled-connection.ts';

/**
 * Finds successes that no report settles, although reports of one kind with later lines, by more than their window, were
 * imported. Successes in the first window of the reports are left out: an earlier report may have them.
 *
 * Each success is compared once with each kind of report; a later line that settles it ends its difference.
 */
export async function findMissing(database: Database, account: SettledAccount): Promise<void> {
  for (const covered of await readCoverage(database, account.identity)) {
    await findCovered(database, account, covered);
  }
}

async function findCovered(
  database: Database,
  { identity, windowMs: longestMs, reportWindowsMs = {} }: SettledAccount,
  covered: Coverage,
): Promise<void> {
  const windowMs = reportWindowsMs[covered.report] ?? longestMs;
  const begin = covered.from.getTime() + windowMs;
  const from = new Date(Math.max(begin, covered.comparedUntil?.getTime() ?? begin));
  const until = new Date(covered.until.getTime() - windowMs);
  if (until <= from) return;
  for (const { id } of await listAccounts(database)) {
    await findInAccount(database, id, identity, { from, until });
  }
  await noteCompared(database, identity, covered, until);
}

async function findInAccount(
  database: Database,
  accountId: string,
  identity: string,
  time: { readonly from: Date; readonly until: Date },
): Promise<void> {
  const kind: DifferenceKind = 'missing_at_provider';
  for (let after: string | undefined = NIL_UUID; after !== undefined; ) {
    const page = await unsettledMovements(database, accountId, identity, { ...time, after });
    const found = page.map(({ id: subject, connectionId, paymentId, type, succeededAt, ...money }) => {
      const detail = `no line settles the ${type} of ${inWords(money)} of ${succeededAt.toISOString()}`;
      return { kind, subject, connectionId, paymentId, detail };
    });
    const subjects = found.map(({ subject }) => subject);
    if (found.length > 0) await storeDifferences(database, accountId, identity, { subjects, found });
    after = page.length === LINES_AT_ONCE ? page.at(-1)?.id : undefined;
  }
}
