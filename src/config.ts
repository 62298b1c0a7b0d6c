import { readFileSync } from 'node:fs';
import type { BlockList } from 'node:net';
import { join } from 'node:path';
import { createSecureContext } from 'node:tls';
import { DEFAULT_MAX_IN_FLIGHT, DEFAULT_WORKERS } from './machine.ts';
import { type Environment, isUrlOf, variablesOf } from './variables.ts';

/** The process's configuration. Only this file reads process.env; docs/configuration.md lists the variables. */
export type Config = {
  readonly host: string;
  readonly port: number;
  readonly tls: { readonly cert: Buffer; readonly key: Buffer } | undefined;
  /** If undefined, the service starts its own PostgreSQL. */
  readonly databaseUrl: string | undefined;
  /** The database itself, if a connection pooler is in front of it at `databaseUrl`. */
  readonly databaseDirectUrl: string | undefined;
  /** URL at which providers and payers reach us, without a trailing slash; if undefined, the address listened on. */
  readonly publicUrl: string | undefined;
  /** Proxies whose X-Forwarded-For is trusted. If there are none, the peer is the client. */
  readonly trustedProxies: BlockList;
  /** Number of serving processes. */
  readonly workers: number;
  /** Database connections of one replica, divided among its workers. */
  readonly databaseMaxConnections: number;
  /** Accepts a database that acknowledges commits that a crash can undo. */
  readonly allowUnsafeDatabase: boolean;
  readonly dataDir: string | undefined;
  /** Name of the person who runs a command, for the audit log, in addition to the system's user and host. */
  readonly actor: string | undefined;
  /** The file with the catalogue; if undefined, the database has it. */
  readonly catalogueFile: string | undefined;
  /** Hosts that connections' settings may name when the catalogue is changed through the API. */
  readonly connectionHosts: readonly string[];
  /** The vault's keys by id, current first; if undefined, the embedded database's own, made at its first start. */
  readonly vaultKeys: ReadonlyMap<string, Uint8Array> | undefined;
  /** Key for hashing card fingerprints and requests; if undefined, the embedded database's own. */
  readonly hashKey: Uint8Array | undefined;
  /** Each permits the operators' calls, and opens the whole dashboard. Without keys, the calls are disabled. */
  readonly operatorKeys: readonly string[];
  /** Each opens the dashboard read-only, and permits nothing else. */
  readonly operatorReadKeys: readonly string[];
  /** Mounts the operators' dashboard, which requires a key. */
  readonly dashboard: boolean;
  /** Mounts the sandbox provider. */
  readonly sandbox: boolean;
  /** URL at which payers reach the sandbox's pages, if it is not the address listened on. */
  readonly sandboxPublicUrl: string | undefined;
  /** Describes the services to any client by gRPC server reflection. */
  readonly reflection: boolean;
  /** Serves the API reference at /docs, and the OpenAPI document that it shows. */
  readonly docs: boolean;
  /** Serves the checkout page, where payers pay a checkout session. */
  readonly checkoutPage: boolean;
  /** Serves a page at / with links to all others. */
  readonly homePage: boolean;
  readonly logLevel: string;
  /** Time that a repeated call waits for the first call's response before it gets REQUEST_IN_PROGRESS. */
  readonly inProgressWaitMs: number;
  /** Limit on one replica's calls in flight: from the end of the body until the client has the response. */
  readonly maxInFlight: number;
  /** Limit on calls that are working: waiting neither for a provider nor for the client to receive the response. */
  readonly maxAtWork: number;
  /** Percentage of the limits on calls in flight and on working calls that one account may use. */
  readonly accountSharePercent: number;
  /** Percentage of the share for calls without a verified secret that one client address may hold. */
  readonly addressSharePercent: number;
  /** Limit on one account's calls in one replica: on average, and in a burst after a pause. */
  readonly rateLimitPerS: number;
  readonly rateLimitBurst: number;
  readonly checkSchedule: {
    /** Time that a lease lasts beyond the provider's deadline, for the work around the call. */
    readonly leaseMarginMs: number;
    /** Pause before the first check of an unknown outcome; each later pause is half its age, at most a day. */
    readonly firstCheckMs: number;
    /** Time after a request's deadline at which a provider that does not know the request is asked to close it. */
    readonly closingMarginMs: number;
  };
  /** Accepts webhooks at private, loopback and link-local addresses, and over http. */
  readonly webhooksAllowPrivate: boolean;
  /** Pause between two searches for due checks. */
  readonly recoveryIntervalMs: number;
  /** Time that a shutdown waits for work in flight. */
  readonly drainTimeoutMs: number;
  /** OpenTelemetry's OTLP/HTTP endpoint; if undefined, no traces are sent. */
  readonly otlpEndpoint: string | undefined;
  /** URL of the forward proxy through which to reach the providers; if undefined, they are reached directly. */
  readonly providerProxyUrl: string | undefined;
  /** Reads a variable that the catalogue's secrets_from_environment names. */
  readonly environment: (name: string) => string | undefined;
};

