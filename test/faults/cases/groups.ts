import { waitingLonger } from '../catalogue.ts';
import { inParallel } from '../in-parallel.ts';
import { type Answer, type Order, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Payments that come at once: some of their claims, and of their ends, share a commit. */
const TOGETHER = 12;
/** So often in a row none shared one: groups are not made any more. */
const ROUNDS = 10;

/** Faults of a commit that many payments share: what becomes of one is learned of each by itself. */
export const GROUPS: readonly Case[] = [
  kill('a group of claims: killed before they are committed', 'claim', 'request'),
  { ...kill('a group of claims: killed once they are committed', 'claim', 'response'), short: true },
  kill('a group of ends: killed before they are committed', 'write', 'request'),
  kill('a group of ends: killed once they are committed', 'write', 'response'),
  fault('the database rolls it back', 'request', { refuse: '40P01' }),
  fault('a pooler loses its server, and says so with a FATAL error', 'response', { refuse: '08P01' }),
  fault('its acknowledgement is lost', 'response', 'cut'),
];

type Step = 'claim' | 'write';
type Side = 'request' | 'response';
/** The statements of groups. */
const MANY: Readonly<Record<Step, string>> = { claim: 'claim_many', write: 'write_outcomes' };

/** Something happens to the commit of a group of claims, and to one of ends. */
function fault(name: string, side: Side, verdict: 'cut' | { readonly refuse: string }): Case {
  return {
    name: `a group of claims, and one of ends: ${name}`,
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true, env: environment(world) });
      for (const step of world.random.shuffled(['claim', 'write'] as const)) {
        const { left } = world.gate.next(`${MANY[step]}:${side}`, verdict);
        for (let round = 1; left() > 0; round++) {
          if (round > ROUNDS) throw new Error(`${step}: no group in ${ROUNDS} rounds`);
          const { sent, release } = sendTogether(world, url, step);
          await Promise.race([sent, world.until(`a group of ${step}`, () => left() === 0)]);
          release();
          // On a busy machine one may have to wait, or find no connection.
          for (const { status } of await sent) {
            world.expect([201, 409, 503].includes(status ?? 0), `${step}: one was answered ${status}`);
          }
        }
      }
      for (const order of world.orders) await world.insist(order);
    },
  };
}

/** Kills the replica that commits a group; another one goes on. */
function kill(name: string, step: Step, side: Side): Case {
  return {
    name,
    async run(world) {
      const replica = await world.startReplica({ env: environment(world) });
      const stop = world.gate.hold(`${MANY[step]}:${side}`);
      for (let round = 1; ; round++) {
        const { orders, sent, release } = sendTogether(world, replica.url, step);
        const isReached = await Promise.race([stop.reached.then(() => true), sent.then(() => false)]);
        if (isReached) await replica.kill();
        release();
        await sent;
        if (!isReached && round < ROUNDS) continue;
        world.expect(isReached, `no group in ${ROUNDS} rounds`);
        world.random.pick([stop.cut, stop.release])();
        await world.startReplica({ unhurried: true });
        await inParallel(
          orders.map((order) => () => world.insist(order)),
          4,
        );
        return;
      }
    },
  };
}

/** While single claims are held, each keeps a connection; while answers are held, the provider is waited for. */
function environment(world: World) {
  return { DATABASE_MAX_CONNECTIONS: '24', CATALOGUE_FILE: world.catalogueWith(waitingLonger) };
}

/**
 * Sends many payments at once, none of which needs a commit of its own. Claims that come alone are held until `release`;
 * the provider's answers are held until most of them are there, so that the ends come at once.
 */
function sendTogether(world: World, url: string, step: Step) {
  const { held, release } = world.gate.holdAll(step === 'claim' ? 'claim:request' : 'charge:response');
  const orders: Order[] = Array.from({ length: TOGETHER }, () => world.order({ vault: false }));
  const sent: Promise<Answer[]> = Promise.all(orders.map((order) => send(url, order)));
  if (step === 'write') void world.until('answers', () => held() > TOGETHER / 2).then(release, release);
  return { orders, sent, release };
}
