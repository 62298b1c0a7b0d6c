import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { repeat } from '#src/repeat.ts';
import {
  type AskableConnection,
  countOpenAttempts,
  countOpenLater,
  type LeasedCheck,
  type OpenAttempts,
  type OpenLater,
  postponeCheck,
  takeUnaskable,
} from '#src/store/engine/checks.ts';
import { type WriteDeps, writeReport } from '../write-change.ts';

/** Dependencies of watchOpenOutcomes. */
export type OpenOutcomesDeps = WriteDeps & {
  /** Connections through which an outcome can be learned, by id. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  readonly openOutcomes: OpenOutcomesObserver;
};

/** Observer of open outcomes, for metrics and logs. */
export type OpenOutcomesObserver = {
  counted(outcomes: OpenOutcomes): void;
  /**
   * Called after startup, after each reload of the catalogue, and when the connections with outcomes that cannot be
   * looked up change.
   */
  unaskable(outcomes: UnaskableOutcomes): void;
  failed(error: unknown): void;
};

/** Unknown outcomes. */
export type OpenOutcomes = {
  /** Includes requests in progress; counted up to 100,000. */
  readonly open: number;
  /** Age of the oldest, in seconds. */
  readonly oldestS: number;
  readonly unaskable: readonly UnaskableOutcomes[];
  readonly followUps: readonly OpenFollowUpKind[];
};

/** The open follow-ups of one kind. */
export type OpenFollowUpKind = {
  /** `payer`: a payer was redirected, or has returned and the provider has yet to confirm. */
  readonly kind: 'capture' | 'cancel' | 'refund' | 'payer';
  /** Includes requests in progress; counted up to 100,000. */
  readonly open: number;
  /** Age of the oldest, in seconds. */
  readonly oldestS: number;
};

/** Open outcomes of one connection that this replica cannot look up. Their payments stay PENDING. */
export type UnaskableOutcomes = {
  readonly connectionId: string;
  readonly reason: 'no_connection' | 'other_account' | 'no_look_up';
  /** The connection's identity when the attempts were made. */
  readonly identity: string;
  readonly open: number;
};

/** A watch over open outcomes. */
export type OpenOutcomesWatch = {
  /**
   * Counts immediately and reports all outcomes that cannot be looked up, even those reported before. Never rejects.
   */
  look(): Promise<readonly UnaskableOutcomes[]>;
  stop(): Promise<void>;
};

const COUNT_LIMIT = 100_000;
const COUNT_EVERY_MS = 12_500;

/**
 * Counts open outcomes periodically, even when the checker is busy, and reports those that this replica cannot look up:
 * their connection is not in the catalogue, now points to a different account, or has no look-up. A different account
 * is never queried about them.
 */
export function watchOpenOutcomes(
  deps: OpenOutcomesDeps,
  { everyMs = COUNT_EVERY_MS }: { readonly everyMs?: number } = {},
): OpenOutcomesWatch {
  const stop = new AbortController();
  let reported = '';

  async function count(always: boolean): Promise<readonly UnaskableOutcomes[]> {
    try {
      const attempts = await countOpenAttempts(deps.database, COUNT_LIMIT);
      const followUps = await countOpenLater(deps.database, COUNT_LIMIT);
      const unaskable = unaskableOf(attempts, deps.connections());
      deps.openOutcomes.counted({ ...totalOf(attempts), unaskable, followUps: followUpKinds(followUps) });
      const kinds = unaskable.map(({ connectionId, identity, reason }) => [connectionId, identity, reason]);
      if (always || JSON.stringify(kinds) !== reported) unaskable.forEach(deps.openOutcomes.unaskable);
      reported = JSON.stringify(kinds);
      if (unaskable.length > 0) await answerUnaskable(deps, stop.signal);
      return unaskable;
    } catch (error) {
      deps.openOutcomes.failed(error);
      return [];
    }
  }

  const { failed } = deps.openOutcomes;
  const loop = repeat(() => count(false), { intervalMs: everyMs, isFirstLater: true, onError: failed });

  return {
    look: () => count(true),
    async stop() {
      stop.abort();
      await loop.stop();
    },
  };
}

/** Returns the open outcomes that this replica cannot look up. */
export function unaskableOf(
  attempts: readonly OpenAttempts[],
  connections: ReadonlyMap<string, ProviderConnection>,
): readonly UnaskableOutcomes[] {
  return attempts.flatMap(({ connectionId, identity, open, due }): UnaskableOutcomes[] => {
    const connection = connections.get(connectionId);
    const reported = { connectionId, identity };
    if (!connection) return [{ ...reported, reason: 'no_connection', open }];
    if (identity !== connection.identity) {
      return [{ ...reported, reason: 'other_account', open }];
    }
    // An attempt that is not yet due and has had no write belongs to a request in progress.
    return connection.lookUp || due === 0 ? [] : [{ ...reported, reason: 'no_look_up', open: due }];
  });
}

function totalOf(counts: readonly { readonly open: number; readonly oldestS: number }[]) {
  return {
    open: counts.reduce((sum, { open }) => sum + open, 0),
    oldestS: Math.max(0, ...counts.map(({ oldestS }) => oldestS)),
  };
}

const KINDS: Readonly<Record<OpenLater['type'], OpenFollowUpKind['kind']>> = {
  CAPTURE: 'capture',
  CANCEL: 'cancel',
  REFUND: 'refund',
  PURCHASE: 'payer',
  AUTHORIZE: 'payer',
  VERIFY: 'payer',
};

/** Returns every kind, even those with nothing open, because an unset gauge keeps its last value. */
function followUpKinds(found: readonly OpenLater[]): OpenFollowUpKind[] {
  return [...new Set(Object.values(KINDS))].map((kind) => ({
    kind,
    ...totalOf(found.filter(({ type }) => KINDS[type] === kind)),
  }));
}

/** Explains why outcomes cannot be looked up, and what to do. */
export function describeUnaskable({ connectionId, reason, identity, open }: UnaskableOutcomes): string {
  const begun = ` (${identity})`;
  const why = {
    no_connection: `the catalogue has no such connection${begun}; add it back so that they can be looked up`,
    other_account: `the connection now points to a different account than when these transactions began${begun}; point it back at the old account, and add a separate connection for the other`,
    no_look_up:
      'its provider offers no look-up, and no notification has reported them yet; if none does, settle them with the provider',
  };
  return `${open} unknown outcomes at connection ${connectionId} cannot be looked up, and their payments stay PENDING: ${why[reason]}`;
}

/** Lists the connections whose transactions this replica checks, each with its account. */
function askableConnections(connections: ReadonlyMap<string, ProviderConnection>): AskableConnection[] {
  return [...connections].map(([connectionId, { identity }]) => ({ connectionId, identity }));
}

/**
 * Age at which a due attempt counts as unclaimed. A replica that can query the provider claims a due attempt within
 * seconds.
 */
const NOBODY_ASKS_AFTER_S = 30;
const ANSWER_LEASE_S = 30;
const NOBODY_KNOWS: Outcome = {
  kind: 'unknown',
  detail: 'no replica can query the provider',
  providerData: undefined,
};

/**
 * Stores a PENDING response for payments whose process died before it responded, if no replica can query their
 * provider; otherwise their keys would stay in progress forever. The payments stay due for a replica that can query it.
 */
export async function answerUnaskable(deps: OpenOutcomesDeps, stop?: AbortSignal): Promise<void> {
  const leased = await takeUnaskable(deps.database, askableConnections(deps.connections()), {
    dueForS: NOBODY_ASKS_AFTER_S,
    leaseS: ANSWER_LEASE_S,
  });
  const answer = async (one: LeasedCheck) => {
    const { transactionId } = one;
    const report = { kind: 'outcome', transactionId, outcome: NOBODY_KNOWS, pauseS: 0 } as const;
    const written = await writeReport(deps, one, report, stop);
    if (typeof written === 'string') await postponeCheck(deps.database, one, 0);
  };
  await Promise.all(leased.map((one) => answer(one).catch(deps.openOutcomes.failed)));
}
