import { setTimeout as sleep } from 'node:timers/promises';
import { type Answer, paymentOf, reasonOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

const UNAVAILABLE = 'SERVICE_UNAVAILABLE';

/** A database that is down, slow, full, deadlocked, read-only or restarted. */
export const DATABASE: readonly Case[] = [
  {
    name: 'the acknowledgement of commit 1 lost',
    short: true,
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order();
      world.gate.next('claim:response', 'cut');
      const answer = await send(replica.url, order);
      world.expect(paymentOf(answer)?.status === 'SUCCEEDED', `the response was ${answer.status}`);
    },
  },
  {
    name: 'a pooler loses its server in commit 1 and sends a FATAL error',
    short: true,
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order();
      const code = world.random.pick(['08P01', '08006', '57P01', '58000', '25006']);
      world.gate.next('claim:response', { refuse: code }, world.random.integer(1, 3));
      expectTaken(world, await send(replica.url, order), code);
    },
  },
  {
    name: 'a pooler loses its server in commit 2 and sends a FATAL error',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order();
      world.gate.next('write_change:response', { refuse: '08P01' }, world.random.integer(1, 3));
      expectTaken(world, await send(replica.url, order), 'commit 2');
      world.expect(await world.isPaid(await world.insist(order)), 'the approval was lost');
    },
  },
  {
    name: 'the acknowledgement of commit 2 lost',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order({ description: world.random.pick(['', 'sandbox:error_after']) });
      world.gate.next('write_change:response', 'cut', world.random.integer(1, 3));
      expectTaken(world, await send(replica.url, order), 'commit 2');
    },
  },
  {
    name: 'the database down before the claim',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order();
      world.random.pick([world.database.down, world.database.silence])();
      const answer = await send(replica.url, order);
      world.expect(reasonOf(answer) === 'SERVICE_UNAVAILABLE', `the response was ${answer.status}`);
      world.expect((await world.ledger()).length === 0, 'something was charged');
      world.database.up();
      const again = await world.insist(order);
      world.expect(paymentOf(again)?.status === 'SUCCEEDED', 'the key was consumed by a refusal');
    },
  },
  {
    name: 'the database down after sending',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const order = world.order();
      const stop = world.gate.hold('charge:response');
      const sent = send(replica.url, order);
      await stop.reached;
      const how = world.random.pick(['down', 'silence'] as const);
      world.database[how]();
      stop.release();
      const answer = await sent;
      world.expect(reasonOf(answer) === 'REQUEST_IN_PROGRESS', `the response was ${answer.status}`);
      const retry = reasonOf(await send(replica.url, order));
      // If the connection goes silent, the retry's own claim may have been committed; without a connection it was not.
      const mayBe = how === 'down' ? [UNAVAILABLE] : [UNAVAILABLE, 'REQUEST_IN_PROGRESS'];
      world.expect(
        mayBe.includes(`${retry}`),
        `while the database was ${how} the response to a retry was ${retry}`,
      );
      world.database.up();
      const again = await world.insist(order);
      world.expect(await world.isPaid(again), 'the approval was lost');
    },
  },
  {
    name: 'the pool exhausted',
    async run(world) {
      const replica = await world.startReplica({ env: { DATABASE_MAX_CONNECTIONS: '1' } });
      const held = world.order();
      const stop = world.gate.hold(
        world.random.pick(['claim:request', 'claim:response', 'write_change:request']),
      );
      const first = send(replica.url, held);
      await stop.reached;
      const others = await Promise.all([1, 2, 3, 4].map(() => send(replica.url, world.order())));
      for (const answer of others) {
        world.expect(answer.status === 503, `without a connection the response was ${answer.status}`);
      }
      stop.release();
      await first;
    },
  },
  {
    name: 'deadlocks',
    async run(world) {
      const replica = await world.startReplica();
      const orders = [1, 2, 3].map(() => world.order());
      world.gate.next('claim:request', { refuse: '40P01' }, world.random.integer(1, 3));
      world.gate.next('write_change:request', { refuse: '40P01' }, world.random.integer(1, 5));
      await Promise.all(orders.map((order) => send(replica.url, order)));
      for (const order of orders) await world.insist(order);
    },
  },
  {
    name: 'disk full (as the database reports it)',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const refused = world.order();
      world.gate.next('claim:request', { refuse: '53100' }, 2);
      const answer = await send(replica.url, refused);
      world.expect(reasonOf(answer) === 'SERVICE_UNAVAILABLE', `the response was ${answer.status}`);
      world.expect((await world.ledger()).length === 0, 'something was charged');
      const late = world.order();
      world.gate.next('write_change:request', { refuse: '53100' }, 5);
      await send(replica.url, late);
      world.expect(await world.isPaid(await world.insist(late)), 'an approval was lost to a full disk');
    },
  },
  {
    name: 'a primary turns read-only and stays up next to the new one',
    ownCluster: true,
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const isReady = async () => (await fetch(`${replica.url}/readyz`)).status === 200;
      await Promise.all([1, 2, 3, 4].map(() => send(replica.url, world.order())));
      await turnReadOnly(world);
      await world.until('readiness to fail', async () => !(await isReady()), 5_000);
      const refused = world.order();
      const answer = await send(replica.url, refused);
      world.expect(reasonOf(answer) === 'SERVICE_UNAVAILABLE', `the response was ${answer.status}`);
      await makeNewSessionsWritable(world);
      await world.until('readiness to return', isReady, 5_000);
      const again = await send(replica.url, refused);
      world.expect(paymentOf(again)?.status === 'SUCCEEDED', `the later response was ${again.status}`);
    },
  },
  {
    name: 'database killed, stopped, frozen, restarted',
    ownCluster: true,
    alone: true,
    async run(world) {
      await world.startReplica();
      await world.startReplica();
      for (const blow of world.random.shuffled([killDatabase, restartDatabase, freezeDatabase])) {
        const sending = sendSome(world, 12);
        await sleep(world.random.integer(20, 300));
        await blow(world);
        await sending;
      }
      // Refused orders are retried, too: either all of an order was committed, or none of it.
      for (const order of world.orders) await world.insist(order);
    },
  },
];

