import { setTimeout as sleep } from 'node:timers/promises';
import { waitingLonger } from '../catalogue.ts';
import { inParallel } from '../in-parallel.ts';
import { type Answer, type Order, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Number of payments sent at once, so that some of their claims and outcomes share a commit. */
const TOGETHER = 12;
/** Number of consecutive rounds without a shared commit after which grouping counts as broken. */
const ROUNDS = 10;

/** Faults of a commit that several payments share: each payment must find its own result. */
export const GROUPS: readonly Case[] = [
  kill('a group of claims: killed before they are committed', 'claim', 'request'),
  { ...kill('a group of claims: killed once they are committed', 'claim', 'response'), short: true },
  kill('a group of outcomes: killed before they are committed', 'write', 'request'),
  kill('a group of outcomes: killed once they are committed', 'write', 'response'),
  kill('a group of claims and outcomes: killed before they are committed', 'both', 'request'),
  kill('a group of claims and outcomes: killed once they are committed', 'both', 'response'),
  killWhileWaiting(),
  fault('the database rolls back the commit', 'request', { refuse: '40P01' }),
  fault('a pooler loses its server and sends a FATAL error', 'response', { refuse: '08P01' }),
  fault('the acknowledgement is lost', 'response', 'cut'),
];

type Step = 'claim' | 'write' | 'both';
type Side = 'request' | 'response';
/** The statements that write groups. */
const MANY: Readonly<Record<Step, string>> = {
  claim: 'claim_many',
  write: 'write_outcomes',
  both: 'claim_and_write_many',
};

/** Makes a case in which a fault affects the commits of a group of claims and of a group of outcomes. */
function fault(name: string, side: Side, verdict: 'cut' | { readonly refuse: string }): Case {
  return {
    name: `a group of claims, one of outcomes and one of both: ${name}`,
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true, env: environment(world) });
      for (const step of world.random.shuffled(['claim', 'write', 'both'] as const)) {
        const { left } = world.gate.next(`${MANY[step]}:${side}`, verdict);
        for (let round = 1; left() > 0; round++) {
          if (round > ROUNDS) throw new Error(`${step}: no group in ${ROUNDS} rounds`);
          const { sent, release } = sendTogether(world, url, step);
          await Promise.race([sent, world.until(`a group of ${step}`, () => left() === 0)]);
          release();
          // On a busy machine a payment may have to wait, or may get no connection.
          for (const { status } of await sent) {
            world.expect([201, 409, 503].includes(status ?? 0), `${step}: one response was ${status}`);
          }
        }
      }
      for (const order of world.orders) await world.insist(order);
    },
  };
}

/** Makes a case that kills the replica while it commits a group; another replica takes over. */
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

const NOTHING_HELD = { held: () => 0, release: () => {} };

/** Long enough for writes to wait 5 ms for others, once so many payments have taken it. */
const SLOW_MS = 500;
const WARM_UP_ROUNDS = 3;

/** Makes a case that kills the replica while claims and outcomes wait for others beside a slow provider. */
function killWhileWaiting(): Case {
  return {
    name: 'writes that wait for others beside a slow provider: killed while they wait',
    async run(world) {
      const replica = await world.startReplica({ env: environment(world) });
      const slowly = async () => {
        const { release } = world.gate.holdAll('charge:response');
        const orders = Array.from({ length: TOGETHER }, () => world.order({ vault: false }));
        const sent = Promise.all(orders.map((order) => send(replica.url, order)));
        await sleep(SLOW_MS);
        return { orders, sent, release };
      };
      for (let round = 0; round < WARM_UP_ROUNDS; round++) {
        const { sent, release } = await slowly();
        release();
        await sent;
      }
      const { orders, sent, release } = await slowly();
      const others = Array.from({ length: TOGETHER }, () => world.order({ vault: false }));
      const alsoSent = others.map((order) => send(replica.url, order));
      release();
      await sleep(world.random.integer(0, 8));
      await replica.kill();
      await Promise.all([sent, ...alsoSent]);
      await world.startReplica({ unhurried: true });
      await inParallel(
        [...orders, ...others].map((order) => () => world.insist(order)),
        4,
      );
    },
  };
}

/** Each held single claim keeps a connection, and held responses need a long provider timeout. */
function environment(world: World) {
  return { DATABASE_MAX_CONNECTIONS: '24', CATALOGUE_FILE: world.catalogueWith(waitingLonger) };
}

/**
 * Sends many payments at once, none of which needs its own commit. For a group of claims, single claims are held until
 * `release`; for a group of outcomes, the provider's responses are held until most have arrived, so that the outcomes are
 * written at once. Otherwise nothing is held, and the first outcomes meet the last claims.
 */
function sendTogether(world: World, url: string, step: Step) {
  const { held, release } =
    step === 'both'
      ? NOTHING_HELD
      : world.gate.holdAll(step === 'claim' ? 'claim:request' : 'charge:response');
  const orders: Order[] = Array.from({ length: TOGETHER }, () => world.order({ vault: false }));
  const sent: Promise<Answer[]> = Promise.all(orders.map((order) => send(url, order)));
  if (step === 'write') void world.until('answers', () => held() > TOGETHER / 2).then(release, release);
  return { orders, sent, release };
}
