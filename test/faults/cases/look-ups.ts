import { setTimeout as sleep } from 'node:timers/promises';
import { createGate } from '../gate.ts';
import { inParallel } from '../in-parallel.ts';
import { send } from '../orders.ts';
import { startProviderProxy } from '../provider-proxy.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';
import { killAt } from './kills.ts';

/** Duration of a look-up at the provider that hangs. */
const HANG_MS = 4_000;

/** Cases of look-ups: the provider that is asked about an open outcome, by whom, and how soon. */
export const LOOK_UPS: readonly Case[] = [
  {
    name: 'look-ups: a connection re-pointed while the service was down',
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'charge:response', order);
      stop.cut();
      const other = await world.startProvider();
      const repointed = world.catalogueWith((text) =>
        text.replaceAll(`127.0.0.1:${world.provider.port}`, `127.0.0.1:${other.url}`),
      );
      const replica = await world.startReplica({ env: { CATALOGUE_FILE: repointed } });
      await leftAlone(world);
      world.expect((await world.ledger(other)).length === 0, 'another provider was asked to close it');
      world.expect(
        replica.output().includes('Warning: 1 open outcomes of connection judge cannot be looked up'),
        'nothing was said of it at the start',
      );
      await replica.kill();
      await world.startReplica();
      await world.insist(order);
      const [row] = await world.query('SELECT status FROM payment');
      world.expect(row?.status === 'SUCCEEDED', `the first provider charged it; it is ${row?.status}`);
    },
  },
  {
    name: 'look-ups: a replica without the connection, and one that has it',
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'charge:response', order);
      stop.cut();
      await world.startReplica({ env: { CATALOGUE_FILE: world.catalogueWith(withoutJudge) } });
      await leftAlone(world);
      const startedMs = performance.now();
      await world.startReplica();
      const startTookMs = performance.now() - startedMs;
      await ended(world, order.key, startTookMs + 2_000);
      const [row] = await world.query('SELECT fence FROM transaction');
      world.expect(row?.fence === 1, `it was taken ${row?.fence} times`);
    },
  },
  {
    name: 'look-ups: many outcomes open at a provider that hangs',
    async run(world) {
      const hanging = await startProviderProxy(Number(world.judge.url), createGate());
      world.atEnd(() => hanging.close());
      const withHanging = world.catalogueWith((text) => addHanging(text, hanging.port));
      const replica = await world.startReplica({ env: { CATALOGUE_FILE: withHanging } });
      hanging.silence();
      const orders = Array.from({ length: 160 }, () => world.order({ country: 'AR' }));
      await inParallel(
        orders.map((order) => () => send(replica.url, order)),
        40,
      );
      const [open] = await world.query(
        'SELECT count(*)::integer AS open FROM transaction WHERE look_up_at IS NOT NULL',
      );
      // On a busy machine some find no socket in time: those were surely not sent.
      world.expect(Number(open?.open) > 100, `${open?.open} outcomes were open`);
      // Spread over as long as one look-up hangs, since each comes at another point of it.
      const learned: Promise<void>[] = [];
      for (let i = 0; i < 8; i++) {
        const order = world.order({ description: 'sandbox:reset_after' });
        learned.push(send(replica.url, order).then(() => ended(world, order.key, 2_000)));
        await sleep(HANG_MS / 8);
      }
      await Promise.all(learned);
      hanging.up();
    },
  },
];

/** Waits until the attempt is due, and holds that nobody has taken it after several searches. */
async function leftAlone(world: World): Promise<void> {
  const isDue = async () =>
    (await world.query('SELECT 1 FROM transaction WHERE look_up_at <= now()')).length === 1;
  await world.until('the end of the lease', isDue);
  await sleep(1_000);
  const read = async () =>
    (await world.query('SELECT status, fence, look_up_at <= now() AS due FROM transaction'))[0];
  const row = await read();
  if (row?.status === 'PENDING' && row.fence === 0 && row.due === true) return;
  world.expect(false, `it was not left alone: ${JSON.stringify(row)}`);
  // Whoever took it goes on, and writes what it should not.
  await world.until('the outcome', async () => (await read())?.status !== 'PENDING').catch(() => {});
}

/** Holds that a payment's outcome is learned in time. */
async function ended(world: World, key: string, withinMs: number): Promise<void> {
  const startedMs = performance.now();
  const isEnded = async () =>
    (await world.query("SELECT 1 FROM payment WHERE idempotency_key = $1 AND status = 'SUCCEEDED'", [key]))
      .length === 1;
  await world.until('the outcome', isEnded, 60_000);
  const tookMs = Math.round(performance.now() - startedMs);
  world.expect(tookMs < withinMs, `the outcome was learned after ${tookMs} ms only`);
}

const withoutJudge = (text: string) =>
  text
    .replace(/ {2}- id: judge\n[\s\S]*?(?= {2}- id: judge-two\n)/, '')
    .replaceAll('{ connection: judge }, { connection: judge-two }', '{ connection: judge-two }')
    .replaceAll('{ connection: judge }', '{ connection: judge-two }');

function addHanging(text: string, port: number): string {
  const judge = / {2}- id: judge\n[\s\S]*?(?= {2}- id: judge-two\n)/.exec(text)?.[0] ?? '';
  const hanging = judge
    .replace('id: judge', 'id: hanging')
    .replace(/127\.0\.0\.1:\d+/, `127.0.0.1:${port}`)
    .replace(/timeout_ms: \d+/, `timeout_ms: ${HANG_MS}`);
  return text
    .replace('connections:\n', `connections:\n${hanging}`)
    .replace(
      'routes:\n',
      "routes:\n  - { id: 6, condition: country == 'AR', targets: [{ connection: hanging }] }\n",
    );
}
