import { readFileSync } from 'node:fs';

/** Reason for which a mutant is not run: it is the same program, or no test is wanted for it. */
export type Listed = 'equivalent' | 'accepted';

const HEADINGS: ReadonlyMap<string, Listed> = new Map([
  ['## The same program', 'equivalent'],
  ['## Left as they are', 'accepted'],
]);

/**
 * Reads which mutants docs/mutations.md lists: rows of its tables whose first cell has ids in backticks.
 *
 * @throws Error for a row without a reason, and for one under another heading.
 */
export function readListed(path: string): ReadonlyMap<string, Listed> {
  const listed = new Map<string, Listed>();
  let kind: Listed | undefined;
  for (const line of readFileSync(path, 'utf8').split('\n')) {
    if (line.startsWith('## ')) kind = HEADINGS.get(line);
    const [, first = '', ...cells] = line.split('|');
    const ids = line.startsWith('|') ? [...first.matchAll(/`([0-9a-f]{8})`/g)].map(([, id = '']) => id) : [];
    if (ids.length === 0) continue;
    if (!kind) throw new Error(`${path}: a mutant is listed under no heading that says why: ${line}`);
    if (!cells.at(-2)?.trim()) throw new Error(`${path}: a mutant is listed without a reason: ${line}`);
    for (const id of ids) listed.set(id, kind);
  }
  return listed;
}
