import { setTimeout as sleep } from 'node:timers/promises';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../../support/payment-requests.ts';
import { inParallel } from '../in-parallel.ts';
import { underLoad } from '../load.ts';
import { operate, pay } from '../operate.ts';
import { send } from '../orders.ts';
import { expectAllTold, passTime, startReceiver } from '../receiver.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Events to merchants' servers: every change is sent at least once, and nothing else. */
export const WEBHOOKS: readonly Case[] = [
  {
    name: 'webhooks: replicas killed repeatedly, with a receiver that fails sometimes',
    async run(world) {
      await world.startReplica();
      await world.startReplica();
      // Otherwise one of hundreds of events would fail nine times in a row and would rightly count as failed.
      let isKind = false;
      const mood = () =>
        isKind ? 'take' : world.random.pick(['take', 'take', 'take', 'fail', 'break'] as const);
      const receiver = await startReceiver(world, ACCOUNT_ONE, mood);
      const work = async () => {
        for (let blow = 0; blow < 3; blow++) {
          await sleep(world.random.integer(800, 1_600));
          await world.random.pick(world.replicas.filter((replica) => replica.isAlive())).kill();
          await world.startReplica();
        }
      };
      await underLoad(world, work, 120);
      world.expect(await world.drain(), 'outcomes stay open');
      isKind = true;
      await expectAllTold(world, ACCOUNT_ONE, receiver);
    },
  },
  kill('after events were relayed', 'relay_events:response'),
  kill('after a delivery was taken', 'take_due_deliveries:response'),
  { ...kill('after a receiver accepted it', 'finish_delivery:request'), short: true },
  kill('after a receiver’s acceptance was recorded', 'finish_delivery:response'),
  {
    name: 'webhooks: a receiver that is down for days while another gets its events',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const dead = await startReceiver(world, ACCOUNT_ONE);
      const served = await startReceiver(world, ACCOUNT_TWO);
      await dead.down();
      for (let day = 0; day < 3; day++) {
        const orders = (['one', 'two'] as const).map((account) => world.order({ account, vault: false }));
        await inParallel(
          orders.map((order) => () => send(url, order)),
          2,
        );
        await expectAllTold(world, ACCOUNT_TWO, served);
        await failedAgain(world);
        await passTime(world);
      }
      world.expect(dead.taken.size === 0, 'the receiver that was down got an event');
      await dead.up();
      await expectAllTold(world, ACCOUNT_ONE, dead);
    },
  },
];

/** Waits until every open delivery of account one has been tried again and has failed. */
async function failedAgain(world: World): Promise<void> {
  const due = 'SELECT 1 FROM delivery WHERE account_id = $1 AND (due_at <= now() OR error IS NULL)';
  await world.until('the receiver to be tried in vain', async () => {
    return (await world.query(due, [ACCOUNT_ONE])).length === 0;
  });
}

/** Makes a case that kills the replica at a step between outbox and receiver; another replica takes over. */
function kill(step: string, point: string): Case {
  return {
    name: `webhooks: killed ${step}`,
    async run(world) {
      const receiver = await startReceiver(world, ACCOUNT_ONE);
      const replica = await world.startReplica();
      const payment = await pay(world, replica.url, { capture: true });
      await world.until('the event of the payment', () => receiver.taken.size > 0);
      const stop = world.gate.hold(point);
      const refund = { verb: 'refund', payment, key: 'refund', percent: 30 } as const;
      const sent = operate(replica.url, refund);
      await stop.reached;
      await sent;
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      await world.startReplica({ unhurried: true });
      await expectAllTold(world, ACCOUNT_ONE, receiver);
    },
  };
}