/** Error that names every wrong setting, but no value. */
export class ConfigError extends Error {
  override readonly name = 'ConfigError';
}

/** The operator key of a sandbox with an embedded database; published on purpose. */
export const SANDBOX_OPERATOR_KEY = 'op_sandbox';

/** The read-only dashboard key of such a sandbox; published on purpose. */
export const SANDBOX_OPERATOR_READ_KEY = 'op_sandbox_read';

/** Root of the source checkout, which contains the sandbox's catalogue and the default data directory. */
export const CHECKOUT_DIR = join(import.meta.dirname, '..');

/** The sandbox's catalogue: the first version, if no file has the catalogue. */
export const SANDBOX_CATALOGUE = join(CHECKOUT_DIR, 'config/sandbox-catalogue.yaml');

/**
 * Reads the configuration.
 *
 * @throws ConfigError that names every wrong variable, but no value.
 */
export function readConfig(environment: Environment = process.env): Config {
  const problems: string[] = [];
  const { text, integer, flag, oneOf, httpUrl, proxyUrl, networks } = variablesOf(environment, problems);
  const { databaseUrl, databaseDirectUrl, dataDir, actor } = readData(environment, problems);
  const sandbox = flag('SANDBOX', true);
  const config: Config = {
    host: text('HOST') ?? '127.0.0.1',
    port: integer('PORT', 8080, 0, 65_535),
    tls: readTls(text('TLS_CERT_FILE'), text('TLS_KEY_FILE'), problems),
    workers: integer('WORKERS', DEFAULT_WORKERS, 1, 64),
    databaseUrl,
    databaseDirectUrl,
    databaseMaxConnections: integer('DATABASE_MAX_CONNECTIONS', 16, 1, 1_000),
    allowUnsafeDatabase: flag('ALLOW_UNSAFE_DATABASE', false),
    dataDir,
    actor,
    catalogueFile: readCatalogueFile(environment),
    connectionHosts: readHosts('CONNECTION_HOSTS', text, problems),
    vaultKeys: readVaultKeys(text('VAULT_KEYS'), problems),
    hashKey: readKey('HASH_KEY', text('HASH_KEY'), problems),
    operatorKeys:
      readOperatorKeys('OPERATOR_KEYS', text, problems) ??
      (sandbox && !databaseUrl ? [SANDBOX_OPERATOR_KEY] : []),
    operatorReadKeys:
      readOperatorKeys('OPERATOR_READ_KEYS', text, problems) ??
      (sandbox && !databaseUrl ? [SANDBOX_OPERATOR_READ_KEY] : []),
    dashboard: flag('DASHBOARD', true),
    sandbox,
    publicUrl: httpUrl('PUBLIC_URL')?.replace(/\/+$/, ''),
    trustedProxies: networks('TRUSTED_PROXIES'),
    sandboxPublicUrl: httpUrl('SANDBOX_PUBLIC_URL')?.replace(/\/+$/, ''),
    reflection: flag('REFLECTION', sandbox),
    docs: flag('DOCS', sandbox),
    checkoutPage: flag('CHECKOUT_PAGE', true),
    homePage: flag('HOME_PAGE', sandbox),
    logLevel: oneOf('LOG_LEVEL', ['trace', 'debug', 'info', 'warn', 'error', 'fatal', 'silent'], 'info'),
    inProgressWaitMs: integer('IN_PROGRESS_WAIT_MS', 5_000, 0, 60_000),
    maxInFlight: integer('MAX_IN_FLIGHT', DEFAULT_MAX_IN_FLIGHT, 1, 100_000),
    maxAtWork: integer('MAX_AT_WORK', 256, 1, 100_000),
    accountSharePercent: integer('ACCOUNT_SHARE_PERCENT', 75, 1, 100),
    addressSharePercent: integer('ADDRESS_SHARE_PERCENT', 50, 1, 100),
    rateLimitPerS: integer('RATE_LIMIT_PER_S', 2_000, 1, 1_000_000),
    rateLimitBurst: integer('RATE_LIMIT_BURST', 4_000, 1, 1_000_000),
    checkSchedule: {
      leaseMarginMs: integer('LEASE_MARGIN_MS', 10_000, 1_000, 600_000),
      firstCheckMs: integer('LOOK_UP_FIRST_MS', 5_000, 10, 600_000),
      closingMarginMs: integer('CLOSING_MARGIN_MS', 10_000, 0, 600_000),
    },
    webhooksAllowPrivate: flag('WEBHOOKS_ALLOW_PRIVATE', sandbox && !databaseUrl),
    recoveryIntervalMs: integer('RECOVERY_INTERVAL_MS', 1_000, 10, 600_000),
    drainTimeoutMs: integer('DRAIN_TIMEOUT_MS', 25_000, 0, 600_000),
    otlpEndpoint: httpUrl('OTEL_EXPORTER_OTLP_ENDPOINT'),
    providerProxyUrl: proxyUrl('PROVIDER_PROXY_URL'),
    environment: text,
  };
  if (config.operatorReadKeys.some((key) => config.operatorKeys.includes(key))) {
    problems.push('OPERATOR_KEYS and OPERATOR_READ_KEYS must not share a key: its role would be unclear');
  }
  if (databaseUrl && !config.vaultKeys) problems.push('VAULT_KEYS is required with DATABASE_URL');
  if (databaseUrl && !config.hashKey) problems.push('HASH_KEY is required with DATABASE_URL');
  if (problems.length > 0) throw new ConfigError(problems.join('; '));
  return config;
}

