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

/** Replaces the whole file at once by renaming. */
function replaceFile(text: string): void {
  writeFileSync(`${file}.new`, text);
  renameSync(`${file}.new`, file);
}

const renamed = (name: string) => CATALOGUE.replace('name: Cards elsewhere', `name: ${name}`);

// biome-ignore lint/suspicious/noExplicitAny: any record, for assertions on its fields.
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

it('a changed catalogue file takes effect', async () => {
  expect(await routeTaken()).toBe('Cards elsewhere');
  replaceFile(renamed('By the new file'));
  await logged('catalogue loaded');
  expect(await routeTaken()).toBe('By the new file');
});

it('a changed catalogue file takes effect on SIGHUP', async () => {
  writeFileSync(file, renamed('By the signal'));
  service.child.kill('SIGHUP');
  await logged('catalogue loaded');
  expect(await routeTaken()).toBe('By the signal');
});

it('the doubts of a catalogue file are printed at the start, and logged when a reload has changed the file', async () => {
  const doubtful = CATALOGUE.replace('Everything that is not a card', 'a').replace(
    'description: a',
    "condition: type == 'WALLET_B'",
  );
  expect(doubtful).not.toBe(CATALOGUE);
  expect(service.printed.stderr).not.toContain('Warning: payment_method_types');
  replaceFile(doubtful);
  expect(await logged('is accepted by no route', 4)).toContain('payment_method_types[');
  service.child.kill('SIGHUP');
  await logged('catalogue loaded', 2);
  expect(service.printed.stdout.split('is accepted by no route')).toHaveLength(5);
  const other = await startService({ ...database.environment, CATALOGUE_FILE: file });
  await expect
    .poll(() => other.printed.stderr)
    .toContain('Warning: payment_method_types[3]: WALLET_C_ENROLLMENT is accepted by no route');
});

it.each([
  [
    'is invalid',
    CATALOGUE.replace("category == 'CARD'\n", "categry == 'CARD'\n"),
    /categry.*at line \d+, column \d+/,
  ],
  ['is truncated', CATALOGUE.slice(0, CATALOGUE.length / 2), /catalogue\.yaml: /],
  ['cannot be opened', CATALOGUE.replace('connector: sandbox', 'connector: bank'), /no connector \\"bank\\"/],
])(
  'a catalogue that %s leaves the previous one in force, its error is logged, and the corrected one takes effect',
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

it('a missing catalogue file leaves the catalogue in force', async () => {
  rmSync(file);
  expect(await logged('stays in force')).toContain('cannot be read (ENOENT)');
  expect(await routeTaken()).toBe('Cards elsewhere');
});

it('a payment in progress finishes with its original catalogue, even if its connection was removed', async () => {
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
