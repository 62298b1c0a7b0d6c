import { execFile, spawnSync } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, existsSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { promisify } from 'node:util';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { onService, server } from '../support/on-service.ts';

const ROOT = join(import.meta.dirname, '../..');
const PATH = [join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter);
const run = promisify(execFile);
/** Go's packages as installed by Debian, so that no module proxy is needed. */
const GO_PACKAGES = '/usr/share/gocode';

let directory: string;

onService();
beforeAll(async () => {
  directory = mkdtempSync(join(tmpdir(), 'payments-examples-'));
});
afterAll(() => rmSync(directory, { recursive: true, force: true }));

const works = (command: string, ...args: string[]) =>
  spawnSync(command, args, { stdio: 'ignore' }).status === 0;
const isThere = (command: string) => works('sh', '-c', `command -v ${command}`);

const python = isThere('python3') ? 'python3' : undefined;
const grpcPython = ['python3', '/usr/bin/python3'].find((one) =>
  works(one, '-c', 'import grpc, google.protobuf'),
);

/** Lists what this machine lacks for an example; '' if it lacks nothing. */
function lacks(needs: Readonly<Record<string, boolean>>): string {
  return Object.entries(needs)
    .filter(([, has]) => !has)
    .map(([need]) => need)
    .join(', ');
}

const forPython = lacks({
  'grpcio for Python': grpcPython !== undefined,
  ...commands('protoc', 'grpc_python_plugin'),
});
const forGo = lacks({
  ...commands('go', 'protoc-gen-go', 'protoc-gen-go-grpc'),
  [`gRPC below ${GO_PACKAGES}`]: existsSync(join(GO_PACKAGES, 'src/google.golang.org/grpc')),
  [`Protobuf 1.5 below ${GO_PACKAGES}`]: existsSync(
    join(GO_PACKAGES, 'src/github.com/golang/protobuf/proto/registry.go'),
  ),
});

function commands(...names: string[]): Record<string, boolean> {
  return Object.fromEntries(names.map((name) => [name, isThere(name)]));
}

const skipped = (missing: string) => (missing === '' ? '' : ` (skipped here: no ${missing})`);
const address = () => new URL(server.url).host;

/** Generates code with an example's own template into a temporary directory. */
async function generate(template: string): Promise<void> {
  await run('buf', ['generate', '--template', template, '--output', directory], {
    cwd: ROOT,
    env: { ...process.env, PATH },
  });
}

it.skipIf(!python)(
  `the Python example makes a payment over REST${skipped(python ? '' : 'python3')}`,
  async () => {
    const example = join(ROOT, 'examples/python/pay_rest.py');
    const { stdout } = await run(python as string, [example, server.url, randomUUID()]);
    expect(stdout).toBe('SUCCEEDED APPROVED 55.75\n');
  },
);

it.skipIf(forPython)(
  `the Python example makes and captures a payment over gRPC${skipped(forPython)}`,
  async () => {
    await generate('examples/python/buf.gen.yaml');
    const example = join(directory, 'examples/python/pay.py');
    cpSync(join(ROOT, 'examples/python/pay.py'), example);
    const { stdout } = await run(grpcPython as string, [example, address(), randomUUID()]);
    expect(stdout).toBe('SUCCEEDED CAPTURED 55.75\n');
  },
);

// Compiling Go's gRPC for the first time takes a minute.
it.skipIf(forGo)(
  `the Go example makes and captures a payment over gRPC${skipped(forGo)}`,
  { timeout: 300_000 },
  async () => {
    const workspace = join(directory, 'go');
    await generate('examples/go/buf.gen.yaml');
    const decimal = join(directory, 'decimal.yaml');
    // Debian's packages predate google.type.Decimal.
    writeFileSync(
      decimal,
      JSON.stringify({
        version: 'v2',
        inputs: [
          {
            directory: 'third_party/googleapis',
            paths: ['third_party/googleapis/google/type/decimal.proto'],
          },
        ],
        plugins: [{ local: 'protoc-gen-go', out: 'go/src' }],
      }),
    );
    await generate(decimal);
    const source = join(workspace, 'src/example.com/payments-service');
    cpSync(join(directory, 'examples/go'), source, { recursive: true });
    cpSync(join(ROOT, 'examples/go/main.go'), join(source, 'main.go'));
    const env = { ...process.env, GO111MODULE: 'off', GOFLAGS: '', GOPATH: `${workspace}:${GO_PACKAGES}` };
    await run('go', ['build', '-o', 'pay', '.'], { cwd: source, env });
    const { stdout } = await run(join(source, 'pay'), [address(), randomUUID()]);
    expect(stdout).toBe('SUCCEEDED CAPTURED 55.75\n');
  },
);
