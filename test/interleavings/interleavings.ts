import { setImmediate } from 'node:timers/promises';
import fc from 'fast-check';
import { checkDue } from '#src/payments/check/checker.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { ServiceError } from '#src/service-error.ts';
import { type Behaviour, type LedgerProvider, ledgerProvider } from '../payments/ledger-provider.ts';
import type { OperatedPayments } from '../payments/open-operated-payments.ts';
import { earlier, type Tables } from '../support/tables.ts';
import { actsOf, CALLER, payment } from './actors.ts';
import { judge } from './judge.ts';
import type { Plan } from './plan.ts';
import { atOnce, type Deps, LONG_S, passTime, replica, type Step, type Watch } from './replica.ts';

/*
 * What can happen to one payment concurrently: it is made, an operation is performed on it, two replicas check it, its
 * provider sends notifications, its merchant moves money at the provider itself, and a faulty release is at work.
 * fast-check chooses which actor takes the next step (one statement or one call to the provider) and after which step
 * one actor stops forever, as if its process died. Then a new replica recovers the rest, and the provider's ledger
 * decides whether all is correct.
 */

/** Number of statements and calls in progress outside the scheduler. */
let underWay = 0;

/** Waits until every actor is waiting for its next turn or has finished. */
async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    await setImmediate();
    quiet = underWay === 0 ? quiet + 1 : 0;
  }
}

/**
 * Chooses the order of steps. A step ends before the next begins, so that the same order always has the same result.
 */
export const ORDERS = fc.scheduler({
  act: async (step) => {
    await step();
    await settled();
  },
});

/**
 * Plays one order and judges the result.
 *
 * @throws Error that lists what is wrong.
 */
export async function play(
  { deps, tables }: Pick<OperatedPayments, 'deps' | 'tables'>,
  order: fc.Scheduler,
  plan: Plan,
): Promise<void> {
  const provider = ledgerProvider();
  const faults: string[] = [];
  let isOver = false;
  const watch: Watch = {
    lookedUp: async (transactionId) => {
      if (isOver || plan.leasesEnd || !(await isUnwritten(tables, transactionId))) return;
      faults.push('the provider was asked about a transaction that is leased to its caller');
    },
    alarm: (alarm) => faults.push(`an alarm: ${alarm}`),
  };
  const responses: string[] = [];
  const alive = replica(deps, provider, watch, atOnce);
  const acts = actsOf({ tables, provider, plan, responses });
  if (plan.isMade) await acts.create(alive, atOnce);
  if (plan.isMade && plan.isOperated) await acts.other(alive, atOnce).catch(ignoreRefusal);
  provider.next.push(...plan.behaviours.map((behaviour) => (plan.leasesEnd ? inTime(behaviour) : behaviour)));
  const actors = plan.actors.map((name) => {
    const work = plan.isMade && name === 'create' ? acts.other : acts[name];
    const died = Promise.withResolvers<void>();
    let steps = 0;
    const step: Step = async (what, take) => {
      if (name === plan.dies.actor && steps++ >= plan.dies.afterSteps) {
        died.resolve();
        return new Promise(() => {});
      }
      await order.schedule(Promise.resolve(), `${name}: ${what}`);
      underWay += 1;
      return take().finally(() => {
        underWay -= 1;
      });
    };
    const ended = work(replica(deps, provider, watch, step), step).catch(ignoreRefusal);
    return Promise.race([ended, died.promise]);
  });
  await order.waitFor(Promise.all(actors));
  isOver = true;
  provider.receiveLate();
  provider.settleDelayed();
  await acts.repeatNews(alive, atOnce);
  await recover(alive, tables, provider);
  faults.push(
    ...(await judge(alive, tables, provider, responses, () => createPayment(alive, payment(plan), CALLER))),
  );
  if (faults.length > 0) throw new Error([...new Set(faults)].join('; '));
}

/** A call of a process that stood still past its lease is not sent any more, so it arrives in time or never. */
function inTime(behaviour: Behaviour): Behaviour {
  return behaviour === 'is reached late' ? 'does it, unanswered' : behaviour;
}

/** Returns true if nothing was written about a transaction since its claim. */
async function isUnwritten(tables: Tables, transactionId: string): Promise<boolean> {
  const rows = await tables.query(
    `SELECT 1 FROM transaction WHERE id = $1 AND status = 'PENDING' AND updated_at <= created_at`,
    [transactionId],
  );
  return rows.length > 0;
}

/** Ignores a refusal. A caller may be refused at any time; only the final state matters. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ServiceError)) throw error;
}

const MOST_CHECKS = 20;

/** Checks, like a replica that survived, until no outcome is open. */
async function recover(deps: Deps, tables: Tables, provider: LedgerProvider): Promise<void> {
  for (let times = 0; times < MOST_CHECKS; times++) {
    await passTime(tables, LONG_S);
    await tables.query('UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL');
    // A provider without the transaction is queried for two days, so the clock has to advance.
    await tables.query(`UPDATE notification SET received_at = ${earlier('received_at', '1 day')}`);
    await tables.query('UPDATE notification SET check_at = now() WHERE check_at IS NOT NULL');
    // A code that the payment shows runs out at last.
    for (const { id } of await tables.query("SELECT id FROM transaction WHERE status = 'CREATED'")) {
      provider.endsCode(String(id));
    }
    await checkDue(deps);
    const open = await tables.query(
      `SELECT 1 FROM transaction WHERE status IN ('PENDING', 'CREATED')
       UNION ALL SELECT 1 FROM notification WHERE settled_at IS NULL`,
    );
    if (open.length === 0) return;
  }
  const left = await tables.query(
    `SELECT type || ' ' || status || ' ' || coalesce(check_at::text, '-') || ' ' || awaits_payer AS what FROM transaction
     UNION ALL SELECT 'notification ' || (settled_at IS NOT NULL) || ' ' || deduplication_key FROM notification
     UNION ALL SELECT 'payment ' || status || coalesce(open_operation::text, ' -') FROM payment`,
  );
  throw new Error(`recovery did not end: ${left.map(({ what }) => what).join(', ')}`);
}
