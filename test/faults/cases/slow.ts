import { setTimeout as sleep } from 'node:timers/promises';
import { type Order, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** A provider that takes long to respond, with many payments in progress there. */
export const SLOW: readonly Case[] = [
  {
    name: 'killed while 500 payments are at the provider',
    async run(world) {
      const { held, replica, sent } = await hold500(world);
      await replica.kill();
      await Promise.all(sent);
      held.release();
      await world.startReplica({ unhurried: true });
      await world.endLeases();
      await expectRecovery(world);
    },
  },
  {
    name: 'the provider closes its connections while 500 payments are at it',
    async run(world) {
      const { held, sent } = await hold500(world);
      world.provider.down();
      held.release();
      await Promise.all(sent);
      world.provider.up();
      await expectRecovery(world);
    },
  },
];

const WAVES = 5;
/** Fewer concurrent payments than the service works on at once. */
const WAVE = 100;

/** Sends 500 payments whose requests or responses stop in transit. */
async function hold500(world: World) {
  const replica = await world.startReplica({ unhurried: true });
  const held = world.gate.holdAll(world.random.pick(['charge:request', 'charge:response']));
  const sent: Promise<unknown>[] = [];
  for (let wave = 1; wave <= WAVES; wave++) {
    for (let i = 0; i < WAVE; i++) sent.push(sendUntilAccepted(replica.url, world.order()));
    await world.until(`${wave * WAVE} payments at the provider`, () => held.held() === wave * WAVE);
  }
  return { held, replica, sent };
}

/** Sends an order, and retries as long as it gets a 503, since the database may be slow on a busy machine. */
async function sendUntilAccepted(url: string, order: Order): Promise<void> {
  while ((await send(url, order)).status === 503) await sleep(100);
}

/** Expects every outcome, and then the same response for every retry. */
async function expectRecovery(world: World): Promise<void> {
  world.expect(await world.drain(), 'recovery stood still for a minute');
  for (let at = 0; at < world.orders.length; at += WAVE) {
    await Promise.all(world.orders.slice(at, at + WAVE).map(world.insist));
  }
}
