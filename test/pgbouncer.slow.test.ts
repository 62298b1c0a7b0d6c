import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { cardPayment, headersOne } from './support/payment-requests.ts';
import { type PgBouncer, pgBouncerMinor, startPgBouncer } from './support/pgbouncer.ts';
import { createServiceDatabase, type ServiceDatabase } from './support/service-database.ts';
import { endAfterEach, runService, type ServiceProcess, startService } from './support/service-process.ts';
import { openTables, type Tables } from './support/tables.ts';
import { type Receiver, startReceiver, verify } from './webhooks/receiver.ts';

const minor = pgBouncerMinor();
/** The first minor version that keeps prepared statements in transaction mode. */
const KEEPS_PREPARED = 21;
const lacksAny = minor === undefined ? ' (skipped here: no pgbouncer in PATH)' : '';
const lacksNew =
  minor !== undefined && minor >= KEEPS_PREPARED ? '' : ' (skipped here: no pgbouncer 1.21 in PATH)';

// The settings that docs/performance.md recommends.
const TRANSACTIONS = { pool_mode: 'transaction', max_prepared_statements: 200 };
/** The behavior of PgBouncer before 1.21; newer versions need a setting for it. */
const WITHOUT_PREPARED = {
  pool_mode: 'transaction',
  ...(lacksNew === '' && { max_prepared_statements: 0 }),
};

let database: ServiceDatabase;
let tables: Tables;
const opened: { close(): Promise<void> }[] = [];

beforeAll(async () => {
  database = await createServiceDatabase();
  tables = await openTables(database.url);
  // Set for the database instead of the role, because the tests share one role.
  const name = new URL(database.url).pathname.slice(1);
  await tables.query(`ALTER DATABASE ${name} SET statement_timeout = '5s'`);
  await tables.query(`ALTER DATABASE ${name} SET idle_in_transaction_session_timeout = '10s'`);
});
afterEach(async () => {
  for (const one of opened.splice(0).reverse()) await one.close();
});
endAfterEach();
afterAll(async () => {
  await tables?.close();
  await database?.drop();
});

async function pooler(settings: Readonly<Record<string, string | number>>): Promise<PgBouncer> {
  const started = await startPgBouncer(database.url, settings);
  opened.push(started);
  return started;
}

function through({ url }: PgBouncer): Record<string, string> {
  return {
    ...database.environment,
    DATABASE_URL: url,
    DATABASE_DIRECT_URL: database.url,
    WEBHOOKS_ALLOW_PRIVATE: 'on',
    LEASE_MARGIN_MS: '1000',
    LOOK_UP_FIRST_MS: '100',
    RECOVERY_INTERVAL_MS: '50',
  };
}

/** The fields of responses that the tests read. */
type Answered = {
  readonly id: string;
  readonly status?: string;
  readonly secret: string;
  readonly transactions: { readonly id: string };
};

