import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { underLoad } from '../load.ts';
import { operate, pay } from '../operate.ts';
import { paymentOf, send } from '../orders.ts';
import { agree, becomes, returnTo, sendAway } from '../wallets.ts';
import { WATCHED_MS } from '../watch.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

const HOUR_MS = 3_600_000;
/** Options for a replica whose clock is ahead. */
const aheadBy = (ms: number) => ({
  env: { CLOCK_AHEAD_MS: `${ms}` },
  nodeOptions: ['--import', join(import.meta.dirname, '../clock-ahead.mjs')],
});

/** Several replicas that share a database and finish each other's work. */
export const REPLICAS: readonly Case[] = [
  {
    name: 'two replicas: one killed',
    async run(world) {
      const [killed, other] = [await world.startReplica(), await world.startReplica()];
      const sending = Array.from({ length: 20 }, (_, i) =>
        send((i % 2 ? killed : other).url, world.order({ description: slowOrNot(world) })),
      );
      await sleep(world.random.integer(0, 200));
      await killed.kill();
      await Promise.all(sending);
      for (const order of world.orders) await world.insist(order);
    },
  },
  {
    name: 'two replicas: one stopped past its lease, then continued',
    async run(world) {
      const [frozen] = [await world.startReplica(), await world.startReplica()];
      const order = world.order();
      const stop = world.gate.hold('charge:response');
      const sent = send(frozen.url, order);
      await stop.reached;
      frozen.freeze();
      const isEnded = async () =>
        (await world.query("SELECT 1 FROM payment WHERE status = 'SUCCEEDED'")).length === 1;
      await world.until('the other replica to learn the outcome', isEnded, 30_000);
      await sleep(WATCHED_MS);
      // The awaited response arrives, breaks or never comes; the replica must not overwrite the other's outcome.
      const answer = world.random.pick([stop.release, stop.cut, () => {}]);
      answer();
      frozen.thaw();
      const got = await sent;
      world.expect(paymentOf(got)?.status === 'SUCCEEDED', `the stopped replica responded ${got.status}`);
      // If it wrote its outcome, it would have done so by now.
      await sleep(1_500);
      stop.cut();
    },
  },
  {
    name: 'a replica pauses before commit 2 while another stores an unknown outcome',
    short: true,
    async run(world) {
      const replica = await world.startReplica();
      const order = world.order();
      const stop = world.gate.hold('write_change:request');
      const sent = send(replica.url, order);
      await stop.reached;
      await answerPending(world);
      stop.release();
      const told = paymentOf(await sent)?.status;
      // On a busy machine the response may ask for a later retry.
      world.expect(told === 'PENDING' || told === undefined, `the delayed replica responded ${told}`);
      const replay = paymentOf(await world.insist(order));
      world.expect(replay?.status === 'PENDING', `the replay is ${replay?.status}`);
      await world.until('the approval to be written', async () => {
        const [row] = await world.query('SELECT status FROM payment');
        return row?.status === 'SUCCEEDED';
      });
    },
  },
  {
    name: 'a replica’s clock an hour ahead',
    async run(world) {
      const here = await world.startReplica({ unhurried: true });
      const ahead = await world.startReplica(aheadBy(HOUR_MS));
      const order = world.order();
      const stop = world.gate.hold('charge:response');
      const sent = send(here.url, order);
      await stop.reached;
      // The lease leaves enough time for several searches.
      await sleep(400);
      const [attempt] = await world.query('SELECT fence FROM transaction');
      world.expect(attempt?.fence === 0, 'the attempt was taken before its lease ran out');
      stop.release();
      world.expect(paymentOf(await sent)?.status === 'SUCCEEDED', 'the payment did not succeed');
      const second = await send(ahead.url, world.order());
      const payment = paymentOf(second);
      const aheadMs = Date.parse(payment?.created_at ?? '') - Date.now();
      world.expect(aheadMs > 3_000_000, 'the clock was not ahead, so the case proves nothing');
    },
  },
  {
    name: 'a replica’s clock ten days ahead ends no authorization or redirect',
    async run(world) {
      const right = await world.startReplica({ unhurried: true });
      const authorized = await pay(world, right.url, { capture: false });
      const payer = await sendAway(world, right.url);
      await right.kill();
      const ahead = await world.startReplica({ ...aheadBy(240 * HOUR_MS), unhurried: true });
      await world.query('UPDATE transaction SET check_at = now(), fence = 1 WHERE check_at IS NOT NULL');
      const isChecked = async () =>
        (await world.query('SELECT 1 FROM transaction WHERE fence > 1 AND check_at > now()')).length === 2;
      await world.until('both to be checked', isChecked);
      await agree(world, payer);
      await returnTo(ahead.url, payer);
      await becomes(world, payer, 'SUCCEEDED');
      const captured = await operate(ahead.url, { verb: 'capture', payment: authorized, key: 'capture' });
      world.expect(
        captured.status === 200,
        `the response to the capture was ${captured.status}: ${captured.body}`,
      );
    },
  },
  {
    name: 'steady load: killed and frozen every few seconds',
    alone: true,
    async run(world) {
      await world.startReplica();
      await world.startReplica();
      await underLoad(world, async () => {
        for (let blow = 0; blow < 4; blow++) {
          await sleep(world.random.integer(1_500, 2_500));
          const alive = world.replicas.filter((replica) => replica.isAlive());
          const victim = world.random.pick(alive);
          if (blow === 2) {
            victim.freeze();
            // Longer than the provider's timeout and the lease margin together.
            await sleep(5_000);
            victim.thaw();
          } else {
            await victim.kill();
            await world.startReplica();
          }
        }
      });
    },
  },
];

/** Takes the only payment's attempt and stores a response without an outcome, as recovery does. */
async function answerPending(world: World): Promise<void> {
  await world.query(
    `WITH taken AS (UPDATE transaction SET fence = fence + 1 RETURNING payment_id)
     UPDATE payment SET response = '\\x00'::bytea || (SELECT digest FROM response_schema) FROM taken WHERE id = payment_id`,
  );
}

function slowOrNot(world: World): string {
  return world.random.pick(['', 'sandbox:late_approval:300', 'sandbox:reset_after']);
}
