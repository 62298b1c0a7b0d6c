import { type FollowDeps, startEnrollments } from '#src/customers/follow-enrollments.ts';
import { type Checker, type CheckerDeps, type Handed, startChecker } from '#src/payments/check/checker.ts';
import {
  type OpenOutcomesDeps,
  type OpenOutcomesWatch,
  type UnaskableOutcomes,
  watchOpenOutcomes,
} from '#src/payments/check/open-outcomes.ts';
import type { Loop } from '#src/repeat.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';
import { startWebhooks, type WebhookDeps, type Webhooks } from '#src/webhooks/start-webhooks.ts';
import { startAgeOut } from './age-out.ts';
import { type FetchDailyDeps, startDailyFetches } from './fetch-daily.ts';
import { type SettlementDeps, startSettlement } from './follow-settlement.ts';
import { startSearch } from './search-due-work.ts';
import { type ClockDeps, watchClock } from './watch-clock.ts';
import { startTotals } from './write-totals.ts';

/** Background work, and the functions that requests call to trigger it. */
export type Background = {
  /** Starts all background work. @returns the open outcomes that this replica cannot look up. */
  start(): Promise<readonly UnaskableOutcomes[]>;
  /** Relays events that were just added to the outbox. */
  readonly eventWritten: () => void;
  /** Sends a webhook's due deliveries now. */
  readonly wakeWebhook: (webhook: WebhookName) => void;
  /** Hands work to the checker. */
  readonly wakeChecker: (handed: Handed) => void;
  /** Looks for due enrollment checks now. */
  readonly wakeEnrollments: () => void;
  /** Matches the lines of settlement reports that are due now. */
  readonly wakeSettlement: () => void;
  /** Counts open outcomes again, for example after a reload. */
  readonly lookAtOpenOutcomes: () => void;
  /** Stops all background work. Resolves when the work in progress has ended. */
  stop(): Promise<void>;
};

/** Dependencies of the background work. */
export type BackgroundDeps = CheckerDeps &
  FollowDeps &
  OpenOutcomesDeps &
  ClockDeps &
  SettlementDeps &
  FetchDailyDeps & {
    readonly webhooks: WebhookDeps;
    readonly onSweepError: (error: unknown) => void;
    /** Pause between two searches for due work. */
    readonly intervalMs: number;
  };

/**
 * Creates the background work: the checker, wallet enrollments, the deletion of aged rows, hourly totals, the work on settlement
 * reports, the monitoring of open outcomes and of the clock, and webhooks.
 */
export function createBackground(deps: BackgroundDeps): Background {
  const { intervalMs } = deps;
  let loops: readonly Loop[] = [];
  let checker: Checker | undefined;
  let enrollments: Loop | undefined;
  let settlement: Loop | undefined;
  let openOutcomes: OpenOutcomesWatch | undefined;
  let webhooks: Webhooks | undefined;

  return {
    async start() {
      const { database, onSweepError: onError } = deps;
      settlement = startSettlement(deps, { onError });
      loops = [
        settlement,
        startAgeOut(database, { onError }),
        startTotals(database, { onError }),
        startDailyFetches(deps, { onError }),
        watchClock(deps),
      ];
      checker = startChecker(deps);
      enrollments = startEnrollments(deps);
      openOutcomes = watchOpenOutcomes(deps);
      const unaskable = await openOutcomes.look();
      webhooks = startWebhooks(deps.webhooks);
      const finders = {
        checks: checker.search,
        enrollments: enrollments.wake,
        events: webhooks.eventWritten,
      };
      loops = [
        ...loops,
        startSearch({ ...deps, onSearchError: deps.checked.failed }, finders, { intervalMs }),
      ];
      return unaskable;
    },
    eventWritten: () => webhooks?.eventWritten(),
    wakeWebhook: (webhook) => webhooks?.wake(webhook),
    wakeChecker: (handed) => checker?.wake(handed),
    wakeEnrollments: () => enrollments?.wake(),
    wakeSettlement: () => settlement?.wake(),
    lookAtOpenOutcomes: () => void openOutcomes?.look(),
    async stop() {
      await Promise.all(loops.map((loop) => loop.stop()));
      await Promise.all([checker?.stop(), enrollments?.stop(), openOutcomes?.stop(), webhooks?.stop()]);
    },
  };
}
