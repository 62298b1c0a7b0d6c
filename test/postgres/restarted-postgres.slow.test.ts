import { chmodSync, existsSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { pino } from 'pino';
import { afterAll, afterEach, expect, it, vi } from 'vitest';
import { type EmbeddedPostgres, startEmbeddedPostgres } from '#src/postgres/embedded-postgres.ts';
import { runIn } from '../support/run-in.ts';

// Every user can enter the directory, including the user as whom root runs PostgreSQL.
const home = mkdtempSync(join(tmpdir(), 'restarted-postgres-'));
chmodSync(home, 0o711);
const dataDir = join(home, 'data');
const pidFile = join(dataDir, 'postgres/data/postmaster.pid');
const postmasterPid = () => Number.parseInt(readFileSync(pidFile, 'utf8'), 10);

let postgres: EmbeddedPostgres | undefined;

afterEach(async () => {
  await postgres?.stop();
});
afterAll(() => rmSync(home, { recursive: true, force: true }));

/** Returns a log that keeps its warnings and errors. */
function notedLog() {
  const lines: unknown[][] = [];
  const note = (...entry: unknown[]) => void lines.push(entry);
  const noted = { ...pino({ level: 'silent' }), info() {}, warn: note, error: note } as never;
  return { noted, lines };
}

it('a PostgreSQL that is killed is restarted on its port with its data, and the log says so', async () => {
  const { noted, lines } = notedLog();
  postgres = await startEmbeddedPostgres({ dataDir, log: noted });
  const { url } = postgres;
  await runIn(url, 'CREATE TABLE kept AS SELECT 1 AS id');
  process.kill(postmasterPid(), 'SIGKILL');
  await vi.waitFor(() => expect(lines).toHaveLength(2));
  expect(lines).toEqual([
    [expect.objectContaining({ signal: 'SIGKILL' }), 'PostgreSQL exited unexpectedly and is being restarted'],
    [{ pid: postmasterPid() }, 'PostgreSQL runs again'],
  ]);
  expect(await runIn(url, 'DROP TABLE kept')).toBeDefined();
  await postgres.stop();
  expect(existsSync(pidFile)).toBe(false);
});

it('a PostgreSQL that keeps exiting is given up after five restarts, and releases the data when it stops', async () => {
  const { noted, lines } = notedLog();
  let losses = 0;
  const lost = () => {
    losses += 1;
  };
  postgres = await startEmbeddedPostgres({ dataDir, log: noted, lost });
  for (let restarts = 0; restarts <= 5; restarts++) {
    process.kill(postmasterPid(), 'SIGKILL');
    await vi.waitFor(() => expect(lines).toHaveLength(Math.min(2 * (restarts + 1), 11)));
  }
  expect(losses).toBe(1);
  expect(lines.at(-1)?.[1]).toBe('PostgreSQL keeps exiting and is not restarted any more');
  await postgres.stop();
  postgres = await startEmbeddedPostgres({ dataDir, log: noted });
});

it('a PostgreSQL that is killed while it is being stopped is not restarted', async () => {
  const { noted, lines } = notedLog();
  postgres = await startEmbeddedPostgres({ dataDir, log: noted });
  process.kill(postmasterPid(), 'SIGKILL');
  await postgres.stop();
  expect(lines).toEqual([]);
});
