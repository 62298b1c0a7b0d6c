import { grpcSender } from '../grpc.ts';
import { type Answer, makeOrder, type Order, paymentOf, reasonOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

const MANY = 100;

/** Clients that repeat a request, use several protocols, or disconnect. */
export const CLIENTS: readonly Case[] = [
  {
    name: '100 at once: same key, same body',
    short: true,
    async run(world) {
      const urls = [(await world.startReplica()).url, (await world.startReplica()).url];
      const order = world.order();
      const answers = await Promise.all(
        Array.from({ length: MANY }, (_, i) => send(urls[i % 2] ?? '', order)),
      );
      const ids = new Set(answers.flatMap((answer) => paymentOf(answer)?.id ?? []));
      world.expect(ids.size === 1, `${ids.size} ids were returned`);
      const strange = answers.filter(({ status }) => ![201, 409, 503].includes(status ?? 0));
      world.expect(strange.length === 0, `one response was ${strange[0]?.status}`);
    },
  },
  {
    name: '100 at once: same key, different bodies',
    async run(world) {
      const urls = [
        (await world.startReplica({ unhurried: true })).url,
        (await world.startReplica({ unhurried: true })).url,
      ];
      const key = `key-${world.random.integer(0, 2 ** 30)}`;
      // Only the request that got the payment counts as an order; the invariants do not apply to its rivals.
      const rivals = Array.from({ length: MANY }, (_, i) =>
        makeOrder(world.random, world.kind.currencies, { key, minorUnits: 1_000 + i }),
      );
      const answers = await Promise.all(rivals.map((rival, i) => send(urls[i % 2] ?? '', rival)));
      const taken = answers.filter(({ status }) => status === 201);
      const reused = answers.filter((answer) => reasonOf(answer) === 'IDEMPOTENCY_KEY_REUSED');
      // On a busy machine some requests get no database connection and are refused before their key is compared.
      const refused = answers.filter(({ status }) => status === 503);
      world.expect(taken.length === 1, `${taken.length} got a payment`);
      world.expect(reused.length > 0, 'no response reported that the key was used');
      const others = MANY - taken.length - reused.length - refused.length;
      world.expect(others === 0, `${others} got another response`);
    },
  },
  {
    name: 'same key at once: two accounts',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const key = `key-${world.random.integer(0, 2 ** 30)}`;
      const orders = (['one', 'two'] as const).map((account) => world.order({ account, key }));
      const answers = await Promise.all(orders.map((order) => send(url, order)));
      const ids = new Set(answers.map((answer) => paymentOf(answer)?.id));
      world.expect(ids.size === 2 && !ids.has(undefined), 'two accounts did not get two payments');
    },
  },
  {
    name: 'same key at once: REST and gRPC',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const grpc = grpcSender(url);
      const order = world.order();
      const both = Array.from({ length: 20 }, (_, i) =>
        i % 2 ? grpc.send(order) : send(url, order).then((answer) => paymentOf(answer)?.id),
      );
      const ids = new Set((await Promise.all(both)).filter((id) => id !== undefined));
      grpc.close();
      world.expect(ids.size === 1, `${ids.size} ids were returned`);
    },
  },
  {
    name: 'the client goes away',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      for (const point of world.random.shuffled([
        'claim:request',
        'charge:response',
        'write_change:request',
      ])) {
        await leaveAt(world, url, point);
      }
    },
  },
];

async function leaveAt(world: World, url: string, point: string): Promise<void> {
  const order = world.order();
  const stop = world.gate.hold(point);
  const leaving = new AbortController();
  const sent = send(url, order, leaving.signal);
  await stop.reached;
  leaving.abort();
  await sent;
  stop.release();
  await world.until('the payment that nobody waits for', () => isAnswered(world, order));
  const answer: Answer = await send(url, order);
  world.expect(answer.replayed && paymentOf(answer)?.status === 'SUCCEEDED', `${point}: no replay`);
}

async function isAnswered(world: World, order: Order): Promise<boolean> {
  const rows = await world.query(
    'SELECT 1 FROM payment WHERE idempotency_key = $1 AND response IS NOT NULL',
    [order.key],
  );
  return rows.length === 1;
}
