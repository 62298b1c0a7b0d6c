import { randomUUID } from 'node:crypto';
import { mkdtempSync, renameSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { HELD, startHeldProvider } from '../support/held-provider.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { createServiceDatabase, type ServiceDatabase } from '../support/service-database.ts';
import { endAfterEach, type ServiceProcess, startService } from '../support/service-process.ts';

const provider = await startHeldProvider();
const CATALOGUE = provider.catalogue;
const directory = mkdtempSync(join(tmpdir(), 'reload-'));
const file = join(directory, 'catalogue.yaml');

let database: ServiceDatabase;
let service: ServiceProcess;

endAfterEach();
beforeAll(async () => {
  database = await createServiceDatabase();
});
beforeEach(async () => {
  writeFileSync(file, CATALOGUE);
  service = await startService({ ...database.environment, CATALOGUE_FILE: file });
  provider.frontOf(service.url);
});
afterAll(async () => {
  await provider.close();
  await database?.drop();
  rmSync(directory, { recursive: true });
});

/** The whole file at once, as a careful editor does it. */
function replaceFile(text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

const renamed = (name: string) => CATALOGUE.replace('name: Cards elsewhere', `name: ${name}`);

// biome-ignore lint/suspicious/noExplicitAny: a record is looked into at will.
async function pay(payment = cardPayment()): Promise<any> {
  const response = await fetch(`${service.url}/v1/payments`, {
    method: 'POST',
    headers: { 'content-type': 'application/json', ...headersOne(randomUUID()) },
    body: JSON.stringify(payment),
  });
  return response.json();
}

const routeTaken = async () => (await pay()).routing_rules.condition.name;

async function logged(text: string, times = 1): Promise<string> {
  for (;;) {
    const lines = service.printed.stdout.split('\n').filter((line) => line.includes(text));
    if (lines.length >= times) return lines.at(-1) ?? '';
    await sleep(20);
  }
}

it('goes by a new catalogue once its file has changed', async () => {
  expect(await routeTaken()).toBe('Cards elsewhere');
  replaceFile(renamed('By the new file'));
  await logged('catalogue loaded');
  expect(await routeTaken()).toBe('By the new file');
});

it('goes by a new catalogue on SIGHUP', async () => {
  writeFileSync(file, renamed('By the signal'));
  service.child.kill('SIGHUP');
  await logged('catalogue loaded');
  expect(await routeTaken()).toBe('By the signal');
});

it.each([
  [
    'is wrong',
    CATALOGUE.replace("category == 'CARD'\n", "categry == 'CARD'\n"),
    /categry.*at line \d+, column \d+/,
  ],
  ['is cut off', CATALOGUE.slice(0, CATALOGUE.length / 2), /catalogue\.yaml: /],
  ['cannot be opened', CATALOGUE.replace('connector: sandbox', 'connector: bank'), /no connector \\"bank\\"/],
])(
  'keeps the catalogue before when the new one %s, says why, and takes the next one',
  async (_what, text, problem) => {
    replaceFile(text);
    expect(await logged('stays in force')).toMatch(problem);
    expect(await routeTaken()).toBe('Cards elsewhere');
    const metrics = await (await fetch(`${service.url}/metrics`)).text();
    expect(metrics).toContain('catalogue_loads_total{result="failed"} 1');

    replaceFile(renamed('The mended one'));
    await logged('catalogue loaded');
    expect(await routeTaken()).toBe('The mended one');
  },
);

it('keeps the catalogue when its file is gone', async () => {
  rmSync(file);
  expect(await logged('stays in force')).toContain('cannot be read (ENOENT)');
  expect(await routeTaken()).toBe('Cards elsewhere');
});

it('finishes what is in flight on the catalogue that it began with, though its connection is gone', async () => {
  const giveAnswers = provider.hold();
  const slow = pay(HELD);
  await expect
    .poll(async () => (await fetch(`${service.url}/metrics`)).text())
    .toMatch(/^calls_in_flight 1$/m);
  replaceFile(CATALOGUE.replaceAll('sandbox-one', 'another-one'));
  await logged('catalogue loaded');
  expect((await pay()).transactions.connection_data.id).toBe('another-one');
  giveAnswers();
  const { status, transactions } = await slow;
  expect([status, transactions.connection_data.id]).toEqual(['SUCCEEDED', 'sandbox-one']);
});
