import { setTimeout as sleep } from 'node:timers/promises';
import { withConnection, withRoute } from '../catalogue.ts';
import { createGate } from '../gate.ts';
import { inParallel } from '../in-parallel.ts';
import { send } from '../orders.ts';
import { startProviderProxy } from '../provider-proxy.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';
import { killAt } from './kills.ts';

/** Duration of a look-up at the provider that hangs: far longer than any other look-up takes on the busiest machine. */
const HANG_MS = 60_000;
const OPEN_OUTCOMES = 400;

/** Cases of look-ups: which provider a replica queries about an open outcome, which replica does so, and how soon. */
export const LOOK_UPS: readonly Case[] = [
  {
    name: 'look-ups: a connection re-pointed while the service was down',
    async run(world) {
      const order = world.order();
      const stop = await killAt(world, 'charge:response', order);
      stop.cut();
      const other = await world.startProvider();
      const repointed = world.catalogueWith((text) =>
        text.replaceAll(`127.0.0.1:${world.provider.port}`, `127.0.0.1:${other.port}`),
      );
      const replica = await world.startReplica({ env: { CATALOGUE_FILE: repointed } });
      await leftAlone(world);
      world.expect(
        (await world.ledger(other)).length === 0,
        'another provider was asked to close the payment',
      );
      world.expect(
        replica.output().includes('Warning: 1 unknown outcomes at connection judge cannot be looked up'),
        'no warning was logged at the start',
      );
      await replica.kill();
      await world.startReplica({ unhurried: true });
      await world.insist(order);
      const [row] = await world.query('SELECT status FROM payment');
      world.expect(
        row?.status === 'SUCCEEDED',
        `the first provider charged the payment, whose status is ${row?.status}`,
      );
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
      await world.startReplica({ unhurried: true });
      await ended(world, order.key);
    },
  },
  {
    name: 'look-ups: 400 outcomes open at a provider that hangs',
    async run(world) {
      const gate = createGate();
      const hanging = await startProviderProxy(world.judge.port, gate, world.kind.callOf);
      world.atEnd(() => hanging.close());
      const withHanging = world.catalogueWith((text) => addHanging(text, hanging.port));
      const replica = await world.startReplica({ unhurried: true, env: { CATALOGUE_FILE: withHanging } });
      gate.next('charge:response', 'cut', OPEN_OUTCOMES);
      const { release } = gate.holdAll('look_up:request');
      const orders = Array.from({ length: OPEN_OUTCOMES }, () =>
        world.order({ country: 'AR', vault: false }),
      );
      await inParallel(
        orders.map((order) => () => send(replica.url, order)),
        20,
      );
      const [row] = await world.query(
        `SELECT count(*)::integer AS open FROM transaction WHERE check_at IS NOT NULL AND status = 'PENDING'`,
      );
      world.expect(row?.open === OPEN_OUTCOMES, `${row?.open} outcomes were open`);
      const healthy = Array.from({ length: 8 }, () => world.order({ description: 'sandbox:reset_after' }));
      await inParallel(
        healthy.map((order) => async () => {
          await send(replica.url, order);
          await ended(world, order.key);
        }),
        2,
      );
      release();
    },
  },
];

/** Waits until the attempt is due, and expects that no replica has taken it after several searches. */
async function leftAlone(world: World): Promise<void> {
  const isDue = async () =>
    (await world.query('SELECT 1 FROM transaction WHERE check_at <= now()')).length === 1;
  await world.until('the end of the lease', isDue);
  await sleep(1_000);
  const read = async () =>
    (await world.query('SELECT status, fence, check_at <= now() AS due FROM transaction'))[0];
  const row = await read();
  if (row?.status === 'PENDING' && row.fence === 0 && row.due === true) return;
  world.expect(false, `the attempt was taken: ${JSON.stringify(row)}`);
  // The replica that took the attempt continues and writes an outcome that it should not write.
  await world.until('the outcome', async () => (await read())?.status !== 'PENDING').catch(() => {});
}

/** Expects that a payment's outcome is learned while the look-ups of a hanging provider still hang. */
async function ended(world: World, key: string): Promise<void> {
  const isEnded = async () =>
    (await world.query("SELECT 1 FROM payment WHERE idempotency_key = $1 AND status = 'SUCCEEDED'", [key]))
      .length === 1;
  await world.until('the outcome', isEnded, HANG_MS / 3);
}

const withoutJudge = (text: string) =>
  text
    .replace(/ {2}- id: judge\n[\s\S]*?(?= {2}- id: judge-two\n)/, '')
    .replaceAll('{ connection: judge }, { connection: judge-two }', '{ connection: judge-two }')
    .replaceAll('{ connection: judge }', '{ connection: judge-two }');

function addHanging(text: string, port: number): string {
  // The first timeout is the hanging connection's.
  const added = withConnection(text, 'hanging', port).replace(/timeout_ms: \d+/, `timeout_ms: ${HANG_MS}`);
  return withRoute(added, "{ id: 6, condition: country == 'AR', targets: [{ connection: hanging }] }");
}
