import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { listAccounts } from '#src/store/tables/accounts.ts';
import { type DifferenceKind, storeDifferences } from '#src/store/tables/settlement-differences.ts';
import { LINES_AT_ONCE, unsettledMovements } from '#src/store/tables/settlement-matches.ts';
import { noteCompared, readCoverage } from '#src/store/tables/settlement-progress.ts';
import { inWords } from './find-differences.ts';
import type { SettledAccount } from './settled-connection.ts';

/**
 * Finds successes that no report settles, although reports with later lines, by more than the provider's window, were
 * imported. Successes in the first window of the reports are left out: an earlier report may have them.
 *
 * Each success is compared once; a later line that settles it ends its difference.
 */
export async function findMissing(database: Database, { identity, windowMs }: SettledAccount): Promise<void> {
  const covered = await readCoverage(database, identity);
  if (!covered?.from || !covered.until) return;
  const begin = covered.from.getTime() + windowMs;
  const from = new Date(Math.max(begin, covered.comparedUntil?.getTime() ?? begin));
  const until = new Date(covered.until.getTime() - windowMs);
  if (until <= from) return;
  for (const { id } of await listAccounts(database)) {
    await findInAccount(database, id, identity, { from, until });
  }
  await noteCompared(database, identity, until, covered.from);
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
