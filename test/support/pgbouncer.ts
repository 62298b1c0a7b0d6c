import { type ChildProcess, spawn, spawnSync } from 'node:child_process';
import { once } from 'node:events';
import { chmodSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { freePort } from './free-port.ts';

/** PgBouncer in front of a test's database. */
export type PgBouncer = {
  /** The URL of the database through it. */
  readonly url: string;
  /** Its entire log. */
  readonly log: () => string;
  /** Kills it at once, like a crash. */
  kill(): Promise<void>;
  /** Starts it again at the same URL. */
  restart(): Promise<void>;
  close(): Promise<void>;
};

/** The minor version of the PgBouncer in PATH, such as 24 for 1.24; undefined if there is none. */
export function pgBouncerMinor(): number | undefined {
  const { stdout } = spawnSync('pgbouncer', ['--version'], { encoding: 'utf8' });
  const [, minor] = /^PgBouncer 1\.(\d+)/m.exec(stdout ?? '') ?? [];
  return minor === undefined ? undefined : Number(minor);
}

/** PgBouncer refuses to run as root; this user may run it. */
const NOBODY = { uid: 65_534, gid: 65_534 };

/** Starts PgBouncer with the given settings on a free loopback port and waits until it accepts connections. */
export async function startPgBouncer(
  databaseUrl: string,
  settings: Readonly<Record<string, string | number>>,
): Promise<PgBouncer> {
  const home = mkdtempSync(join(tmpdir(), 'pgbouncer-'));
  chmodSync(home, 0o755);
  const file = join(home, 'pgbouncer.ini');
  const { hostname, port, username, password } = new URL(databaseUrl);
  const url = new URL(databaseUrl);
  url.port = String(await freePort());
  const all = {
    listen_addr: '127.0.0.1',
    listen_port: url.port,
    unix_socket_dir: '',
    // The database entries contain user and password.
    auth_type: 'any',
    ...settings,
  };
  const lines = Object.entries(all).map(([name, value]) => `${name} = ${value}`);
  const database = `* = host=${hostname} port=${port} user=${username} password=${password}`;
  writeFileSync(file, ['[databases]', database, '[pgbouncer]', ...lines, ''].join('\n'));

  let child: ChildProcess;
  let log = '';
  const start = async () => {
    child = spawn('pgbouncer', [file], {
      stdio: ['ignore', 'ignore', 'pipe'],
      ...(process.geteuid?.() === 0 && NOBODY),
    });
    const serves = Promise.withResolvers<void>();
    child.stderr?.setEncoding('utf8').on('data', (text) => {
      log += text;
      if (/process up/.test(text)) serves.resolve();
    });
    child.once('close', () => serves.reject(new Error(`PgBouncer ended: ${log}`)));
    child.once('error', serves.reject);
    await serves.promise;
  };
  const kill = async () => {
    if (child.exitCode !== null || child.signalCode !== null) return;
    const closed = once(child, 'close');
    child.kill('SIGKILL');
    await closed;
  };
  await start();
  return {
    url: url.href,
    log: () => log,
    kill,
    restart: start,
    async close() {
      await kill();
      rmSync(home, { recursive: true, force: true });
    },
  };
}
