import { type FollowDeps, startEnrollments } from '#src/customers/follow-enrollments.ts';
import {
  type OpenOutcomesDeps,
  type OpenOutcomesWatch,
  type UnaskableOutcomes,
  watchOpenOutcomes,
} from '#src/payments/check/open-outcomes.ts';
import { type ProcessDeps, startNotifications } from '#src/payments/check/process-notifications.ts';
import { type RecoveryDeps, startRecovery } from '#src/payments/check/recover-payments.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';
import { startWebhooks, type WebhookDeps, type Webhooks } from '#src/webhooks/start-webhooks.ts';
import { startAgeOut } from './age-out.ts';
import { type ClockDeps, watchClock } from './watch-clock.ts';

/** Work in the background, and the calls by which a request prompts it. */
export type Background = {
  /** Starts everything. @returns the open outcomes that this replica cannot look up. */
  start(): Promise<readonly UnaskableOutcomes[]>;
  /** Relays what was just written to the outbox. */
  readonly eventWritten: () => void;
  /** Sends a webhook's due deliveries now. */
  readonly wakeWebhook: (webhook: WebhookName) => void;
  /** Processes stored notifications now. */
  readonly wakeNotifications: () => void;
  /** Counts open outcomes again, after a reload for example. */
  readonly lookAtOpenOutcomes: () => void;
  /** Stops everything; resolves once the work in progress has ended. */
  stop(): Promise<void>;
};

/** Dependencies of the background work. */
export type BackgroundDeps = RecoveryDeps &
  ProcessDeps &
  FollowDeps &
  OpenOutcomesDeps &
  ClockDeps & {
    readonly webhooks: WebhookDeps;
    readonly onSweepError: (error: unknown) => void;
    /** Pause between two searches for due work. */
    readonly intervalMs: number;
  };

/**
 * Creates the background work: recovery, notifications, what ages out, enrollments of wallets, the watches over open
 * outcomes and over the clock, and webhooks.
 */
export function createBackground(deps: BackgroundDeps): Background {
  const { intervalMs } = deps;
  let stops: readonly (() => Promise<void>)[] = [];
  let notifications: ReturnType<typeof startNotifications> | undefined;
  let openOutcomes: OpenOutcomesWatch | undefined;
  let webhooks: Webhooks | undefined;

  return {
    async start() {
      stops = [
        startRecovery(deps, { intervalMs }),
        startAgeOut(deps.database, { onError: deps.onSweepError }),
        startEnrollments(deps, { intervalMs }),
        watchClock(deps),
      ];
      notifications = startNotifications(deps, { intervalMs });
      openOutcomes = watchOpenOutcomes(deps);
      const unaskable = await openOutcomes.look();
      webhooks = startWebhooks(deps.webhooks);
      return unaskable;
    },
    eventWritten: () => webhooks?.eventWritten(),
    wakeWebhook: (webhook) => webhooks?.wake(webhook),
    wakeNotifications: () => notifications?.wake(),
    lookAtOpenOutcomes: () => void openOutcomes?.look(),
    async stop() {
      await Promise.all(stops.map((stop) => stop()));
      await Promise.all([notifications?.stop(), openOutcomes?.stop(), webhooks?.stop()]);
    },
  };
}