/**
 * Expects that a committed payment is not refused: it gets its response or, on a machine so busy that the lease
 * expires, an error that asks for a retry.
 */
function expectTaken(world: World, answer: Answer, what: string): void {
  const isTaken = answer.status === 201 || reasonOf(answer) === 'REQUEST_IN_PROGRESS';
  world.expect(isTaken, `${what}: the response was ${answer.status}`);
}

/** Makes all sessions read-only, current and future ones, as on a demoted primary. */
async function turnReadOnly({ cluster }: World): Promise<void> {
  // Our own sessions stay writable: a database's setting applies to its new sessions and overrides the file.
  await cluster.run('ALTER DATABASE postgres SET default_transaction_read_only = off');
  await cluster.run('ALTER SYSTEM SET default_transaction_read_only = on');
  await cluster.run('SELECT pg_reload_conf()');
}

/** Puts a writable primary in place of the read-only one; open sessions stay connected to the old one. */
async function makeNewSessionsWritable({ cluster, query }: World): Promise<void> {
  const [row] = await query('SELECT current_database() AS name');
  await cluster.run(`ALTER DATABASE ${row?.name} SET default_transaction_read_only = off`);
}

async function killDatabase(world: World): Promise<void> {
  await world.cluster.kill();
  await world.cluster.restart();
  world.database.setTarget(world.cluster.port());
}

async function restartDatabase(world: World): Promise<void> {
  await world.cluster.restart();
  world.database.setTarget(world.cluster.port());
}

async function freezeDatabase(world: World): Promise<void> {
  world.cluster.freeze();
  await sleep(world.random.integer(500, 3_000));
  world.cluster.thaw();
}

/** Sends orders one after another every few milliseconds, to each replica in turn. */
async function sendSome(world: World, count: number): Promise<void> {
  const sending: Promise<unknown>[] = [];
  for (let i = 0; i < count; i++) {
    const replica = world.replicas[i % world.replicas.length];
    if (replica) sending.push(send(replica.url, world.order()));
    await sleep(world.random.integer(5, 60));
  }
  await Promise.all(sending);
}
