import type { Config } from '#src/config.ts';
import type { ClockDifference } from '#src/store/engine/database-clock.ts';
import type { DatabaseFacts, OpenElsewhere, ServiceFacts } from '#src/store/tables/diagnosis.ts';

/** Result of a check: no problem, a problem to look into, or a problem that keeps the service from working properly. */
export type Finding = {
  readonly state: 'ok' | 'warning' | 'failed';
  readonly check: string;
  readonly says: string;
  /** The operator's next step, unless there is no problem. */
  readonly advice?: string;
};

/** Creates the finding of a passed check. */
export const ok = (check: string, says: string): Finding => ({ state: 'ok', check, says });
const finding = (state: Finding['state']) => (check: string, says: string, advice: string) => {
  return { state, check, says, advice };
};
/** Creates a finding that the operator should look into. */
export const warning = finding('warning');
/** Creates the finding of a problem that keeps the service from working properly. */
export const failed = finding('failed');

/** Checks the version of Node. @param pinned the version in package.json. */
export function diagnoseNode(version: string, pinned: string): Finding {
  const major = (text: string) => text.replace(/^v/, '').split('.')[0];
  if (major(version) === major(pinned)) return ok('Node.js', version);
  return failed(
    'Node.js',
    `${version}, but the service is tested with ${pinned}`,
    'run npm ci, then start the service through npm (npm start), which uses the Node.js from the packages',
  );
}

const OLDEST_VERSION = 140_000;
/** Connections that administrators, backups and other programs need. */
const SPARE_CONNECTIONS = 10;
const LONG_TRANSACTION_S = 300;

/** Checks the database server. */
export function diagnoseDatabase(
  facts: DatabaseFacts,
  config: Pick<Config, 'databaseMaxConnections' | 'databaseDirectUrl' | 'allowUnsafeDatabase'>,
): Finding[] {
  const findings: Finding[] = [];
  const { unsafeSettings, maxConnections, standbys, invalidIndexes } = facts;
  if (facts.versionNumber < OLDEST_VERSION) {
    findings.push(failed('PostgreSQL', facts.version, 'use PostgreSQL 14 or newer'));
  } else findings.push(ok('PostgreSQL', facts.version));

  findings.push(diagnoseDurability('durability', unsafeSettings, config));

  if (facts.isReadOnly) {
    findings.push(failed('writable', 'the database is read-only', 'point DATABASE_URL to the primary'));
  }
  if (standbys > 0 && !facts.isSynchronous) {
    const says = `${standbys} standbys replicate asynchronously: a failover loses the last payments`;
    findings.push(warning('replication', says, 'set synchronous_standby_names if you fail over to them'));
  }
  // A pooler has its own connections.
  if (!config.databaseDirectUrl && config.databaseMaxConnections + SPARE_CONNECTIONS > maxConnections) {
    const says = `a replica takes up to ${config.databaseMaxConnections} of ${maxConnections} connections`;
    findings.push(warning('connections', says, 'lower DATABASE_MAX_CONNECTIONS or raise max_connections'));
  }
  if (facts.isInTheClear) {
    const advice = 'add sslmode=verify-full to DATABASE_URL';
    findings.push(warning('database TLS', 'the connection crosses a network unencrypted', advice));
  }
  if (invalidIndexes.length > 0) {
    const advice = 'start the service, which rebuilds it; if that does not help, REINDEX INDEX CONCURRENTLY';
    findings.push(warning('indexes', `unfinished: ${invalidIndexes.join(', ')}`, advice));
  }
  if (facts.oldestTransactionS > LONG_TRANSACTION_S) {
    const says = `a transaction has been open for ${Math.round(facts.oldestTransactionS)} s: the server keeps every row that it may still see`;
    findings.push(warning('sessions', says, 'find it in pg_stat_activity by xact_start and terminate it'));
  }
  return findings;
}

/** Checks that the database, or one of its nodes, loses no acknowledged commit. */
export function diagnoseDurability(
  check: string,
  unsafeSettings: readonly string[],
  { allowUnsafeDatabase }: Pick<Config, 'allowUnsafeDatabase'>,
): Finding {
  if (unsafeSettings.length === 0) return ok(check, 'fsync, full_page_writes and synchronous_commit are on');
  const says = `${unsafeSettings.join(', ')} off: a crash can undo acknowledged commits`;
  const advice = 'switch them on: a payment could be lost or made twice';
  return (allowUnsafeDatabase ? warning : failed)(check, says, advice);
}

const SLOW_CLOCK_MS = 1_000;
const WRONG_CLOCK_MS = 30_000;

/**
 * Compares this machine's clock with the database's clock, which determines leases and schedules. A running service
 * raises an alarm when the two differ by more than a minute.
 */
export function diagnoseClock({ aheadMs, uncertainMs }: ClockDifference): Finding {
  const off = Math.abs(aheadMs);
  const says = `${(off / 1000).toFixed(1)} s ${aheadMs < 0 ? 'behind' : 'ahead of'} the database's`;
  const advice = 'synchronize both machines (NTP): signatures and providers depend on the time';
  if (off - uncertainMs > WRONG_CLOCK_MS) return failed('clock', says, advice);
  if (off - uncertainMs > SLOW_CLOCK_MS) return warning('clock', says, advice);
  return ok('clock', "agrees with the database's");
}

