import { execFileSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { existsSync, readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, expect, it, vi } from 'vitest';
import { HELD, startHeldProvider } from './support/held-provider.ts';
import { cardPayment, headersOne } from './support/payment-requests.ts';
import {
  ownDataDir,
  postgresPid,
  refusesConnections,
  type ServiceProcess,
  startService,
} from './support/service-process.ts';

const DATA_DIR = ownDataDir();
const CATALOGUE_FILE = join(DATA_DIR, '..', 'catalogue.yaml');
const provider = await startHeldProvider();
afterAll(() => provider.close());
/** Less than a test's timeout, so that a failure reports the awaited condition. */
const PATIENCE_MS = 100_000;

async function start(catalogue = provider.catalogue): Promise<ServiceProcess> {
  writeFileSync(CATALOGUE_FILE, catalogue);
  const service = await startService({
    DATA_DIR,
    CATALOGUE_FILE,
    WORKERS: '2',
    LEASE_MARGIN_MS: '1000',
    RECOVERY_INTERVAL_MS: '50',
    LOOK_UP_FIRST_MS: '100',
  });
  provider.frontOf(service.url);
  return service;
}

it('workers share one port, metrics and reloads, and a killed one is replaced without losing payments', async () => {
  // Payments of a killed worker are looked up after the provider's timeout.
  const service = await start(provider.catalogue.replaceAll(/timeout_ms: \d+/g, 'timeout_ms: 10000'));
  const workers = workersOf(service);
  const keys: string[] = [];
  const answers: Paid[] = [];
  // Any free worker takes the next connection.
  while (!workers.every((pid) => workersThatAnswered(service).includes(pid))) {
    keys.push(randomUUID());
    answers.push(await payUntilAnswered(service, keys.at(-1) as string));
  }
  expect(workers).toHaveLength(2);
  expect((await fetch(`${service.url}/readyz`)).status).toBe(200);
  expect(answers.map(({ payment }) => payment.status)).toEqual(answers.map(() => 'SUCCEEDED'));
  await shows(service, `payments_total{category="CARD",status="SUCCEEDED"} ${answers.length}`, 'workers 2');

  service.child.kill('SIGHUP');
  await shows(service, 'catalogue_loads_total{result="ok"} 2');

  const openKeys = Array.from({ length: 4 }, () => randomUUID());
  const giveAnswers = provider.hold();
  const retried = openKeys.map((key) => payUntilAnswered(service, key, HELD));
  await provider.hasHeld(4);
  const [killed = 0, survivor] = workers;
  process.kill(killed, 'SIGKILL');
  giveAnswers();
  const outcomes = await Promise.all(retried);
  // The killed worker's payment is looked up; it may have failed, because its sandbox died with it.
  for (const { payment } of outcomes) expect(['SUCCEEDED', 'PENDING', 'ERROR']).toContain(payment.status);
  await shows(service, 'worker_ends_total 1', 'workers 2');
  // The metrics of the killed worker are still counted.
  const [, counted] =
    /\npayments_total\{category="CARD",status="SUCCEEDED"\} (\d+)\n/.exec(await metrics(service)) ?? [];
  expect(Number(counted)).toBeGreaterThanOrEqual(answers.length);
  expect(workersOf(service)).toContain(survivor);
  expect(workersOf(service)).not.toContain(killed);
  const replays = await Promise.all(keys.map((key) => pay(service, key)));
  expect(replays.map(({ text }) => text)).toEqual(answers.map(({ text }) => text));
});

it('on SIGTERM, every worker finishes its calls, the database stops, and the exit status is 0', async () => {
  const service = await start();
  const giveAnswers = provider.hold();
  const answers = [1, 2].map(() => pay(service, randomUUID(), HELD));
  await provider.hasHeld(2);
  service.child.kill('SIGTERM');
  await refusesConnections(service);
  giveAnswers();
  for (const { status, payment } of await Promise.all(answers)) {
    expect([status, payment.status]).toEqual([201, 'SUCCEEDED']);
  }
  expect((await service.ended).code).toBe(0);
  expect(postgresPid(DATA_DIR)).toBeUndefined();
});

it('a worker whose replacement failed to start is replaced later', async () => {
  const service = await start();
  const { pid } = service.child;
  const mayOpen = (files: number) => execFileSync('prlimit', ['--pid', String(pid), `--nofile=${files}:`]);
  const [killed = 0, survivor] = workersOf(service);
  mayOpen(8);
  process.kill(killed, 'SIGKILL');
  while (!service.printed.stdout.includes('a worker cannot be reached')) await sleep(20);
  mayOpen(1_024);
  // The two initial workers and the replacement.
  while (service.printed.stdout.split('Server listening').length <= 3) await sleep(20);
  expect(workersOf(service)).toHaveLength(2);
  expect(workersOf(service)).toContain(survivor);
  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
});

it('on SIGTERM, a worker that is still starting exits with the others, and the exit status is 0', async () => {
  const service = await start();
  const [killed = 0, survivor] = workersOf(service);
  process.kill(killed, 'SIGKILL');
  // The replacement is a process that has not run any of our code yet.
  while (workersOf(service).every((pid) => pid === killed || pid === survivor)) await sleep(1);
  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
});

it('workers exit if their parent is killed', async () => {
  const service = await start();
  const workers = workersOf(service);
  service.child.kill('SIGKILL');
  await service.ended;
  while (workers.some((pid) => existsSync(`/proc/${pid}`))) await sleep(20);
});

type Paid = { readonly status: number; readonly text: string; readonly payment: { readonly status: string } };

/** Pays on separate connections, so that the workers take turns. */
async function pay(service: ServiceProcess, key: string, payment = cardPayment()): Promise<Paid> {
  const response = await fetch(`${service.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', connection: 'close', ...headersOne(key) },
    body: JSON.stringify(payment),
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  const text = await response.text();
  return { status: response.status, text, payment: JSON.parse(text) };
}

async function payUntilAnswered(
  service: ServiceProcess,
  key: string,
  payment = cardPayment(),
): Promise<Paid> {
  for (;;) {
    const paid = await pay(service, key, payment).catch((error: Error) => {
      // No worker took the call, unlike a call to a process that is killed.
      if (error.name === 'TimeoutError') throw error;
    });
    if (paid?.status === 201) return paid;
    await sleep(50);
  }
}

/** Waits until the metrics contain these lines. */
async function shows(service: ServiceProcess, ...lines: string[]): Promise<void> {
  const shown = async () =>
    expect((await metrics(service)).split('\n')).toEqual(expect.arrayContaining(lines));
  await vi.waitFor(shown, { timeout: PATIENCE_MS, interval: 20 });
}

async function metrics(service: ServiceProcess): Promise<string> {
  const response = await fetch(`${service.url}/metrics`, {
    headers: { connection: 'close' },
    signal: AbortSignal.timeout(PATIENCE_MS),
  });
  return response.text();
}

function workersOf(service: ServiceProcess): number[] {
  const { pid } = service.child;
  const children = readFileSync(`/proc/${pid}/task/${pid}/children`, 'utf8').trim().split(' ').map(Number);
  return children.filter((child) => readFileSync(`/proc/${child}/cmdline`, 'utf8').includes('main.ts'));
}

function workersThatAnswered(service: ServiceProcess): number[] {
  const lines = service.printed.stdout.split('\n').filter((line) => line.includes('"route":"/v1/payments"'));
  return lines.map((line) => JSON.parse(line).worker);
}