async function post(service: ServiceProcess, path: string, body: unknown, key: string = randomUUID()) {
  const response = await fetch(`${service.url}${path}`, {
    method: 'POST',
    headers: { ...headersOne(key), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  return { status: response.status, json: (await response.json()) as Answered };
}

const pay = (service: ServiceProcess, key: string = randomUUID()) =>
  post(service, '/v1/payments', cardPayment(), key);

describe.skipIf(lacksNew !== '')(`PgBouncer in transaction mode${lacksNew}`, () => {
  it('PgBouncer carries payments, repeats, refunds and webhooks of many clients over two connections', async () => {
    const service = await startService(through(await pooler({ ...TRANSACTIONS, default_pool_size: 2 })));
    const receiver: Receiver = await startReceiver();
    opened.push(receiver);
    const hook = await post(service, '/v1/webhooks', { url: receiver.url, events: ['payment.refund'] });
    const keys = Array.from({ length: 40 }, () => randomUUID());
    const paid = await Promise.all(keys.map((key) => pay(service, key)));
    expect(paid.map(({ status, json }) => `${status} ${json.status}`)).toEqual(
      keys.map(() => '201 SUCCEEDED'),
    );
    const replays = await Promise.all(keys.map((key) => pay(service, key)));
    expect(replays.map(({ json }) => json)).toEqual(paid.map(({ json }) => json));
    const payment = (paid[0] as (typeof paid)[0]).json;
    const path = `/v1/payments/${payment.id}/transactions/${payment.transactions.id}/refund`;
    const refund = { merchant_reference: 'sorry-1', amount: { currency: 'USD', value: 10 } };
    expect((await post(service, path, refund)).json).toMatchObject({ sub_status: 'REFUNDED' });
    const [told] = await receiver.has(1);
    expect(told && verify(hook.json.secret, told)).toMatchObject({ type_event: 'payment.refund' });
  });

  it('if PgBouncer is killed during payments, each success is charged once, and repeats get the same record', async () => {
    const bouncer = await pooler(TRANSACTIONS);
    const service = await startService(through(bouncer));
    const keys: string[] = [];
    const told: Awaited<ReturnType<typeof pay>>[] = [];
    for (let blow = 0; blow < 3; blow++) {
      const newKeys = Array.from({ length: 30 }, () => randomUUID());
      const sent = newKeys.map((key) => pay(service, key));
      await Promise.race(sent);
      await bouncer.kill();
      await bouncer.restart();
      keys.push(...newKeys);
      told.push(...(await Promise.all(sent)));
    }
    expect(told.map(({ status }) => status)).toContain(201);
    for (const [index, { status, json }] of told.entries()) {
      const key = keys[index] as string;
      expect([201, 409, 503]).toContain(status);
      let again = await pay(service, key);
      while (again.status === 409 || again.status === 503) again = await pay(service, key);
      expect(again.status).toBe(201);
      if (status === 201) expect(again.json).toEqual(json);
    }
    const charged = await tables.query(
      `SELECT p.idempotency_key, p.status, count(l.id)::integer AS charges
       FROM payment p JOIN transaction t ON t.payment_id = p.id
       LEFT JOIN sandbox.ledger l ON l.idempotency_key = t.id::text AND l.status = 'approved'
       WHERE p.idempotency_key = ANY ($1) GROUP BY p.id, p.idempotency_key, p.status`,
      [keys],
    );
    expect(charged).toHaveLength(keys.length);
    // A payment whose claim may not have been committed is never sent and ends as ERROR.
    const wrong = charged.filter(({ status, charges }) => charges !== (status === 'SUCCEEDED' ? 1 : 0));
    expect(wrong).toEqual([]);
  });
});

describe.skipIf(lacksAny !== '')(`PgBouncer of any version${lacksAny}`, () => {
  it('PgBouncer carries payments in session mode', async () => {
    const service = await startService(through(await pooler({ pool_mode: 'session' })));
    expect((await pay(service)).json).toMatchObject({ status: 'SUCCEEDED' });
  });

  it('PgBouncer without prepared statements is refused at startup, and the error says what to use', async () => {
    const { code, stderr } = await runService(through(await pooler(WITHOUT_PREPARED)));
    expect([code, stderr]).toEqual([1, expect.stringMatching(/^Cannot start: .*PgBouncer 1\.21 or newer/)]);
  });

  it('an undeclared PgBouncer is refused at startup, whether it refuses or ignores time limits', async () => {
    const ignore_startup_parameters = 'statement_timeout,idle_in_transaction_session_timeout';
    for (const settings of [WITHOUT_PREPARED, { ...WITHOUT_PREPARED, ignore_startup_parameters }]) {
      const { url } = await pooler(settings);
      const { code, stderr } = await runService({ ...database.environment, DATABASE_URL: url });
      expect([code, stderr]).toEqual([1, expect.stringMatching(/^Cannot start: .* DATABASE_DIRECT_URL/)]);
    }
  });
});
