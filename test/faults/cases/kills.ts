import { setTimeout as sleep } from 'node:timers/promises';
import type { Stop } from '../gate.ts';
import { type Answer, type Order, paymentOf, send } from '../orders.ts';
import { storedBodies } from '../stored-bodies.ts';
import type { ReplicaOptions, World } from '../world.ts';
import type { Case } from './case.ts';

/** The service is killed with SIGKILL at every step of a payment and of recovery. */
export const KILLS: readonly Case[] = [
  {
    name: 'killed before the claim',
    short: true,
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'claim:request', order);
      stop.cut();
      world.expect((await world.query('SELECT 1 FROM payment')).length === 0, 'a row was written');
      world.expect((await world.ledger()).length === 0, 'something was charged');
      await world.startReplica({ unhurried: true });
      const answer = await world.insist(order);
      world.expect(!answer.replayed, 'the retry was a replay');
      world.expect(statusOf(answer) === 'SUCCEEDED', 'the retry did not succeed');
    },
  },
  {
    name: 'killed after the claim, before sending',
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, world.random.pick(['claim:response', 'charge:request']), order);
      await world.startReplica({ unhurried: true });
      // The request in transit may still arrive after its sender has died, before or after the outcome is looked up.
      await sleep(world.random.integer(0, 4_000));
      world.random.pick([stop.cut, stop.release])();
      await world.insist(order);
    },
  },
  {
    name: 'killed after sending, before the answer',
    short: true,
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'charge:response', order);
      stop.cut();
      await world.startReplica({ unhurried: true });
      const answer = await world.insist(order);
      world.expect(await world.isPaid(answer), 'the approval was not learned');
    },
  },
  {
    name: 'killed after the answer, before commit 2',
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'write_change:request', order);
      world.random.pick([stop.cut, stop.release])();
      await world.startReplica({ unhurried: true });
      const answer = await world.insist(order);
      world.expect(await world.isPaid(answer), 'the approval was not recovered');
    },
  },
  {
    name: 'killed after commit 2, before the response',
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'write_change:response', order);
      const [committed] = (await storedBodies(world)).values();
      stop.cut();
      await world.startReplica({ unhurried: true });
      const answer = await world.insist(order);
      world.expect(answer.replayed, 'the retry was not a replay');
      world.expect(answer.body === committed, 'the replay is not what was committed, byte for byte');
    },
  },
  recoveryKill('killed in recovery: taking', 'take_due_transactions', 'reset_after'),
  recoveryKill('killed in recovery: asking the provider', 'look_up', 'hang_after'),
  recoveryKill('killed in recovery: closing at the provider', 'close', 'reset_before'),
  recoveryKill('killed in recovery: postponing', 'postpone_check', 'error_before'),
  recoveryKill('killed in recovery: writing the outcome', 'write_change', 'error_after'),
];

/** Makes a case that creates an unknown outcome and kills the replica that looks it up, twice. */
function recoveryKill(name: string, step: string, misbehaviour: string): Case {
  return {
    name,
    async run(world) {
      const order = world.order({ description: `sandbox:${misbehaviour}` });
      const sides = world.random.shuffled(['request', 'response']);
      // On a busy machine even the first look-up may be so late that it also closes the payment, which is another call.
      const options = step === 'look_up' ? { env: { CLOSING_MARGIN_MS: '600000' } } : {};
      let replica = await world.startReplica(options);
      // The first request uses some of recovery's statements, too, so it must finish first.
      const answer = await send(replica.url, order);
      world.expect(statusOf(answer) === 'PENDING', 'the response for an unknown outcome was not PENDING');
      for (const side of sides) {
        const stop = world.gate.hold(`${step}:${side}`);
        const isOver = () => world.drain().then(() => false);
        // After the first kill there may be nothing left to look up.
        const reached = await Promise.race([stop.reached.then(() => true, isOver), isOver()]);
        world.expect(reached || side !== sides[0], `${step}:${side} was not reached`);
        if (!reached) break;
        await replica.kill();
        world.random.pick([stop.cut, stop.release])();
        replica = await world.startReplica(options);
        const [open] = await world.query('SELECT 1 FROM transaction WHERE check_at IS NOT NULL');
        if (!open) break;
      }
      const expected = misbehaviour.endsWith('_after') ? 'SUCCEEDED' : 'ERROR';
      world.expect(await world.drain(), 'recovery did not converge');
      const [row] = await world.query('SELECT status FROM payment');
      world.expect(row?.status === expected, `recovery converged to ${row?.status}, not to ${expected}`);
    },
  };
}

/**
 * Starts a replica, sends it an order, and kills it when its nth message reaches a point. The message stays held, and
 * the replica's lease expires.
 */
export async function killAt(
  world: World,
  point: string,
  order: Order,
  nth = 1,
  options: ReplicaOptions = {},
): Promise<Stop> {
  const replica = await world.startReplica({ unhurried: true, ...options });
  const stop = world.gate.hold(point, nth);
  const sent = send(replica.url, order);
  await stop.reached;
  await replica.kill();
  await sent;
  await world.endLeases();
  return stop;
}

function statusOf(answer: Answer): string | undefined {
  return paymentOf(answer)?.status;
}
