import { withConnection, withRoute } from '../catalogue.ts';
import { underLoad } from '../load.ts';
import { paymentOf, send } from '../orders.ts';
import type { Process } from '../processes.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

const OPERATOR_KEY = 'operator-key-of-the-fault-cases-0123456789';
/** The database has the catalogue. */
const IN_DATABASE = { CATALOGUE_FILE: '', OPERATOR_KEYS: OPERATOR_KEY };
const ROUNDS = 3;
const RACES = 10;
/** An undo must not wait for a provider. */
const UNDO_MS = 2_000;

/** Changes of the catalogue in the database, while payments are made. */
export const CONFIGURATION: readonly Case[] = [
  {
    name: 'configuration: a replica killed between the commit of a version and its poll',
    async run(world) {
      let replicas = await startBoth(world);
      await underLoad(world, async () => {
        for (let round = 1; round <= ROUNDS; round++) {
          const [publisher, other] = replicas;
          const published = await publishRoute(publisher, await versionAt(publisher), round);
          world.expect(published.status === 200, `the publication got ${published.status}`);
          // The version is committed, and each replica reads the head once a second.
          const victim = world.random.pick(replicas);
          await victim.kill();
          const survivor = victim === publisher ? other : publisher;
          replicas = [survivor, await world.startReplica({ env: IN_DATABASE })];
          await run(world, replicas, published.json.version);
        }
      });
    },
  },
  {
    name: 'configuration: two publishers at once at two replicas',
    short: true,
    async run(world) {
      const [one, two] = await startBoth(world);
      for (let race = 1; race <= RACES; race++) {
        const expected = await versionAt(one);
        const answers = await Promise.all([
          publishRoute(one, expected, 100 * race),
          publishRoute(two, expected, 100 * race + 1),
        ]);
        const statuses = answers.map(({ status }) => status).sort();
        world.expect(statuses.join() === '200,409', `two publishers got ${statuses.join()}`);
      }
      const gaps = await world.query('SELECT version FROM catalogue_version WHERE replaced <> version - 1');
      world.expect(
        gaps.length === 0,
        `versions were replaced by others than the next: ${JSON.stringify(gaps)}`,
      );
      const [{ count } = { count: undefined }] = await world.query(
        "SELECT count(*)::int AS count FROM catalogue_version WHERE source = 'api'",
      );
      world.expect(count === RACES, `${RACES} races published ${count} versions`);
      await run(world, [one, two], await versionAt(one));
      await world.insist(world.order());
    },
  },
  {
    name: 'configuration: a version that one replica cannot open, and its undo there',
    async run(world) {
      const [variable = ''] = Object.values(world.kind.secrets('ONE'));
      const only = { ONLY_HERE: world.kind.environment[variable] ?? '' };
      const [able, unable] = await startBoth(world, only);
      const before = await versionAt(able);
      await publishFile(
        world,
        (text) =>
          withConnection(text, 'extra', world.provider.port).replace(
            /(secrets_from_environment: \{ \w+: )\w+/,
            '$1ONLY_HERE',
          ),
        only,
      );
      await run(world, [able], before + 1);
      const told = async () => (await rowOf(able, unable)) ?? {};
      await world.until('the other replica to say why', async () => Boolean((await told()).fault));
      const row = await told();
      world.expect(row.version === before, `the replica that cannot open the version runs ${row.version}`);
      world.expect(
        String(row.fault).includes('ONLY_HERE is not set'),
        `the replica says ${JSON.stringify(row.fault)}`,
      );
      for (const replica of [able, unable]) {
        const status = paymentOf(await send(replica.url, world.order()))?.status;
        world.expect(status === 'SUCCEEDED', `a payment beside the fault is ${status}`);
      }
      const undone = await update(unable, { undo_to: before, expected_version: before + 1 });
      world.expect(undone.status === 200, `the undo got ${undone.status} ${JSON.stringify(undone.json)}`);
      await run(world, [able, unable], before + 2);
      await world.insist(world.order());
    },
  },
  {
    name: 'configuration: an undo while the provider is down',
    short: true,
    async run(world) {
      const [one, two] = await startBoth(world);
      const before = await versionAt(one);
      const wrong = await publishFile(world, (text) =>
        withRoute(
          text,
          '{ id: 99, name: Wrong, condition: amount >= 0, targets: [{ connection: refused }] }',
        ),
      );
      world.expect(wrong === 0, `the publication ended with ${wrong}`);
      await run(world, [one, two], before + 1);
      const lost = paymentOf(await world.insist(world.order()))?.status;
      world.expect(lost === 'ERROR', `a payment on the wrong route is ${lost}`);
      world.provider.down();
      const startedMs = performance.now();
      const undone = await update(two, { undo_to: before, expected_version: before + 1, comment: 'wrong' });
      const tookMs = performance.now() - startedMs;
      world.expect(undone.status === 200, `the undo got ${undone.status} ${JSON.stringify(undone.json)}`);
      world.expect(tookMs < UNDO_MS, `the undo took ${Math.round(tookMs)} ms`);
      await run(world, [one, two], before + 2);
      world.provider.up();
      await world.until('a payment to succeed again', async () => {
        return paymentOf(await world.insist(world.order()))?.status === 'SUCCEEDED';
      });
    },
  },
];

type Both = readonly [Process, Process];

/** Starts two replicas that run the world's catalogue from the database. @param first variables of only one of them. */
async function startBoth(world: World, first: Readonly<Record<string, string>> = {}): Promise<Both> {
  const ended = await publishFile(world, (text) => text);
  world.expect(ended === 0, `the first publication ended with ${ended}`);
  const one = await world.startReplica({ env: { ...IN_DATABASE, ...first } });
  return [one, await world.startReplica({ env: IN_DATABASE })];
}

/** Publishes a file with the command. @returns its exit code. */
function publishFile(
  world: World,
  change: (text: string) => string,
  environment: Readonly<Record<string, string>> = {},
): Promise<number | null> {
  const file = world.catalogueWith(change);
  const options = ['--comment', 'a fault case', '--secrets-from-environment'];
  return world.command('src/commands/catalogue.ts', ['publish', file, ...options], {
    ...IN_DATABASE,
    ...environment,
  });
}

// biome-ignore lint/suspicious/noExplicitAny: the cases read a few fields of the response.
type Updated = { readonly status: number; readonly json: any };

async function call(replica: Process, init: RequestInit): Promise<Updated> {
  const headers = { 'operator-key': OPERATOR_KEY, 'content-type': 'application/json' };
  const response = await fetch(`${replica.url}/v1/catalogue`, { ...init, headers });
  return { status: response.status, json: await response.json() };
}

const update = (replica: Process, body: object) =>
  call(replica, { method: 'PATCH', body: JSON.stringify({ comment: 'a fault case', ...body }) });

/** Publishes a route that no payment takes. */
function publishRoute(replica: Process, expected: number, id: number): Promise<Updated> {
  const route = { id: 1_000 + id, condition: 'amount < 0', targets: [{ connection: 'judge' }] };
  return update(replica, { put_route: { route, before: 1 }, expected_version: expected });
}

async function versionAt(replica: Process): Promise<number> {
  return (await call(replica, { method: 'GET' })).json.version;
}

/** Returns what one replica reports about another. */
async function rowOf(at: Process, replica: Process): Promise<Record<string, unknown> | undefined> {
  const { replicas } = (await call(at, { method: 'GET' })).json;
  return replicas.find((row: { replica: string }) => row.replica.split(' ')[1] === String(replica.pid));
}

/** Waits until replicas run a version without a fault. */
async function run(world: World, replicas: readonly Process[], version: number): Promise<void> {
  await world.until(`version ${version} to be in force`, async () => {
    const rows = await Promise.all(replicas.map((replica) => rowOf(replica, replica)));
    return rows.every((row) => row?.version === version && row.fault === '');
  });
}
