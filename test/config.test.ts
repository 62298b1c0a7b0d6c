import { join } from 'node:path';
import { expect, it } from 'vitest';
import { ConfigError, readCatalogueFile, readConfig, readDataConfig } from '#src/config.ts';

const KEY = Buffer.alloc(32, 7).toString('base64');
const KEYS = { VAULT_KEYS: `one:${KEY}`, HASH_KEY: KEY };
const CERT = join(import.meta.dirname, 'support/tls/cert.pem');
const TLS_KEY = join(import.meta.dirname, 'support/tls/key.pem');

it('with no variables set, the service runs the sandbox on the loopback interface with an embedded database', () => {
  const { host, port, databaseUrl, sandbox, tls, otlpEndpoint, allowUnsafeDatabase } = readConfig({});
  expect({ host, port, databaseUrl, sandbox, tls, otlpEndpoint, allowUnsafeDatabase }).toEqual({
    host: '127.0.0.1',
    port: 8080,
    databaseUrl: undefined,
    sandbox: true,
    tls: undefined,
    otlpEndpoint: undefined,
    allowUnsafeDatabase: false,
  });
});

it('an empty variable counts as unset', () => {
  expect(readConfig({ PORT: '', DATABASE_URL: '', VAULT_KEYS: '', SANDBOX: '' })).toEqual({
    ...readConfig({}),
    environment: expect.any(Function),
  });
});

it('the vault keys are read in order, the current one first', () => {
  const other = Buffer.alloc(32, 8).toString('base64');
  const { vaultKeys } = readConfig({ ...KEYS, VAULT_KEYS: `new:${other},old:${KEY}` });
  expect([...(vaultKeys ?? [])]).toEqual([
    ['new', Buffer.alloc(32, 8)],
    ['old', Buffer.alloc(32, 7)],
  ]);
});

it('the certificate and its key are read from their files', () => {
  const { tls } = readConfig({ TLS_CERT_FILE: CERT, TLS_KEY_FILE: TLS_KEY });
  expect(String(tls?.cert)).toMatch(/^-----BEGIN CERTIFICATE/);
});

it('operator keys are read, and the public default applies only to the sandbox with an embedded database', () => {
  const long = 'k'.repeat(22);
  const database = { ...KEYS, DATABASE_URL: 'postgres://host/db' };
  expect(readConfig({ OPERATOR_KEYS: `${long}, ${long}+/=` }).operatorKeys).toEqual([long, `${long}+/=`]);
  expect(readConfig({}).operatorKeys).toEqual(['op_sandbox']);
  expect(readConfig({ SANDBOX: 'off' }).operatorKeys).toEqual([]);
  expect(readConfig(database).operatorKeys).toEqual([]);
  expect(readConfig({ ...database, OPERATOR_KEYS: long }).operatorKeys).toEqual([long]);
});

it('webhooks at private addresses are allowed by default only with the sandbox and the embedded database', () => {
  expect(readConfig({}).webhooksAllowPrivate).toBe(true);
  expect(readConfig({ SANDBOX: 'off' }).webhooksAllowPrivate).toBe(false);
  const database = { ...KEYS, DATABASE_URL: 'postgres://host/db' };
  expect(readConfig(database).webhooksAllowPrivate).toBe(false);
  expect(readConfig({ ...database, WEBHOOKS_ALLOW_PRIVATE: 'on' }).webhooksAllowPrivate).toBe(true);
});

it('reflection is on by default only with the sandbox', () => {
  expect(readConfig({}).reflection).toBe(true);
  expect(readConfig({ SANDBOX: 'off' }).reflection).toBe(false);
  expect(readConfig({ SANDBOX: 'off', REFLECTION: 'on' }).reflection).toBe(true);
  expect(readConfig({ REFLECTION: 'off' }).reflection).toBe(false);
});

it('trusted proxies can be addresses and networks of both IP versions, and there are none by default', () => {
  const { trustedProxies } = readConfig({ TRUSTED_PROXIES: '192.0.2.1, 10.0.0.0/8,2001:db8::/32' });
  const isTrusted = (address: string, version: 'ipv4' | 'ipv6') => trustedProxies.check(address, version);
  expect([isTrusted('192.0.2.1', 'ipv4'), isTrusted('192.0.2.2', 'ipv4')]).toEqual([true, false]);
  expect([isTrusted('10.9.9.9', 'ipv4'), isTrusted('::ffff:10.9.9.9', 'ipv6')]).toEqual([true, true]);
  expect([isTrusted('2001:db8::7', 'ipv6'), isTrusted('2001:db9::7', 'ipv6')]).toEqual([true, false]);
  expect(readConfig({}).trustedProxies.rules).toEqual([]);
});

it('a command can read the location of the catalogue despite an invalid PORT', () => {
  expect(readCatalogueFile({ CATALOGUE_FILE: '/c.yaml', PORT: 'abc' })).toBe('/c.yaml');
  expect(readCatalogueFile({})).toBe(readConfig({}).catalogueFile);
});

