import { AGAIN, type Loop, type Rest, repeat } from '#src/repeat.ts';
import { ALARMING, compareAlarming } from '#src/settlement/compare-settlement.ts';
import { matchSettlement } from '#src/settlement/match-settlement.ts';
import { type SettledCatalogue, settledAccount } from '#src/settlement/settled-connection.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type DifferenceAlarm, openSubjects, takeAlarms } from '#src/store/tables/settlement-differences.ts';
import { dueSettlement, noteRaised } from '#src/store/tables/settlement-progress.ts';

const INTERVAL_MS = 60_000;
/** Maximum number of alarms that are raised at once. */
const MAX_ALARMS = 10_000;

/** Dependencies of the work on settlement reports. */
export type SettlementDeps = {
  readonly database: Database;
  readonly openedCatalogue: () => SettledCatalogue;
  /** Called once, by one replica, for each payment that a provider settled against the record. */
  readonly onSettlementAlarm: (alarm: DifferenceAlarm) => void;
};

/**
 * Starts to match, once a minute or when woken, imported reports that nobody matches, and to raise the alarms that
 * matching found, here or in a command. Without either, it reads a row for each account at a provider.
 */
export function startSettlement(
  deps: SettlementDeps,
  { onError }: { readonly onError: (error: unknown) => void },
): Loop {
  return repeat((stop) => followSettlement(deps, stop), { intervalMs: INTERVAL_MS, onError });
}

/**
 * Does once what is due, account by account; a failure at one keeps no other waiting. Alarms are raised after each
 * few thousand lines, so a long report delays none.
 *
 * @returns AGAIN if it matched lines: more may have been imported meanwhile.
 * @throws the first failure, after the rest is done.
 */
export async function followSettlement(deps: SettlementDeps, stop?: AbortSignal): Promise<Rest | undefined> {
  const { database } = deps;
  const options = { onLines: () => raiseDue(deps), ...(stop && { stop }) };
  const failures: unknown[] = [];
  let hasMatched = false;
  for (const { identity, isMatchDue } of await dueSettlement(database)) {
    const account = settledAccount(deps.openedCatalogue(), identity);
    if (!isMatchDue || !account) continue;
    await matchSettlement(database, account, options).catch((error) => failures.push(error));
    if (stop?.aborted) return undefined;
    hasMatched = true;
  }
  await raiseDue(deps);
  if (failures.length > 0) throw failures[0];
  return hasMatched ? AGAIN : undefined;
}

/** Raises the alarms that are due at all accounts. */
async function raiseDue(deps: SettlementDeps): Promise<void> {
  const { database } = deps;
  for (const { identity, alarms } of await dueSettlement(database)) {
    if (alarms === undefined) continue;
    const account = settledAccount(deps.openedCatalogue(), identity);
    if (account) await compareAlarming(database, account);
    await raiseAlarms(deps, identity);
    await noteRaised(database, identity, alarms);
  }
}

async function raiseAlarms({ database, onSettlementAlarm }: SettlementDeps, identity: string): Promise<void> {
  const open = await openSubjects(database, identity, [ALARMING], MAX_ALARMS);
  for (const [accountId, own] of Map.groupBy(open, (one) => one.accountId)) {
    const subjects = own.map(({ subject }) => subject);
    const alarms = await takeAlarms(database, accountId, identity, { kind: ALARMING, subjects });
    for (const alarm of alarms) onSettlementAlarm(alarm);
  }
}
