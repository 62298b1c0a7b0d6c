import type { Bank, ProviderConnection } from '#src/connectors/port/connector.ts';

type Banks = readonly Bank[];

/** A list of banks, with the time at which it was asked for, in milliseconds of the process's clock. */
type Listed = { readonly banks: Banks; readonly atMs: number };

/** Lists that are this old are asked for again. */
const FRESH_MS = 3_600_000;
/** Lists that are this old are no longer used, even if the provider is away. */
const USABLE_MS = 24 * FRESH_MS;
/** Time until a provider that was away is asked again, so that no payer's page waits for it each time. */
const AWAY_MS = 30_000;

type Kept = { last?: Listed; asking?: Promise<void>; awayUntilMs: number };

/** The lists by connection and type. They end with their connection, which a new catalogue may replace. */
const kept = new WeakMap<ProviderConnection, Map<string, Kept>>();

/**
 * Returns the banks from which a payer of a local method must choose: a list that is at most an hour old or, if the
 * provider is away, at most a day.
 *
 * @param nowMs a steady clock, in milliseconds.
 * @returns undefined if there is no such list.
 */
export async function banksOf(
  connection: ProviderConnection,
  type: string,
  nowMs: () => number = () => performance.now(),
): Promise<Banks | undefined> {
  const byType = kept.get(connection) ?? new Map<string, Kept>();
  kept.set(connection, byType);
  const entry = byType.get(type) ?? { awayUntilMs: 0 };
  byType.set(type, entry);
  const isYounger = (ms: number) => entry.last !== undefined && nowMs() - entry.last.atMs < ms;
  if (!isYounger(FRESH_MS) && nowMs() >= entry.awayUntilMs) {
    entry.asking ??= ask(connection, type, entry, nowMs).finally(() => delete entry.asking);
    await entry.asking;
  }
  return isYounger(USABLE_MS) ? entry.last?.banks : undefined;
}

async function ask(
  { listBanks }: ProviderConnection,
  type: string,
  entry: Kept,
  nowMs: () => number,
): Promise<void> {
  const atMs = nowMs();
  try {
    const banks = await listBanks?.(type);
    if (banks) entry.last = { banks, atMs };
  } catch {
    entry.awayUntilMs = nowMs() + AWAY_MS;
  }
}
