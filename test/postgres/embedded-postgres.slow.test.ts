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

// Every user can pass through, also the one that root runs PostgreSQL as.
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

describe('a start', () => {
  it('keeps the data of the start before', async () => {
    await start();
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('waits for the disk at a commit, and compares text by bytes', async () => {
    await start();
    const settings =
      await rows(`SELECT current_setting('fsync') AS fsync, current_setting('full_page_writes') AS pages,
      current_setting('synchronous_commit') AS commit, current_setting('server_encoding') AS encoding,
      (SELECT datcollate FROM pg_database WHERE datname = 'postgres') AS collation`);
    expect(settings).toEqual([{ fsync: 'on', pages: 'on', commit: 'on', encoding: 'UTF8', collation: 'C' }]);
  });

  it('lets nobody in without the password, and keeps the password to its user', async () => {
    const { url } = await start();
    const wrong = new URL(url);
    wrong.password = 'guess';
    await expect(new pg.Client(wrong.href).connect()).rejects.toMatchObject({ code: '28P01' });
    expect(statSync(join(dataDir, 'postgres/password')).mode & 0o777).toBe(0o600);
    expect(statSync(join(dataDir, 'postgres')).mode & 0o777).toBe(0o700);
  });

  it('ends PostgreSQL with stop, which may be called twice', async () => {
    const { stop: stopOnce } = await start();
    const pid = postmasterPid();
    await Promise.all([stopOnce(), stopOnce()]);
    await stopOnce();
    expect(isAlive(pid)).toBe(false);
    expect(existsSync(pidFile)).toBe(false);
  });

  it('writes no value of a failed or killed statement to the log', async () => {
    await start();
    const logged = () => readFileSync(join(dataDir, 'postgres.log'), 'utf8');
    const readyTimes = () => logged().split('database system is ready').length;
    const before = readyTimes();
    await expect(run("SELECT 'value-4242', pg_sleep(9), kept.id FROM kept", killBackend)).rejects.toThrow(
      /terminated/,
    );
    // It takes connections until it has noticed.
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
  it('is refused in the same process and in another, with the directory and a way out', async () => {
    await start();
    const refusal =
      /data directory .*data is in use by another process of the service.*set DATA_DIR.*\n.*DATABASE_URL/s;
    await expect(startEmbeddedPostgres({ dataDir, log })).rejects.toThrow(refusal);
    expect(await startService()).toMatch(refusal);
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('is refused when both start at the same moment, and one of them gets it', async () => {
    const answers = await Promise.all([startService(), startService(), startService()]);
    expect(answers.filter((answer) => answer.startsWith('postgres://'))).toHaveLength(1);
    expect(answers.filter((answer) => answer.includes('is in use by another'))).toHaveLength(2);
  });
});

describe('after a kill -9', () => {
  it('of the service, the PostgreSQL it left running is ended and the data is there', async () => {
    await startService();
    const orphan = postmasterPid();
    await killServices();
    expect(isAlive(orphan)).toBe(true);
    await start();
    expect(isAlive(orphan)).toBe(false);
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('of the service and then PostgreSQL, with a session busy, it recovers', async () => {
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

  it('of PostgreSQL alone, its service says so and lets go of the data when it stops', async () => {
    const complaints: unknown[] = [];
    const noted = { ...log, info() {}, warn() {}, error: (...entry: unknown[]) => complaints.push(entry) };
    const service = await startEmbeddedPostgres({ dataDir, log: noted as unknown as typeof log });
    process.kill(postmasterPid(), 'SIGKILL');
    while (complaints.length === 0) await sleep(10);
    expect(complaints).toEqual([
      [expect.objectContaining({ signal: 'SIGKILL' }), 'PostgreSQL ended unexpectedly'],
    ]);
    await service.stop();
    await start();
    expect(await rows('SELECT id FROM kept')).toEqual([{ id: 1 }]);
  });

  it('and a restart of the machine, a pid that is another program’s by now does no harm', async () => {
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

  it('half-way through the first start, the next one starts afresh', async () => {
    const fresh = join(home, 'fresh');
    const service = spawnService(fresh);
    while (!existsSync(fresh) || !unfinished(fresh)) await sleep(5);
    // However long this goes on, it does not finish.
    service.kill('SIGSTOP');
    await sleep(150);
    service.kill('SIGKILL');
    await once(service, 'exit');
    expect(existsSync(join(fresh, 'postgres'))).toBe(false);
    await (await startEmbeddedPostgres({ dataDir: fresh, log })).stop();
    // The killed start's initdb may have been writing until then; a later start clears the last of it.
    await (await startEmbeddedPostgres({ dataDir: fresh, log })).stop();
    expect(unfinished(fresh)).toBe(false);
  });
});

describe('what cannot be used', () => {
  it('is said with the way out: a file in the place of the directory', async () => {
    const file = join(home, 'file');
    writeFileSync(file, '');
    await expect(startEmbeddedPostgres({ dataDir: file, log })).rejects.toThrow(
      /data directory .*file cannot be used.*Set DATA_DIR.*DATABASE_URL/s,
    );
  });

  it('is said with the last lines of the log: a cluster of another version', async () => {
    const other = join(home, 'other');
    await (await startEmbeddedPostgres({ dataDir: other, log, unsafeForTests: true })).stop();
    writeFileSync(join(other, 'postgres/data/PG_VERSION'), '11\n');
    await expect(startEmbeddedPostgres({ dataDir: other, log })).rejects.toThrow(
      /did not start.*DATABASE_URL.*incompatible with server/s,
    );
    writeFileSync(join(other, 'postgres/data/PG_VERSION'), '18\n');
    await (await startEmbeddedPostgres({ dataDir: other, log, unsafeForTests: true })).stop();
  });

  it.runIf(process.geteuid?.() === 0)('is said: data of another user', async () => {
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

/** Starts PostgreSQL in a process of its own, which can be killed. Resolves with its URL or its error's message. */
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
    // `kill` is false for a service that has ended, whose `exit` does not come again.
    if (service.kill('SIGKILL')) await once(service, 'exit');
  }
}

function postmasterPid(): number {
  return Number.parseInt(readFileSync(pidFile, 'utf8'), 10);
}

/** A zombie, which nobody has waited for yet, does not count. */
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

/** kill -9 of the session's process, upon which PostgreSQL restarts all of them and recovers. */
async function killBackend(client: pg.Client): Promise<void> {
  await sleep(100);
  process.kill((client as unknown as { processID: number }).processID, 'SIGKILL');
}
