import { setTimeout as sleep } from 'node:timers/promises';
import {
  DECLINED_AT_ACQUIRER_ONE,
  type Order,
  type OrderOptions,
  paymentOf,
  reasonOf,
  send,
} from '../orders.ts';
import type { Process } from '../processes.ts';
import { WATCHED_MS } from '../watch.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';
import { killAt } from './kills.ts';

const SOFTLY_DECLINED: OrderOptions = { cardNumber: DECLINED_AT_ACQUIRER_ONE };
const WENT_ON = ['judge DECLINED', 'judge-two SUCCEEDED'];

/** Every way in which the judge leaves open whether a charge was made. */
const UNKNOWN_KINDS = [
  ...['hang_before', 'reset_before', 'error_before', 'hang_after', 'reset_after', 'error_after'],
  ...['html', 'truncated', 'huge', 'slow_drip', 'wrong_amount', 'wrong_currency', 'late_approval:2500'],
];

/** Payments that continue at a second provider, payments that must not, and faults between the two attempts. */
export const FAILOVER: readonly Case[] = [
  {
    name: 'failover: not sent at three, approved at the fourth',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order({ country: 'PE' });
      await send(replica.url, order);
      await expectAttempts(world, order, ['refused ERROR', 'dns ERROR', 'tls ERROR', 'judge SUCCEEDED']);
    },
  },
  {
    name: 'failover: a soft decline at the first, approved at the second',
    short: true,
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order(SOFTLY_DECLINED);
      const answer = await send(replica.url, order);
      world.expect(paymentOf(answer)?.status === 'SUCCEEDED', `the response was ${answer.status}`);
      await expectAttempts(world, order, WENT_ON);
    },
  },
  {
    name: 'failover: a soft decline at the first, the second cannot be reached',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order({ ...SOFTLY_DECLINED, country: 'CL' });
      const payment = paymentOf(await send(replica.url, order));
      world.expect(payment?.status === 'DECLINED', `the response was ${payment?.status}`);
      const declined = payment?.transactions_history[0]?.id;
      world.expect(
        payment?.transactions.id === declined,
        'the payment does not show the declined transaction',
      );
      await expectAttempts(world, order, ['judge DECLINED', 'refused ERROR']);
    },
  },
  {
    name: 'failover: declined, the second is used only after soft declines',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const declined = async (code: string, attempts: readonly string[]) => {
        const order = world.order({ description: `sandbox:decline:${code}` });
        await send(replica.url, order);
        await expectAttempts(world, order, attempts);
      };
      for (const code of ['04', '12', '14', '41', '43', '54', '59', 'N7', 'R1'])
        await declined(code, ['judge DECLINED']);
      for (const code of ['05', '51', '91', 'X9']) {
        await declined(code, ['judge DECLINED', 'judge-two DECLINED']);
      }
    },
  },
  {
    name: 'failover: unknown at the first, the second is never used',
    async run(world) {
      const replica = await world.startReplica();
      const misbehaving = UNKNOWN_KINDS.map((kind) => world.order({ description: `sandbox:${kind}` }));
      await Promise.all(misbehaving.map((order) => send(replica.url, order)));
      const cut = ['charge:request', 'charge:response'].map((point) => ({ point, order: world.order() }));
      for (const { point, order } of cut) {
        world.gate.next(point, 'cut');
        await send(replica.url, order);
      }
      world.expect(await world.drain(), 'outcomes stayed open');
      const asked = await world.query("SELECT 1 FROM transaction WHERE connection_id <> 'judge'");
      world.expect(asked.length === 0, `${asked.length} were sent to the second`);
      const elsewhere = (await world.ledger()).filter(({ acquirer }) => acquirer === 'TWO');
      world.expect(elsewhere.length === 0, `the second was asked ${elsewhere.length} times`);
    },
  },
  {
    name: 'failover: killed between the first’s decline and the next attempt',
    short: true,
    async run(world) {
      const order = world.order(SOFTLY_DECLINED);
      const stop = await killAt(world, 'write_next_attempt:request', order);
      await world.startReplica({ unhurried: true });
      // The statement may still arrive before or after the first attempt is looked up.
      await sleep(world.random.integer(0, 4_000));
      world.random.pick([stop.cut, stop.release])();
      await expectNoCharge(world, order);
    },
  },
  {
    name: 'failover: killed after the next attempt is begun, before sending',
    async run(world) {
      const order = world.order(SOFTLY_DECLINED);
      const [point, nth] = world.random.pick([
        ['write_next_attempt:response', 1],
        ['charge:request', 2],
      ] as const);
      const stop = await killAt(world, point, order, nth);
      await world.startReplica({ unhurried: true });
      // The request to the second provider may still arrive after its sender has died.
      await sleep(world.random.integer(0, 4_000));
      world.random.pick([stop.cut, stop.release])();
      await world.insist(order);
      const attempts = await attemptsOf(world, order);
      world.expect(attempts.length === 2, `there are ${attempts.length} attempts`);
      world.expect(attempts[0] === 'judge DECLINED', `the first is ${attempts[0]}`);
    },
  },
  {
    name: 'failover: killed after sending to the second, before the answer',
    async run(world) {
      const order = world.order(SOFTLY_DECLINED);
      const stop = await killAt(world, 'charge:response', order, 2);
      stop.cut();
      await world.startReplica({ unhurried: true });
      await world.insist(order);
      await expectAttempts(world, order, WENT_ON);
    },
  },
  {
    name: 'failover: killed after the second’s answer, before commit',
    async run(world) {
      const order = world.order(SOFTLY_DECLINED);
      const stop = await killAt(world, 'write_change:request', order);
      world.random.pick([stop.cut, stop.release])();
      await world.startReplica({ unhurried: true });
      await world.insist(order);
      await expectAttempts(world, order, WENT_ON);
    },
  },
  {
    name: 'failover: the acknowledgement of the next attempt lost',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order(SOFTLY_DECLINED);
      world.gate.next('write_next_attempt:response', 'cut', world.random.integer(1, 3));
      const answer = await send(replica.url, order);
      world.expect(paymentOf(answer)?.status === 'SUCCEEDED', `the response was ${answer.status}`);
      await expectAttempts(world, order, WENT_ON);
    },
  },
  {
    name: 'failover: the database refuses the next attempt',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const refused = async (sqlstate: string, times: number) => {
        const order = world.order(SOFTLY_DECLINED);
        world.gate.next('write_next_attempt:request', { refuse: sqlstate }, times);
        await send(replica.url, order);
        return order;
      };
      await expectAttempts(world, await refused('40P01', world.random.integer(1, 3)), WENT_ON);
      // After an error that no retry can fix (a corrupted index, a constraint), the attempt ends with the known outcome.
      const ended = await refused(world.random.pick(['XX002', '23505']), 1);
      await expectAttempts(world, ended, ['judge DECLINED']);
    },
  },
  {
    name: 'failover: stopped past its lease between the attempts, then continued',
    async run(world) {
      // The first two stops come before the next attempt is written, the others after.
      const first = ['judge DECLINED'];
      const both = ['judge DECLINED', 'judge-two ERROR'];
      const [one] = [await world.startReplica(), await world.startReplica()];
      // The stopped replica's messages arrive after the other replica has finished the payment.
      await stopPastLease(world, one, {
        point: 'write_next_attempt:request',
        nth: 1,
        attempts: first,
        verdict: 'release',
      });
      await stopPastLease(world, one, {
        point: 'charge:response',
        nth: 1,
        attempts: first,
        verdict: 'release',
      });
      await stopPastLease(world, one, { point: 'write_next_attempt:response', nth: 1, attempts: both });
      await stopPastLease(world, one, { point: 'charge:request', nth: 2, attempts: both });
    },
  },
  {
    name: 'failover: the database down between the attempts',
    async run(world) {
      const replica = await world.startReplica();
      const order = world.order(SOFTLY_DECLINED);
      const stop = world.gate.hold('charge:response');
      const sent = send(replica.url, order);
      await stop.reached;
      world.random.pick([world.database.down, world.database.silence])();
      stop.release();
      const answer = await sent;
      world.expect(reasonOf(answer) === 'REQUEST_IN_PROGRESS', `the response was ${answer.status}`);
      world.database.up();
      await expectNoCharge(world, order);
    },
  },
  {
    name: 'failover: the database away for a moment between the attempts',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order(SOFTLY_DECLINED);
      const stop = world.gate.hold('charge:response');
      const sent = send(replica.url, order);
      await stop.reached;
      world.random.pick([world.database.down, world.database.silence])();
      stop.release();
      await sleep(world.random.integer(50, 300));
      world.database.up();
      const status = paymentOf(await sent)?.status;
      world.expect(status === 'SUCCEEDED', `the response was ${status}`);
    },
  },
];

