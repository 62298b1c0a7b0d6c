import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import {
  chmodSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  readFileSync,
  rmSync,
  statSync,
  writeFileSync,
} from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { pino } from 'pino';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';

const MODULE = JSON.stringify(join(import.meta.dirname, '../../src/postgres/embedded-postgres.ts'));
const log = pino({ level: 'silent' });

// Every user can enter the directory, including the user as whom root runs PostgreSQL.
const home = mkdtempSync(join(tmpdir(), 'embedded-postgres-'));
chmodSync(home, 0o711);
const dataDir = join(home, 'data');
const pidFile = join(dataDir, 'postgres/data/postmaster.pid');

let postgres: EmbeddedPostgres | undefined;
const services: ChildProcess[] = [];

beforeAll(async () => {
  await start();
  await run('CREATE TABLE kept (id int PRIMARY KEY); INSERT INTO kept VALUES (1)');
  await stop();
});

afterEach(async () => {
  await killServices();
  if (!postgres) await start();
  await stop();
});

afterAll(() => rmSync(home, { recursive: true, force: true }));

describe('starting embedded PostgreSQL', () => {
  it('embedded PostgreSQL keeps the data of the previous run', async () => {
    await start();
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('commits wait for the disk, and text is compared byte by byte', async () => {
    await start();
    const settings =
      await rows(`SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
      current_setting('synchronous_commit') AS commit, current_setting('server_encoding') AS encoding,
      (SELECT datcollate FROM pg_database WHERE datname = 'postgres') AS collation`);
    expect(settings).toEqual([{ fsync: 'on', pages: 'on', commit: 'on', encoding: 'UTF8', collation: 'C' }]);
  });

  it('connections require the password, and only the owner of the password file can read it', async () => {
    const { url } = await start();
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(new pg.Client(wrong.href).connect()).rejects.toMatchObject({ code: '28P01' });
    expect(statSync(join(dataDir, 'postgres/password')).mode & 0o777).toBe(0o600);
    expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(0o700);
  });

  it('stop shuts PostgreSQL down, and may be called twice', async () => {
    const { stop: stopOnce } = await start();
    const pid = postmasterPid();
    await Promise.all([stopOnce(), stopOnce()]);
    await stopOnce();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(pidFile)).toBe(false);
  });

  it('the log contains no values from failed or killed statements', async () => {
    await start();
    const logged = () => readFileSync(join(dataDir, 'postgres.log'), 'utf8');
    const readyTimes = () => logged().split('database system is ready').length;
    const before = readyTimes();
    await expect(run("SELECT 'value-4242', pg_sleep(9), kept.id FROM kept", killBackend)).rejects.toThrow(
      /terminated/,
    );
    // PostgreSQL still accepts connections until it has noticed.
    while (readyTimes() === before) await sleep(20);
    await expect(run("INSERT INTO kept VALUES (1), (2), (3) RETURNING 'value-4242'")).rejects.toMatchObject({
      code: '23505',
    });
    await expect(run("SELECT 'value-4242'::int")).rejects.toMatchObject({ code: '22P02' });
    await stop();
    expect(logged()).not.toMatch(/value-4242|Key \(|kept/);
  });
});

describe('a second service on the same data', () => {
  it('a second service on the same data is refused in any process, and the message names the directory', async () => {
    await start();
    const refusal =
      /data directory .*data is in use by another process of the service.*set DATA_DIR.*\n.*DATABASE_URL/s;
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toThrow(refusal);
    expect(await startService()).toMatch(refusal);
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('one of two services that start at once on the same data is refused', async () => {
    const answers = await Promise.all([startService(), startService(), startService()]);
    expect(answers.filter((answer) => answer.startsWith('postgres://'))).toHaveLength(1);
    expect(answers.filter((answer) => answer.includes('is in use by another'))).toHaveLength(2);
  });
});

describe('recovery after kill -9', () => {
  it('after a kill -9 of the service, the next start stops the orphaned PostgreSQL and keeps the data', async () => {
    await startService();
    const orphan = postmasterPid();
    await killServices();
    expect(isAlive(orphan)).toBe(true);
    await start();
    expect(isAlive(orphan)).toBe(false);
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('after a kill -9 of the service and of a busy PostgreSQL, the next start recovers the data', async () => {
    const url = await startService();
    const busy = new pg.Client(url);
    busy.on('error', () => {});
    await busy.connect();
    const broken = busy
      .query('SELECT count(*) FROM generate_series(1, 8000000)')
      .catch((error: Error) => error);
    await sleep(100);
    const orphan = postmasterPid();
    await killServices();
    process.kill(orphan, 'SIGKILL');
    await start();
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
    await broken;
    await busy.end().catch(() => {});
  });

  it('another program that now has a stale pid is left alone', async () => {
    await startService();
    const text = readFileSync(pidFile, 'utf8');
    await killServices();
    await start();
    await stop();
    const innocent = spawn('sleep', ['60']);
    writeFileSync(pidFile, text.replace(/^\d+/, String(innocent.pid)));
    await start();
    expect(innocent.exitCode ?? innocent.signalCode).toBeNull();
    innocent.kill();
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('after an interrupted first start, the next start begins afresh', async () => {
    const fresh = join(home, 'fresh');
    const service = spawnService(fresh);
    while (!existsSync(fresh) || !unfinished(fresh)) await sleep(5);
    // A process stopped by SIGSTOP cannot finish.
    service.kill('SIGSTOP');
    await sleep(150);
    service.kill('SIGKILL');
    await once(service, 'exit');
    expect(existsSync(join(fresh, 'postgres'))).toBe(false);
    await (await startEmbeddedPostgres({ dataDir: fresh, log })).stop();
    // The killed start's initdb may have kept writing until now. A later start removes what is left.
    await (await startEmbeddedPostgres({ dataDir: fresh, log })).stop();
    expect(unfinished(fresh)).toBe(false);
  });
});

describe('unusable data directories', () => {
  it('a file in place of the data directory is refused with advice', async () => {
    const file = join(home, 'file');
    writeFileSync(file, '');
    await expect(startEmbeddedPostgres({ dataDir: file, log })).rejects.toThrow(
      /data directory .*file cannot be used.*Set DATA_DIR.*DATABASE_URL/s,
    );
  });

  it('a cluster of another version is refused with the last lines of the log', async () => {
    const other = join(home, 'other');
    await (await startEmbeddedPostgres({ dataDir: other, log, unsafeForTests: true })).stop();
    writeFileSync(join(other, 'postgres/data/PG_VERSION'), '11\n');
    await expect(startEmbeddedPostgres({ dataDir: other, log })).rejects.toThrow(
      /did not start.*DATABASE_URL.*incompatible with server/s,
    );
    writeFileSync(join(other, 'postgres/data/PG_VERSION'), '18\n');
    await (await startEmbeddedPostgres({ dataDir: other, log, unsafeForTests: true })).stop();
  });

  it.runIf(process.geteuid?.() === 0)('data of another user is refused', async () => {
    const foreign = join(home, 'foreign');
    mkdirSync(join(foreign, 'postgres'), { recursive: true });
    await expect(startEmbeddedPostgres({ dataDir: foreign, log })).rejects.toThrow(
      /belongs to the user with uid 0/,
    );
  });
});

async function start(): Promise<EmbeddedPostgres> {
  postgres = await startEmbeddedPostgres({ dataDir, log });
  return postgres;
}

async function stop(): Promise<void> {
  await postgres?.stop();
  postgres = undefined;
}

/** Starts PostgreSQL in a child process. Resolves with its URL, or with its error's message. */
async function startService(): Promise<string> {
  const service = spawnService(dataDir);
  let output = '';
  for await (const chunk of service.stdout ?? []) {
    output += chunk;
    if (output.endsWith('\0')) break;
  }
  return output.slice(0, -1);
}

function spawnService(directory: string): ChildProcess {
  const script = `
    const { startEmbeddedPostgres } = await import(${MODULE});
    const log = { info() {}, warn() {}, error() {} };
    const say = (text) => process.stdout.write(text + '\\0');
    setInterval(() => {}, 1000);
    await startEmbeddedPostgres({ dataDir: ${JSON.stringify(directory)}, log }).then((it) => say(it.url), (error) => say(error.message));`;
  const args = ['--input-type=module', '-e', script];
  const service = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] });
  services.push(service);
  return service;
}

async function killServices(): Promise<void> {
  for (const service of services.splice(0)) {
    // `kill` returns false for a service that has exited, and its `exit` event is not emitted again.
    if (service.kill('SIGKILL')) await once(service, 'exit');
  }
}

function postmasterPid(): number {
  return Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
}

/** A zombie for which nobody has waited does not count. */
function isAlive(pid: number): boolean {
  try {
    process.kill(pid, 0);
    return !/^State:\s+Z/m.test(readFileSync(`/proc/${pid}/status`, 'utf8'));
  } catch {
    return false;
  }
}

function unfinished(directory: string): boolean {
  return readdirSync(directory).some((name) => name.startsWith('postgres.new-'));
}

async function rows(sql: string): Promise<unknown[]> {
  return (await run(sql)).rows;
}

async function run(sql: string, meanwhile?: (client: pg.Client) => Promise<void>): Promise<pg.QueryResult> {
  const client = new pg.Client(postgres?.url);
  client.on('error', () => {});
  await client.connect();
  try {
    const [result] = await Promise.all([client.query(sql), meanwhile?.(client)]);
    return result;
  } finally {
    await client.end();
  }
}

/** Kills the session's process, after which PostgreSQL ends all sessions and recovers. */
async function killBackend(client: pg.Client): Promise<void> {
  await sleep(100);
  process.kill((client as unknown as { processID: number }).processID, 'SIGKILL');
}
