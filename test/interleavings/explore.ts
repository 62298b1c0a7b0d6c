import fc from 'fast-check';
import { insertWebhook } from '#src/store/tables/webhooks.ts';
import { EVENT_TYPES } from '#src/webhooks/events.ts';
import type { OperatedPayments } from '../payments/open-operated-payments.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { ORDERS, play } from './interleavings.ts';
import { PLANS, type Plan } from './plan.ts';

/** A set of orders, the same each time. */
export type Orders = {
  /** The choices that are the same in all of them. */
  readonly plan: Partial<Plan>;
  readonly runs: number;
};

const SEED = 1;

type Played = Pick<OperatedPayments, 'database' | 'deps' | 'tables'>;

/** Makes the database store every event. */
export async function wantEvents({ database }: Pick<Played, 'database'>): Promise<void> {
  const webhook = { accountId: ACCOUNT_ONE, id: ACCOUNT_ONE, url: 'http://127.0.0.1:9/', description: '' };
  await insertWebhook(database, { ...webhook, events: EVENT_TYPES, secret: '' }, 1);
}

/** Returns the property that holds in every order with some choices. */
export function isSound(
  payments: Played,
  plan: Partial<Plan> = {},
  plans = PLANS,
): fc.IAsyncProperty<[fc.Scheduler, Plan]> {
  return fc.asyncProperty(
    ORDERS,
    plans.map((drawn) => ({ ...drawn, ...plan })),
    async (order, chosen) => {
      await payments.tables.query('TRUNCATE payment, transaction, notification, event');
      await play(payments, order, chosen);
    },
  );
}

/**
 * Plays orders until a fault is found.
 *
 * @returns the faults, and the number of orders played.
 */
export async function explore(
  payments: Played,
  { plan, runs }: Orders,
): Promise<{ readonly found: string; readonly played: number }> {
  const details = await fc.check(isSound(payments, plan), { numRuns: runs, seed: SEED, endOnFailure: true });
  const { errorInstance } = details;
  return { found: details.failed ? `${errorInstance}` : '', played: details.numRuns };
}
