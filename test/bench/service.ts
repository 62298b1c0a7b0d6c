import { type ChildProcess, execFileSync, spawn } from 'node:child_process';
import { createHash, randomBytes } from 'node:crypto';
import { openSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import pg from 'pg';
import { POOL_SIZE } from './bare-payment.ts';
import { ACCOUNT_ID, PUBLIC_KEY, SECRET_KEY } from './request.ts';

/** The service as `npm start` runs it, with its log in a file. */
export type Service = { readonly pid: number; readonly port: number; stop(): Promise<void> };

const ROOT = join(import.meta.dirname, '../..');
const START_TIMEOUT_MS = 30_000;
/** Keys of this run, shared by all services on one database. */
const KEYS = {
  VAULT_KEYS: `bench:${randomBytes(32).toString('base64')}`,
  HASH_KEY: randomBytes(32).toString('base64'),
};

/** Starts the service with the database and the provider stub. Its files are in `home` under its name. */
export async function startService(options: {
  readonly name: string;
  readonly home: string;
  readonly databaseUrl: string;
  readonly providerPort: number;
  /** Command-line options of Node. */
  readonly nodeOptions: readonly string[];
  /** The number of routes that a payment skips before its own; none by default. */
  readonly routesBefore?: number;
  /** Settings of the connection to the provider stub, as in the catalogue. */
  readonly terms?: { readonly timeoutMs?: number | undefined; readonly maxInFlight?: number | undefined };
  /**
   * Port of a provider that hangs: payments of 200,000.00 or more go to it alone, and those of 300,000.00 or more fail
   * over from it.
   */
  readonly hangingPort?: number | undefined;
  /** Number of connections, each for an account of its own, that no payment uses; none by default. */
  readonly connectionsBeside?: number;
  /** The catalogue is published in the database instead of read from a file. */
  readonly inDatabase?: true;
  /** Number of worker processes; one by default. */
  readonly workers?: number;
  /** Other settings. */
  readonly environment?: Readonly<Record<string, string>>;
  /** The checkout whose service is started; this one by default. */
  readonly checkout?: string;
}): Promise<Service> {
  const { name, home, checkout = ROOT } = options;
  const catalogueFile = join(home, `${name}.yaml`);
  writeFileSync(catalogueFile, catalogue(options));
  const env = {
    PORT: '0',
    WORKERS: String(options.workers ?? 1),
    DATABASE_URL: options.databaseUrl,
    DATABASE_MAX_CONNECTIONS: String(POOL_SIZE),
    ...KEYS,
    CATALOGUE_FILE: options.inDatabase ? '' : catalogueFile,
    SANDBOX: 'off',
    WEBHOOKS_ALLOW_PRIVATE: 'on',
    LOG_LEVEL: 'info',
    // Refusals are not measured here.
    RATE_LIMIT_PER_S: '1000000',
    RATE_LIMIT_BURST: '1000000',
    BENCH_PROVIDER_KEY: 'bench',
    ...options.environment,
  };
  if (options.inDatabase) {
    const command = ['src/commands/catalogue.ts', 'publish', catalogueFile, '--comment', 'a benchmark'];
    execFileSync(process.execPath, [...command, '--secrets-from-environment'], {
      cwd: checkout,
      env: { ...process.env, ...env },
    });
  }
  return launch({ name, home, checkout, nodeOptions: options.nodeOptions, env });
}

/**
 * Runs `npm start`. Its log is the file `<name>.log` in `home`.
 *
 * @param options.nodeOptions command-line options of Node.
 * @param options.env settings; those that are absent have their defaults.
 */
export async function launch({
  name,
  home,
  checkout = ROOT,
  nodeOptions = [],
  env,
}: {
  readonly name: string;
  readonly home: string;
  readonly checkout?: string;
  readonly nodeOptions?: readonly string[];
  readonly env: Readonly<Record<string, string>>;
}): Promise<Service> {
  const logFile = join(home, `${name}.log`);
  const start = startCommand(checkout);
  const child = spawn(process.execPath, [...nodeOptions, ...start.arguments], {
    cwd: checkout,
    env: { ...process.env, ...start.environment, ...env },
    stdio: ['ignore', openSync(logFile, 'w'), 'pipe'],
  });
  const port = await readPort(child);
  const onExit = () => console.error(`the service exited by itself: ${lastLine(logFile)}`);
  child.once('exit', onExit);
  return { pid: child.pid ?? 0, port, stop: () => stop(child.off('exit', onExit)) };
}

/** The variables that `npm start` sets, and its arguments to Node: options, if any, and the script. */
function startCommand(checkout: string): { environment: Record<string, string>; arguments: string[] } {
  const { scripts } = JSON.parse(readFileSync(join(checkout, 'package.json'), 'utf8'));
  const words: string[] = scripts.start.split(' ');
  const node = words.indexOf('node');
  const variables = words.slice(0, node).map((word) => word.split('='));
  return { environment: Object.fromEntries(variables), arguments: words.slice(node + 1) };
}

function lastLine(file: string): string {
  return readFileSync(file, 'utf8').trimEnd().split('\n').at(-1) ?? '';
}

/** Adds the account whose keys the requests send, with statements that work with the schema of any release. */
export async function addAccount(databaseUrl: string): Promise<void> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const hash = createHash('sha256').update(SECRET_KEY).digest();
  await client.query('INSERT INTO account (id, name) VALUES ($1, $2)', [ACCOUNT_ID, 'Bench']);
  await client.query('INSERT INTO public_key (public_key, account_id) VALUES ($1, $2)', [
    PUBLIC_KEY,
    ACCOUNT_ID,
  ]);
  await client.query('INSERT INTO secret_key (id, account_id, secret_hash) VALUES ($1, $1, $2)', [
    ACCOUNT_ID,
    hash,
  ]);
  await client.end();
}

