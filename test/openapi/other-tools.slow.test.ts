import { type ChildProcess, execFile, spawn } from 'node:child_process';
import { existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, describe, expect, it, vi } from 'vitest';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { loadScenarios } from '../support/scenario.ts';

const ROOT = join(import.meta.dirname, '../..');
const DOCUMENT = join(ROOT, 'gen/openapi.json');
const TOOLS = join(ROOT, '.ci/openapi-tools/node_modules');
const isInstalled = existsSync(TOOLS);
const skipped = isInstalled ? '' : ' (skipped here: run npm ci --prefix .ci/openapi-tools first)';
const run = promisify(execFile);

it.skipIf(!isInstalled)(
  `openapi-typescript generates types from the OpenAPI document${skipped}`,
  async () => {
    const directory = mkdtempSync(join(tmpdir(), 'payments-openapi-types-'));
    try {
      const node = (file: string, ...args: string[]) =>
        run(process.execPath, [file, ...args], { cwd: directory });
      await node(join(TOOLS, 'openapi-typescript/bin/cli.js'), DOCUMENT, '-o', 'types.ts');
      writeFileSync(
        join(directory, 'use.ts'),
        `import type { components, operations } from './types.ts';
export const status: components['schemas']['Payment']['status'] = 'SUCCEEDED';
type Body = NonNullable<operations['createPayment']['requestBody']>['content']['application/json'];
export const body: Body = ${JSON.stringify(cardPayment())};`,
      );
      const options = [
        '--noEmit',
        '--strict',
        '--allowImportingTsExtensions',
        '--target',
        'esnext',
        '--module',
        'esnext',
      ];
      await run(join(ROOT, 'node_modules/.bin/tsc'), [...options, 'use.ts'], { cwd: directory });
    } finally {
      rmSync(directory, { recursive: true });
    }
  },
);

describe.skipIf(!isInstalled)(`Prism, as a mock server for the OpenAPI document,${skipped}`, () => {
  let prism: ChildProcess;
  let url = '';

  beforeAll(async () => {
    const cli = join(TOOLS, '@stoplight/prism-cli/dist/index.js');
    prism = spawn(process.execPath, [cli, 'mock', '--port', '0', '--errors', DOCUMENT], { stdio: 'pipe' });
    let printed = '';
    prism.stdout?.on('data', (chunk) => {
      printed += chunk;
    });
    await vi.waitFor(
      () => {
        url = /listening on (http:\/\/\S+)/.exec(printed)?.[1] ?? '';
        expect(url, printed).not.toBe('');
      },
      { timeout: 50_000, interval: 100 },
    );
  });
  afterAll(() => {
    prism?.kill();
  });

  const send = (path: string, init: RequestInit = {}) =>
    fetch(url + path, { ...init, headers: { ...headersOne(), ...init.headers } });
  const create = (body: string, keys: Readonly<Record<string, string>> = {}) =>
    send('/v1/payments', { method: 'POST', body, headers: { 'content-type': 'application/json', ...keys } });

  it.each(loadScenarios())(
    'a mock server accepts the scenario $name and answers with a payment',
    async ({ request, keys }) => {
      const response = await create(request, keys);
      expect(response.status).toBe(201);
      expect(await response.json()).toHaveProperty('transactions_history');
    },
  );

  it('a mock server refuses a payment without an amount', async () => {
    const { amount: _, ...body } = cardPayment();
    expect((await create(JSON.stringify(body))).status).toBe(422);
  });

  it('a mock server answers requests for one payment and for a list', async () => {
    const read = await send('/v1/payments/019af0c5-0000-7000-8000-000000000000');
    expect([read.status, await read.json()]).toEqual([200, expect.objectContaining({ status: 'SUCCEEDED' })]);
    const list = await send('/v1/payments?page_size=2');
    expect([list.status, Array.isArray(await list.json())]).toEqual([200, true]);
  });
});
