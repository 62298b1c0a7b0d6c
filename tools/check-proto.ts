import { execFileSync } from 'node:child_process';
import { cpSync, globSync, mkdtempSync, readFileSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { delimiter, join } from 'node:path';
import { readArguments } from '#src/commands/command-line.ts';

const USAGE = `Usage: npm run check:proto

Checks the contract in proto/: its style, whether gen/ is up to date, the OpenAPI document, and that no client breaks.`;

const ROOT = join(import.meta.dirname, '..');
// buf looks for its plugin, protoc-gen-es, on the PATH, which npm sets only if npm runs this file.
const PATH = [join(ROOT, 'node_modules/.bin'), process.env.PATH].join(delimiter);

/** Keeps the linter from sending telemetry and checking for updates. */
const QUIET = { REDOCLY_TELEMETRY: 'off', REDOCLY_SUPPRESS_UPDATE_NOTICE: 'true' };

function main(): void {
  readArguments(USAGE, {});
  const temporary = mkdtempSync(join(tmpdir(), 'check-proto-'));
  try {
    step('style', () => buf('lint', 'proto'));
    step('format', () => buf('format', '--diff', '--exit-code', 'proto'));
    step('generated code', () => compareGenerated(temporary));
    step('OpenAPI document', () => compareDocument(temporary));
    step('OpenAPI style', () => lintDocument());
    step('compatibility', () => compareWithBefore(temporary));
  } finally {
    rmSync(temporary, { recursive: true, force: true });
  }
}

function step(name: string, check: () => string): void {
  try {
    console.log(`proto: ${name}: ${check() || 'ok'}`);
  } catch (error) {
    console.error(`proto: ${name}: ${(error as Error).message}`);
    process.exitCode = 1;
  }
}

/** Generates into a temporary directory and compares with gen/, since a check must change nothing. */
function compareGenerated(temporary: string): string {
  buf('generate', '--output', temporary);
  const read = (directory: string) =>
    new Map(
      globSync('**/*.{js,ts}', { cwd: directory }).map((path) => [
        path,
        readFileSync(join(directory, path), 'utf8'),
      ]),
    );
  const committed = read(join(ROOT, 'gen'));
  const generated = read(join(temporary, 'gen'));
  const paths = new Set([...committed.keys(), ...generated.keys()]);
  const stale = [...paths].filter((path) => committed.get(path) !== generated.get(path));
  if (stale.length > 0) throw new Error(`gen/ is out of date (npm run generate): ${stale.join(', ')}`);
  return '';
}

/**
 * Generates the document and the client's types into a temporary directory, and compares them with the committed ones.
 */
function compareDocument(temporary: string): string {
  run('node', join(ROOT, 'tools/generate-openapi.ts'), temporary);
  const stale = ['gen/openapi.json', 'gen/setting-helps.json', 'clients/typescript/src/operations.ts'].filter(
    (path) => readFileSync(join(temporary, path), 'utf8') !== readFileSync(join(ROOT, path), 'utf8'),
  );
  if (stale.length > 0) throw new Error(`out of date (npm run generate): ${stale}`);
  return '';
}

function lintDocument(): string {
  run('redocly', 'lint', 'gen/openapi.json', '--config', 'tools/redocly.yaml', '--max-problems', '20');
  return '';
}

/** Compares the contract with an earlier one, using buf's rules for binary and JSON (buf.yaml, breaking). */
function compareWithBefore(temporary: string): string {
  const before = commitBefore();
  if (!before) return 'skipped: there is no earlier commit here to compare with';
  if (!git('ls-tree', '--name-only', before, 'proto/')) return `skipped: ${before} has no proto/`;
  // A separate tree with all modules of our buf.yaml, since an earlier contract may have taken google/ from elsewhere.
  const archive = execFileSync('git', ['archive', before, 'proto'], { cwd: ROOT, maxBuffer: 1 << 28 });
  execFileSync('tar', ['-x', '-C', temporary], { input: archive });
  cpSync(join(ROOT, 'buf.yaml'), join(temporary, 'buf.yaml'));
  cpSync(join(ROOT, 'third_party/googleapis'), join(temporary, 'third_party/googleapis'), {
    recursive: true,
  });
  return buf('breaking', 'proto', '--against', join(temporary, 'proto')) || `ok, compared with ${before}`;
}

/**
 * Returns the commit whose contract clients use: the one at which this branch left main. On main, it is HEAD if there
 * are uncommitted changes, else the previous commit. A shallow clone has none.
 */
function commitBefore(): string | undefined {
  const head = git('rev-parse', 'HEAD');
  for (const main of ['origin/main', 'main']) {
    const base = git('merge-base', 'HEAD', main);
    if (base && base !== head) return base;
  }
  const isChanged = git('status', '--porcelain', '--', 'proto') !== '';
  return isChanged ? head : git('rev-parse', '--verify', '--quiet', 'HEAD~1');
}

/** Runs git. @returns its output; undefined if it fails. */
function git(...args: string[]): string | undefined {
  try {
    return execFileSync('git', args, {
      cwd: ROOT,
      encoding: 'utf8',
      stdio: ['ignore', 'pipe', 'ignore'],
    }).trim();
  } catch {
    return undefined;
  }
}

function buf(...args: string[]): string {
  return run('buf', ...args);
}

function run(command: string, ...args: string[]): string {
  try {
    return execFileSync(command, args, {
      cwd: ROOT,
      encoding: 'utf8',
      env: { ...process.env, PATH, ...QUIET },
      stdio: 'pipe',
    });
  } catch (error) {
    const { stdout = '', stderr = '', message } = error as Error & { stdout?: string; stderr?: string };
    throw new Error(`\n${stdout}${stderr}`.trimEnd() || message);
  }
}

main();