/**
 * Conditions as merchants write them: no benchmark payment matches any of them, and each fails only in its last
 * operand.
 */
const CONDITIONS = [
  "category == 'CARD' && country in ['CL', 'PE'] && amount < 10",
  "card_brand == 'VISA' && issuer_country != country",
  "type == 'CARD' && currency == 'USD' && installments > 48",
  "has_airline == false && iin.startsWith('9')",
  "!vaulted && issuer_type == 'CREDIT' && iin in ['41111111', '51051051', '55555555']",
];

type CatalogueOption = 'providerPort' | 'routesBefore' | 'connectionsBeside' | 'terms' | 'hangingPort';

/** Writes a catalogue with the provider stub. @returns its YAML. */
export function catalogue({
  providerPort,
  routesBefore = 0,
  connectionsBeside = 0,
  terms = {},
  hangingPort,
}: Pick<Parameters<typeof startService>[0], CatalogueOption>): string {
  const before = Array.from({ length: routesBefore }, (_, i) => {
    const condition = JSON.stringify(CONDITIONS[i % CONDITIONS.length]);
    return `  - { id: ${i + 2}, condition: ${condition}, targets: [{ connection: bench }] }\n`;
  });
  const connection = (id: string, port: number) => `
  - id: ${id}
    provider_id: BENCH
    connector: sandbox
    settings: { base_url: "http://127.0.0.1:${port}", timeout_ms: ${terms.timeoutMs ?? 10_000} }
    secrets_from_environment: { api_key: BENCH_PROVIDER_KEY }${terms.maxInFlight ? `\n    max_in_flight: ${terms.maxInFlight}` : ''}`;
  const connections = [connection('bench', providerPort)];
  const accounts = Array.from({ length: connectionsBeside }, (_, i) => {
    const accountId = `00000000-0000-4000-8000-${String(i).padStart(12, '0')}`;
    connections.push(`${connection(`beside-${i}`, providerPort)}\n    account_ids: [${accountId}]`);
    return `\n      - { account_ids: [${accountId}], targets: [{ connection: beside-${i} }] }`;
  });
  if (hangingPort) {
    connections.push(connection('hanging', hangingPort), connection('failing', hangingPort));
    before.push(
      '  - { id: 1001, condition: "amount >= 300000", targets: [{ connection: failing }, { connection: bench }] }\n',
      '  - { id: 1002, condition: "amount >= 200000", targets: [{ connection: hanging }] }\n',
    );
  }
  return `
payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
connections:${connections.join('')}
routes:
${before.join('')}  - id: 1
    name: Everything
    targets: [{ connection: bench }]
    accounts:${accounts.join('') || ' []'}
bins:
  - { prefix: "40518856", issuer_name: Bench Bank, issuer_code: BB, country_code: CL, category: GOLD, type: CREDIT }
`;
}

/** The service prints its URL once it listens. */
function readPort(child: ChildProcess): Promise<number> {
  let said = '';
  return new Promise((resolve, reject) => {
    const fail = (why: string) => reject(new Error(`the service ${why}: ${said}`));
    const late = setTimeout(fail, START_TIMEOUT_MS, 'did not start in time');
    child.once('exit', () => fail('ended'));
    child.stderr?.setEncoding('utf8').on('data', (text: string) => {
      said += text;
      const port = /http:\/\/127\.0\.0\.1:(\d+)/.exec(said)?.[1];
      if (!port) return;
      clearTimeout(late);
      resolve(Number(port));
    });
  });
}

async function stop(child: ChildProcess): Promise<void> {
  if (child.exitCode !== null || child.signalCode !== null) return;
  const exited = new Promise((resolve) => child.once('exit', resolve));
  child.kill('SIGTERM');
  await exited;
}