it.each([
  [{ PORT: 'abc' }, 'PORT must be an integer from 0 to 65535'],
  [{ LEASE_MARGIN_MS: '999' }, 'LEASE_MARGIN_MS must be an integer from 1000 to 600000'],
  [{ PORT: '65536' }, 'PORT must be an integer from 0 to 65535'],
  [{ PORT: '80.5' }, 'PORT must be an integer from 0 to 65535'],
  [{ SANDBOX: 'yes' }, 'SANDBOX must be on or off'],
  [{ LOG_LEVEL: 'loud' }, 'LOG_LEVEL must be one of trace, debug, info, warn, error, fatal, silent'],
  [
    { ...KEYS, DATABASE_URL: 'host/db' },
    'DATABASE_URL must be a URL such as postgres://user:password@host:5432/database',
  ],
  [
    { ...KEYS, DATABASE_URL: 'mysql://host/db' },
    'DATABASE_URL must be a URL such as postgres://user:password@host:5432/database',
  ],
  [
    { ...KEYS, DATABASE_URL: 'postgres://pooler/db', DATABASE_DIRECT_URL: 'host/db' },
    'DATABASE_DIRECT_URL must be a URL such as postgres://user:password@host:5432/database',
  ],
  [
    { DATABASE_DIRECT_URL: 'postgres://host/db' },
    'DATABASE_URL is required with DATABASE_DIRECT_URL, and names the pooler',
  ],
  [{ DATABASE_URL: 'postgres://host/db', HASH_KEY: KEY }, 'VAULT_KEYS is required with DATABASE_URL'],
  [
    { DATABASE_URL: 'postgres://host/db', VAULT_KEYS: `one:${KEY}` },
    'HASH_KEY is required with DATABASE_URL',
  ],
  [{ VAULT_KEYS: KEY }, 'VAULT_KEYS must be id:key[,id:key…] with different ids'],
  [{ VAULT_KEYS: `a:${KEY},a:${KEY}` }, 'VAULT_KEYS must be id:key[,id:key…] with different ids'],
  [{ HASH_KEY: 'c2hvcnQ=' }, 'HASH_KEY must contain keys of 32 bytes in base64'],
  ...['short', `${'k'.repeat(22)},short`, `${'k'.repeat(22)},`, 'k'.repeat(256), `k k${'k'.repeat(22)}`].map(
    (keys): [Record<string, string>, string] => [
      { OPERATOR_KEYS: keys },
      'OPERATOR_KEYS must be key[,key…], each of 22 to 255 printable ASCII characters',
    ],
  ),
  [{ TLS_CERT_FILE: CERT }, 'TLS_CERT_FILE and TLS_KEY_FILE must be set together'],
  [{ TLS_CERT_FILE: '/no/cert.pem', TLS_KEY_FILE: TLS_KEY }, 'TLS_CERT_FILE cannot be read (ENOENT)'],
  [
    { TLS_CERT_FILE: CERT, TLS_KEY_FILE: CERT },
    'TLS_CERT_FILE and TLS_KEY_FILE must contain a certificate and its key, in PEM',
  ],
  ...[
    'proxy.example',
    '10.0.0.0/33',
    '2001:db8::/129',
    '10.0.0.0/8,',
    '10.0.0.0/x',
    'true',
    'fe80::1%eth0',
  ].map((proxies): [Record<string, string>, string] => [
    { TRUSTED_PROXIES: proxies },
    'TRUSTED_PROXIES must be address[,address…], each an IP address or a network such as 10.0.0.0/8',
  ]),
  [{ SANDBOX_PUBLIC_URL: 'pay.example' }, 'SANDBOX_PUBLIC_URL must be an http or https URL'],
  ...[
    'proxy.example:3128',
    'socks5://proxy.example',
    'http://proxy.example/path',
    'http://a%b:c@proxy.example',
  ].map((url): [Record<string, string>, string] => [
    { PROVIDER_PROXY_URL: url },
    'PROVIDER_PROXY_URL must be an http or https URL without a path, such as http://proxy.example:3128',
  ]),
  [
    { OTEL_EXPORTER_OTLP_ENDPOINT: 'localhost:4318' },
    'OTEL_EXPORTER_OTLP_ENDPOINT must be an http or https URL',
  ],
])('the configuration %j is refused, and the error says what is valid', (environment, problem) => {
  expect(() => readConfig(environment)).toThrow(new ConfigError(problem));
});

it('an error names every invalid variable, but no value', () => {
  const refusal = () =>
    readConfig({
      ...{ PORT: 'secret-1', HASH_KEY: 'secret-2', VAULT_KEYS: 'a:secret-3', SANDBOX: 'secret-4' },
      OPERATOR_KEYS: 'secret-5',
    });
  for (const name of ['PORT', 'HASH_KEY', 'VAULT_KEYS', 'SANDBOX', 'OPERATOR_KEYS'])
    expect(refusal).toThrow(name);
  expect(refusal).not.toThrow('secret');
});

it('a command can read the location of the data without the keys of the service', () => {
  expect(readDataConfig({ DATABASE_URL: 'postgres://host/db', DATA_DIR: '/data' })).toEqual({
    databaseUrl: 'postgres://host/db',
    dataDir: '/data',
  });
  const pooled = { DATABASE_URL: 'postgres://pooler/db', DATABASE_DIRECT_URL: 'postgres://host/db' };
  expect(readDataConfig(pooled)).toMatchObject({ databaseDirectUrl: 'postgres://host/db' });
  expect(() => readDataConfig({ DATABASE_URL: 'host' })).toThrow(
    'DATABASE_URL must be a URL such as postgres:',
  );
});
