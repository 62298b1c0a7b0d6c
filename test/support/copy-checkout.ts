import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { compileAhead } from './compiled.ts';
import { type Edit, planted } from './plant.ts';

/** A copy of the service in its current state, unaffected by edits during a run. */
export type Checkout = { readonly path: string; remove(): void };

type Contents = { readonly edits?: readonly Edit[]; readonly with?: readonly string[] };

const SERVICE = ['src', 'sandbox', 'gen', 'config', 'package.json'];

/**
 * Copies everything that the service needs, with faults planted in it.
 *
 * @param options.with also copies these files and directories.
 * @throws Error as `planted` does.
 */
export function copyCheckout(root: string, { edits = [], with: more = [] }: Contents = {}): Checkout {
  const files = planted(root, edits);
  const path = mkdtempSync(join(tmpdir(), 'payments-checkout-'));
  for (const part of [...SERVICE, ...more]) cpSync(join(root, part), join(path, part), { recursive: true });
  symlinkSync(join(root, 'node_modules'), join(path, 'node_modules'));
  for (const [file, text] of files) writeFileSync(join(path, file), text);
  return { path, remove: () => rmSync(path, { recursive: true, force: true }) };
}

/** Makes a copy whose code is compiled, for a run that starts many processes in it. @throws Error as `planted` does. */
export async function copyCompiled(root: string, contents: Contents = {}): Promise<Checkout> {
  const copy = copyCheckout(root, contents);
  await compileAhead(copy.path);
  return copy;
}