const LATE_S = 600;

/** Checks accounts, webhooks and open work. */
export function diagnoseService(facts: ServiceFacts): Finding[] {
  const findings: Finding[] = [];
  if (facts.accounts === 0) {
    findings.push(warning('accounts', 'none exist', "npm run account -- create --name 'My shop'"));
  }
  if (facts.oldestOutcomeS > LATE_S) {
    const says = `a payment's outcome has been unknown for ${Math.round(facts.oldestOutcomeS / 60)} minutes`;
    findings.push(warning('outcomes', says, 'see docs/alerts.md#outcomesopen'));
  }
  if (facts.lateAuthorizations > 0) {
    const days = Math.round(facts.oldestAuthorizationS / 86_400);
    const says = `${facts.lateAuthorizations} have waited for their provider for more than a day; the oldest was made ${days} days ago`;
    findings.push(warning('authorizations', says, 'see docs/operating.md#authorizations-that-do-not-end'));
  }
  if (facts.oldestNotificationS > LATE_S) {
    const says = `a provider's notification has waited for ${Math.round(facts.oldestNotificationS / 60)} minutes`;
    findings.push(warning('notifications', says, 'check that a replica is running, and read its log'));
  }
  if (facts.overdueWebhooks > 0) {
    const says = `${facts.overdueWebhooks} have deliveries that are 10 minutes late`;
    findings.push(
      warning('webhooks', says, 'check that a replica is running and that its network allows outgoing calls'),
    );
  }
  const { failingWebhooks, disabledWebhooks } = facts;
  if (failingWebhooks + disabledWebhooks > 0) {
    const says = `${failingWebhooks} have accepted nothing for an hour, ${disabledWebhooks} were turned off`;
    findings.push(warning('webhooks', says, 'inform their merchants; GET /v1/webhooks shows the reason'));
  }
  if (findings.length === 0) findings.push(ok('work', 'nothing is late'));
  return findings;
}

/** Checks that the catalogue has every connection that has open transactions. */
export function diagnoseOpenWork(elsewhere: readonly OpenElsewhere[]): Finding[] {
  return elsewhere.map(({ connectionId, open }) => {
    const says = `${open} open transactions, but the catalogue lacks the connection: no replica can learn their outcomes, or capture, cancel or refund their payments`;
    return failed(`connection ${connectionId}`, says, 'add it back to the catalogue, with the same account');
  });
}

/**
 * Checks that nobody can use the sandbox's published keys where live payments are made.
 *
 * @param keys number of valid keys of the sandbox's accounts.
 */
export function diagnoseSandboxKeys(
  keys: number,
  { sandbox, databaseUrl }: Pick<Config, 'sandbox' | 'databaseUrl'>,
): Finding[] {
  if (keys === 0 || (sandbox && !databaseUrl)) return [];
  const fate = sandbox ? 'they are accepted, since SANDBOX is on' : 'they are refused while SANDBOX is off';
  const says = `${keys} valid keys are the sandbox's and public knowledge; ${fate}`;
  return [failed('sandbox keys', says, 'npm run account -- close-sandbox')];
}

const isLoopback = (host: string) => host === 'localhost' || host === '::1' || host.startsWith('127.');

/** Checks the configuration for problems that do not prevent a start. */
export function diagnoseConfig(config: Config): Finding[] {
  const findings: Finding[] = [];
  const add = (check: string, says: string, advice: string) => findings.push(warning(check, says, advice));
  if (config.databaseUrl) {
    if (config.sandbox)
      add('SANDBOX', 'is on: the simulated provider is mounted', 'set SANDBOX=off in production');
    if (config.webhooksAllowPrivate) {
      add('WEBHOOKS_ALLOW_PRIVATE', 'is on: accounts can reach addresses inside your network', 'turn it off');
    }
    if (config.operatorKeys.length === 0) {
      add('OPERATOR_KEYS', 'are not set: operators have no access', 'openssl rand -base64 32');
    }
    if (!config.publicUrl) {
      add(
        'PUBLIC_URL',
        'is not set: providers get the address that the service listens on',
        'set it to an address at which providers can reach you',
      );
    }
  }
  if (!isLoopback(config.host) && !config.tls) {
    add(
      'TLS',
      `the service listens on ${config.host} without TLS`,
      'set TLS_CERT_FILE, or terminate TLS in front of the service',
    );
  }
  if (config.publicUrl?.startsWith('http:') && !isLoopback(new URL(config.publicUrl).hostname)) {
    add('PUBLIC_URL', 'is http: payers and providers connect without TLS', 'use https');
  }
  if (config.publicUrl?.startsWith('https:') && !config.tls && config.trustedProxies.rules.length === 0) {
    add(
      'TRUSTED_PROXIES',
      'is not set: all clients of the proxy that terminates TLS share its address',
      "set it to the proxy's addresses: limits, the audit log and the log use the client's address",
    );
  }
  if (findings.length === 0) findings.push(ok('settings', 'no problems found'));
  return findings;
}