/**
 * Stops the replica that processes an order when the nth message reaches a point, until the other replica has learned
 * the outcome.
 *
 * @param options.verdict the verdict on the message; chosen at random by default.
 */
async function stopPastLease(
  world: World,
  frozen: Process,
  options: {
    readonly point: string;
    readonly nth: number;
    readonly attempts: readonly string[];
    readonly verdict?: 'release' | 'cut';
  },
): Promise<void> {
  const { point, nth, attempts, verdict = world.random.pick(['release', 'cut'] as const) } = options;
  const order = world.order(SOFTLY_DECLINED);
  const stop = world.gate.hold(point, nth);
  const sent = send(frozen.url, order);
  await stop.reached;
  frozen.freeze();
  world.expect(await world.drain(), `${point}: the other replica did not learn the outcome`);
  await sleep(WATCHED_MS);
  stop[verdict]();
  frozen.thaw();
  await sent;
  // If the replica sent the request or overwrote the outcome, it would have done so by now.
  await sleep(1_500);
  await expectAttempts(world, order, attempts);
}

/**
 * Expects that the order, which the first provider declined, ends declined or in a second attempt that was never sent.
 */
async function expectNoCharge(world: World, order: Order): Promise<void> {
  await world.insist(order);
  const [first, second = 'judge-two ERROR', ...others] = await attemptsOf(world, order);
  world.expect(first === 'judge DECLINED', `the first is ${first}`);
  world.expect(second === 'judge-two ERROR' && others.length === 0, `the second is ${second}`);
  const charged = (await world.ledger()).filter(({ status }) => status === 'approved');
  world.expect(charged.length === 0, 'something was charged');
}

/** Expects the attempts of an order, oldest first, each with its connection and status. */
export async function expectAttempts(world: World, order: Order, expected: readonly string[]): Promise<void> {
  const attempts = await attemptsOf(world, order);
  world.expect(`${attempts}` === `${expected}`, `the attempts were ${attempts.join(', ')}`);
}

/** Returns the attempts of an order, oldest first, each with its connection and status. */
export async function attemptsOf(world: World, order: Order): Promise<string[]> {
  const rows = await world.query(
    `SELECT t.connection_id, t.status FROM payment p JOIN transaction t ON t.payment_id = p.id
     WHERE p.idempotency_key = $1 ORDER BY t.created_at`,
    [order.key],
  );
  return rows.map(({ connection_id, status }) => `${connection_id} ${status}`);
}