/**
 * Finds a command's options that npm has taken as its own settings, as it does with all options before `--`.
 *
 * @returns their names with the script's; undefined if there are none.
 */
export function keptByNpm(
  names: readonly string[],
  environment: Environment = process.env,
): { readonly script: string; readonly options: readonly string[] } | undefined {
  const script = environment.npm_lifecycle_event;
  const options = names.filter((name) => environment[`npm_config_${name.replaceAll('-', '_')}`]);
  return script && options.length > 0 ? { script, options } : undefined;
}

/** Reads the path of the catalogue's file; undefined if the database has the catalogue. */
export function readCatalogueFile(environment: Environment = process.env): string | undefined {
  return environment.CATALOGUE_FILE || undefined;
}

/**
 * Reads the settings that locate the data, the only ones that a command about accounts needs.
 *
 * @throws ConfigError.
 */
export function readDataConfig(environment: Environment = process.env): DataConfig {
  const problems: string[] = [];
  const data = readData(environment, problems);
  if (problems.length > 0) throw new ConfigError(problems.join('; '));
  return data;
}

/** The settings that every command that uses the data needs. */
export type DataConfig = Pick<Config, 'databaseUrl' | 'databaseDirectUrl' | 'dataDir' | 'actor'>;

const ACTOR = /^[^\p{Cc}]{1,255}$/u;

