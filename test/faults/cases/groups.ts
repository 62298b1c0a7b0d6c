import { inParallel } from '../in-parallel.ts';
import { type Answer, type Order, paymentOf, reasonOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Payments that come at once: some of their claims, and of their ends, share a commit. */
const TOGETHER = 12;
/** So often in a row none shared one: groups are not made any more. */
const ROUNDS = 10;

/** Faults of a commit that many payments share: what becomes of one is learned of each by itself. */
export const GROUPS: readonly Case[] = [
  kill('a group of claims: killed before they are committed', 'claim_many:request'),
  { ...kill('a group of claims: killed once they are committed', 'claim_many:response'), short: true },
  kill('a group of ends: killed before they are committed', 'finish_many:request'),
  kill('a group of ends: killed once they are committed', 'finish_many:response'),
  {
    name: 'a group of claims, or of ends, that was rolled back, or whose acknowledgement is lost',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      for (const step of world.random.shuffled(['claim', 'finish'])) {
        for (const [point, verdict] of [
          ['request', { refuse: '40P01' }],
          ['response', { refuse: '08P01' }],
          ['response', 'cut'],
        ] as const) {
          const { left } = world.gate.next(`${step}_many:${point}`, verdict);
          for (let round = 1; left() > 0; round++) {
            if (round > ROUNDS) throw new Error(`${step}: no group in ${ROUNDS} rounds`);
            for (const answer of await sendTogether(world, replica.url).sent) {
              const told = paymentOf(answer)?.status ?? reasonOf(answer);
              world.expect(told === 'SUCCEEDED', `${step}, ${JSON.stringify(verdict)}: answered ${told}`);
            }
          }
        }
      }
    },
  },
];

function kill(name: string, point: string): Case {
  return {
    name,
    async run(world) {
      const replica = await world.startReplica();
      const stop = world.gate.hold(point);
      let round = sendTogether(world, replica.url);
      const isReached = () => Promise.race([stop.reached.then(() => true), round.sent.then(() => false)]);
      while (!(await isReached())) round = sendTogether(world, replica.url);
      await replica.kill();
      await round.sent;
      world.random.pick([stop.cut, stop.release])();
      await world.startReplica();
      await inParallel(
        round.orders.map((order) => () => world.insist(order)),
        4,
      );
    },
  };
}

/** Sends many payments at once, none of which needs a commit of its own. */
function sendTogether(world: World, url: string) {
  const orders: Order[] = Array.from({ length: TOGETHER }, () => world.order({ vault: false }));
  const sent: Promise<Answer[]> = Promise.all(orders.map((order) => send(url, order)));
  return { orders, sent };
}
