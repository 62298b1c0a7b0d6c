import { execFile } from 'node:child_process';
import { mkdirSync, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, expect, it } from 'vitest';
import { onService, server } from '../support/on-service.ts';
import { readContract } from '../support/openapi-contract.ts';

const run = promisify(execFile);
const ROOT = join(import.meta.dirname, '../..');
const directory = mkdtempSync(join(tmpdir(), 'code-samples-'));
const operations = readContract().operations.map(({ id, json }) => {
  const [typescript, python] = json['x-codeSamples'] as { lang: string; source: string }[];
  return { id, typescript: typescript?.source ?? '', python: python?.source ?? '' };
});
const create = operations.find(({ id }) => id === 'createPayment');

onService();
afterAll(() => rmSync(directory, { recursive: true }));

it('every operation has a sample that type-checks against the TypeScript client', async () => {
  for (const { id, typescript } of operations) writeFileSync(join(directory, `${id}.ts`), typescript);
  const client = join(ROOT, 'clients/typescript/src/client.ts');
  const compilerOptions = {
    ...{ noEmit: true, strict: true, target: 'es2024', module: 'nodenext', skipLibCheck: true },
    ...{ allowImportingTsExtensions: true, types: [], lib: ['es2024', 'dom'] },
    paths: { 'payments-client': [client] },
  };
  writeFileSync(join(directory, 'tsconfig.json'), JSON.stringify({ compilerOptions, include: ['*.ts'] }));
  writeFileSync(join(directory, 'package.json'), '{"type": "module"}');
  const failure = await run(join(ROOT, 'node_modules/.bin/tsc'), ['-p', directory]).catch(
    (error) => error.stdout,
  );
  expect(failure).toEqual({ stdout: '', stderr: '' });
  expect(operations.length).toBeGreaterThan(30);
});

it('the TypeScript sample for payments makes a payment', async () => {
  const file = join(directory, 'run.ts');
  const source = create?.typescript.replace(/http:..127.0.0.1:8080/, server.url) ?? '';
  writeFileSync(file, source.replace('payments-client', join(ROOT, 'clients/typescript/src/client.ts')));
  const { stdout } = await run(process.execPath, [file]);
  expect(stdout).toContain("status: 'SUCCEEDED'");
});

const noPython = await run('python3', ['--version']).then(
  () => false,
  () => true,
);

it.skipIf(noPython)(
  'every operation has a Python sample, and the one for payments makes a payment',
  async () => {
    for (const { python } of operations) {
      expect(python).toContain('requests.');
      writeFileSync(join(directory, 'sample.py'), python);
      await run('python3', ['-m', 'py_compile', 'sample.py'], { cwd: directory });
    }
    // Replaces the parts of the library `requests` that samples use.
    mkdirSync(join(directory, 'lib'));
    writeFileSync(
      join(directory, 'lib/requests.py'),
      readFileSync(join(import.meta.dirname, 'requests-stub.py')),
    );
    writeFileSync(
      join(directory, 'sample.py'),
      create?.python
        .replace(/http:..127.0.0.1:8080/, server.url)
        .replace('order-1001', 'order-1001-python') ?? '',
    );
    const env = { ...process.env, PYTHONPATH: join(directory, 'lib') };
    const { stdout } = await run('python3', ['sample.py'], { cwd: directory, env });
    expect(JSON.parse(stdout)).toMatchObject({ status: 'SUCCEEDED', amount: { value: 55.75 } });
  },
);