function readData(environment: Environment, problems: string[]): DataConfig {
  const databaseUrl = readDatabaseUrl('DATABASE_URL', environment, problems);
  const databaseDirectUrl = readDatabaseUrl('DATABASE_DIRECT_URL', environment, problems);
  if (databaseDirectUrl !== undefined && databaseUrl === undefined) {
    problems.push('DATABASE_URL is required with DATABASE_DIRECT_URL, and names the pooler');
  }
  const actor = environment.ACTOR || undefined;
  if (actor !== undefined && !ACTOR.test(actor)) {
    problems.push('ACTOR must be 1 to 255 characters without control characters');
  }
  return { databaseUrl, databaseDirectUrl, dataDir: environment.DATA_DIR || undefined, actor };
}

function readDatabaseUrl(name: string, { [name]: url }: Environment, problems: string[]): string | undefined {
  if (url && !isUrlOf(url, ['postgres:', 'postgresql:'])) {
    problems.push(`${name} must be a URL such as postgres://user:password@host:5432/database`);
  }
  return url || undefined;
}

function readTls(
  certFile: string | undefined,
  keyFile: string | undefined,
  problems: string[],
): Config['tls'] {
  if (!certFile && !keyFile) return undefined;
  if (!certFile || !keyFile) {
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must be set together');
    return undefined;
  }
  const read = (name: string, file: string) => {
    try {
      return readFileSync(file);
    } catch (error) {
      problems.push(`${name} cannot be read (${(error as NodeJS.ErrnoException).code})`);
      return undefined;
    }
  };
  const cert = read('TLS_CERT_FILE', certFile);
  const key = read('TLS_KEY_FILE', keyFile);
  if (!cert || !key) return undefined;
  try {
    createSecureContext({ cert, key });
  } catch {
    problems.push('TLS_CERT_FILE and TLS_KEY_FILE must contain a certificate and its key, in PEM');
  }
  return { cert, key };
}

// 22 characters of base64 are 128 bits. Printable ASCII, as in a header; no comma, which separates keys.
const OPERATOR_KEY = /^[!-+\--~]{22,255}$/;

/** Reads `key,key`. */
function readOperatorKeys(
  name: string,
  text: (name: string) => string | undefined,
  problems: string[],
): readonly string[] | undefined {
  const keys = text(name)
    ?.split(',')
    .map((key) => key.trim());
  if (keys?.some((key) => !OPERATOR_KEY.test(key))) {
    problems.push(`${name} must be key[,key…], each of 22 to 255 printable ASCII characters`);
  }
  return keys;
}

/** Reads `host,host`, each as in a URL: with its port, unless that is the default one. */
function readHosts(
  name: string,
  text: (name: string) => string | undefined,
  problems: string[],
): readonly string[] {
  const hosts = text(name)?.split(',') ?? [];
  const read = hosts.map((host) => host.trim().toLowerCase());
  if (read.some((host) => URL.parse(`https://${host}`)?.host !== host)) {
    problems.push(`${name} must be host[,host…], such as api.provider.example`);
  }
  return read;
}

const KEY_BYTES = 32;
const VAULT_KEY = /^([A-Za-z0-9_-]{1,64}):(.+)$/;

/** Reads `id:key,id:key`, the current key first. */
function readVaultKeys(value: string | undefined, problems: string[]): Config['vaultKeys'] {
  if (value === undefined) return undefined;
  const keys = new Map<string, Uint8Array>();
  for (const entry of value.split(',')) {
    const [, id, encoded] = VAULT_KEY.exec(entry.trim()) ?? [];
    const key = id && !keys.has(id) ? readKey('VAULT_KEYS', encoded, problems) : undefined;
    if (!id || !key) {
      problems.push('VAULT_KEYS must be id:key[,id:key…] with different ids');
      return undefined;
    }
    keys.set(id, key);
  }
  return keys;
}

function readKey(name: string, encoded: string | undefined, problems: string[]): Uint8Array | undefined {
  if (encoded === undefined) return undefined;
  const key = Buffer.from(encoded, 'base64');
  if (key.length === KEY_BYTES) return key;
  problems.push(`${name} must contain keys of ${KEY_BYTES} bytes in base64`);
  return undefined;
}
