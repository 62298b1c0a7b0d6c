import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const FILE = join(import.meta.dirname, '../../config/sandbox-catalogue.yaml');

/** Returns the sandbox's catalogue with connections that wait `timeoutMs` for the provider. */
export function sandboxCatalogue(timeoutMs: number): string {
  return readFileSync(FILE, 'utf8').replaceAll(/timeout_ms: \d+/g, `timeout_ms: ${timeoutMs}`);
}
