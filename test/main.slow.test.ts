import { randomUUID } from 'node:crypto';
import { mkdtempSync, writeFileSync } from 'node:fs';
import http2 from 'node:http2';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { HELD, startHeldProvider } from './support/held-provider.ts';
import { cardPayment, headersOne } from './support/payment-requests.ts';
import {
  ownDataDir,
  postgresPid,
  refusesConnections,
  runService,
  type ServiceProcess,
  startService,
} from './support/service-process.ts';
import { SMALL } from './support/small-catalogue.ts';

const DATA_DIR = ownDataDir();
const start = () => startService({ DATA_DIR });

it('the service starts with only a data directory, prints what it serves, and accepts payments', async () => {
  const service = await start();
  expect((await fetch(`${service.url}/healthz`)).status).toBe(200);
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  const { status, payment } = await pay(service, randomUUID());
  expect([status, payment.status]).toEqual([201, 'SUCCEEDED']);
  for (const [address] of service.printed.stderr.matchAll(/http:\S+/g)) {
    expect([address, (await fetch(address)).status]).toEqual([address, 200]);
  }
  expect(await stop(service)).toBe(0);
  const times = service.printed.stdout
    .trimEnd()
    .split('\n')
    .map((line) => JSON.parse(line).time);
  expect(times.length).toBeGreaterThan(1);
  for (const time of times) expect(time).toMatch(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/);
  expect(postgresPid(DATA_DIR)).toBeUndefined();
  expect(service.printed.stderr.split('\n')).toEqual([
    `Payments service: ${service.url} (REST at /v1/payments, Connect, gRPC, gRPC-Web)`,
    'Catalogue: in the database (npm run catalogue)',
    `Data: ${DATA_DIR}`,
    `Home page: ${service.url}/`,
    'Sandbox provider: mounted (no real money moves)',
    expect.stringMatching(/^Sandbox account: 11111111-.*pk_sandbox_one and sk_sandbox_one$/),
    `Dashboard: ${service.url}/dashboard`,
    'Sandbox operator key: op_sandbox',
    '',
  ]);
});

it('without the sandbox, the service refuses the sandbox’s keys on the same data, and says so when it starts', async () => {
  expect(await stop(await start())).toBe(0);
  const catalogue = join(mkdtempSync(join(tmpdir(), 'catalogue-')), 'own.yaml');
  writeFileSync(catalogue, SMALL.replace('$SANDBOX_URL', 'http://127.0.0.1:1'));
  const service = await startService({ DATA_DIR, SANDBOX: 'off', CATALOGUE_FILE: catalogue, ONE_KEY: 'key' });
  expect((await pay(service, randomUUID())).status).toBe(401);
  await stop(service);
  expect(service.printed.stderr).toMatch(
    /^Warning: this database has the sandbox’s accounts.*close-sandbox$/m,
  );
  expect(service.printed.stderr).not.toContain('sk_sandbox_one');
});

it('the service accepts HTTP/1.1 and HTTP/2 with prior knowledge on the same port', async () => {
  const service = await start();
  expect((await pay(service, randomUUID())).status).toBe(201);
  const { status, payment } = await payOverHttp2(service);
  expect([status, payment.status]).toEqual([201, 'SUCCEEDED']);
});

it('after being killed, the service returns the same response to a repeated request', async () => {
  const killed = await start();
  const key = randomUUID();
  const first = await pay(killed, key);
  await kill(killed);

  const service = await start();
  const replay = await pay(service, key);
  expect(replay.text).toBe(first.text);
  expect([replay.status, replay.replayed]).toEqual([201, 'true']);
});

it('after being killed with its PostgreSQL, the service returns the same response to a repeated request', async () => {
  const killed = await start();
  const key = randomUUID();
  const first = await pay(killed, key);
  const postgres = postgresPid(DATA_DIR);
  process.kill(postgres as number, 'SIGKILL');
  await kill(killed);

  const service = await start();
  expect(postgresPid(DATA_DIR)).not.toBe(postgres);
  const replay = await pay(service, key);
  expect(replay.text).toBe(first.text);
  expect(replay.replayed).toBe('true');
});

it('a service whose PostgreSQL is killed restarts it, and accepts payments again', async () => {
  const service = await start();
  const key = randomUUID();
  const first = await pay(service, key);
  process.kill(postgresPid(DATA_DIR) as number, 'SIGKILL');
  await expect.poll(async () => (await pay(service, randomUUID())).status).toBe(201);
  expect((await pay(service, key)).text).toBe(first.text);
  expect(service.printed.stdout).toContain('PostgreSQL exited unexpectedly and is being restarted');
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  expect(await stop(service)).toBe(0);
});

it('a service whose PostgreSQL cannot be restarted exits with 1, so that a supervisor can start it anew', async () => {
  const service = await start();
  // A postmaster of another version cannot start on this data.
  const version = join(DATA_DIR, 'postgres/data/PG_VERSION');
  writeFileSync(version, '11\n');
  process.kill(postgresPid(DATA_DIR) as number, 'SIGKILL');
  const { code, stdout } = await service.ended;
  expect([code, stdout]).toEqual([1, expect.stringContaining('PostgreSQL could not be restarted')]);
  writeFileSync(version, '18\n');
});

it('on SIGTERM, the service finishes the calls in progress and exits with 0', async () => {
  const provider = await startHeldProvider();
  const CATALOGUE_FILE = join(DATA_DIR, '..', 'catalogue.yaml');
  writeFileSync(CATALOGUE_FILE, provider.catalogue);
  const service = await startService({ DATA_DIR, CATALOGUE_FILE });
  provider.frontOf(service.url);
  const giveAnswers = provider.hold();
  const answer = pay(service, randomUUID(), HELD);
  await provider.hasHeld(1);
  service.child.kill('SIGTERM');
  await refusesConnections(service);
  giveAnswers();
  const { status, payment } = await answer;
  expect([status, payment.status]).toEqual([201, 'SUCCEEDED']);
  expect((await service.ended).code).toBe(0);
  await provider.close();
});

it('on a second SIGINT, the service exits with 0', async () => {
  const service = await start();
  service.child.kill('SIGINT');
  service.child.kill('SIGINT');
  expect((await service.ended).code).toBe(0);
});

it('a second service on the same data directory refuses to start, and the first continues', async () => {
  const service = await start();
  const second = await runService({ DATA_DIR });
  expect(second.code).toBe(1);
  expect(second.stderr).toBe(
    `Cannot start: The data directory ${DATA_DIR} is in use by another process of the service. Stop that process, or set DATA_DIR to another directory for this one.\n` +
      'To use another PostgreSQL, set DATABASE_URL.\n',
  );
  expect((await pay(service, randomUUID())).status).toBe(201);
});

it('the service prints no card number, security code or secret', async () => {
  const service = await start();
  await pay(service, randomUUID());
  await pay(service, randomUUID(), cardPayment('4000000000003006'));
  await fetch(`${service.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOne() },
    body: '{"card": 4012888888881881',
  });
  await stop(service);
  const { stdout, stderr } = await service.ended;
  expect(stdout).toContain('"msg":"request"');
  expect(stdout + stderr).not.toMatch(/4012888888881881|4000000000003006|["']737\\?["']|sk_sandbox_one"/);
});

type Paid = {
  readonly status: number;
  readonly text: string;
  readonly payment: { readonly status: string };
  readonly replayed: string | null;
};

async function pay(service: ServiceProcess, key: string, payment = cardPayment()): Promise<Paid> {
  const response = await fetch(`${service.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close', ...headersOne(key) },
    body: JSON.stringify(payment),
  });
  const text = await response.text();
  const replayed = response.headers.get('idempotent-replayed');
  return { status: response.status, text, payment: JSON.parse(text), replayed };
}

async function payOverHttp2(service: ServiceProcess): Promise<Pick<Paid, 'payment'> & { status: unknown }> {
  const session = http2.connect(service.url);
  const stream = session.request({
    ':method': 'POST',
    ':path': '/v1/payments',
    'content-type': 'application/json',
    ...headersOne(),
  });
  let status: unknown;
  stream.on('response', (headers) => {
    status = headers[':status'];
  });
  stream.end(JSON.stringify(cardPayment()));
  const payment = JSON.parse((await stream.toArray()).join(''));
  session.close();
  return { status, payment };
}

async function stop(service: ServiceProcess): Promise<number | null> {
  service.child.kill('SIGTERM');
  return (await service.ended).code;
}

async function kill(service: ServiceProcess): Promise<void> {
  service.child.kill('SIGKILL');
  await service.ended;
}
