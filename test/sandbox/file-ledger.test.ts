import { appendFileSync, mkdtempSync, readFileSync, rmSync, statSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { newEntry } from '#src/sandbox/entries.ts';
import { fileLedger } from '#src/sandbox/file-ledger.ts';
import { LEDGER_PAGE, type Ledger, type LedgerEntry } from '#src/sandbox/ledger.ts';

let directory: string;
let path: string;
let ledger: Ledger;

beforeEach(async () => {
  directory = mkdtempSync(join(tmpdir(), 'file-ledger-'));
  path = join(directory, 'ledger.jsonl');
  ledger = fileLedger(path);
  await ledger.prepare();
});
afterEach(async () => {
  await ledger.close();
  rmSync(directory, { recursive: true, force: true });
});

function entry(id: string, idempotencyKey = `key-${id}`): LedgerEntry {
  const call = { idempotencyKey, acquirer: 'ONE', account: 'acct' } as const;
  return newEntry({
    kind: 'charge',
    id,
    call,
    status: 'approved',
    amount: 5575,
    currency: 'USD',
    fields: {},
  });
}

async function reopen(): Promise<void> {
  await ledger.close();
  ledger = fileLedger(path);
  await ledger.prepare();
}

it('the file ledger has written each entry as a line of its own by the time it confirms the entry', async () => {
  await Promise.all(['a', 'b', 'c'].map((id) => ledger.record(entry(id))));
  const lines = readFileSync(path, 'utf8').trimEnd().split('\n');
  expect(lines.map((line) => JSON.parse(line)[0].id)).toEqual(['a', 'b', 'c']);
  expect(statSync(path).mode & 0o777).toBe(0o600);
});

it('the file ledger confirms a change that writes nothing only once what it was decided from is on the disk', async () => {
  await ledger.record(entry('a'));
  const order: string[] = [];
  const moved = ledger
    .change(['a'], ([one]) => (one ? [{ ...one, status: 'expired' }] : []))
    .then(() => order.push('saved'));
  const read = ledger
    .change(['a'], ([one]) => {
      order.push(`${one?.status}`);
      return [];
    })
    .then(() => order.push('confirmed'));
  await Promise.all([moved, read]);
  expect(order).toEqual(['expired', 'saved', 'confirmed']);
});

it('the file ledger gives a hundred calls that record one key at once the same first entry', async () => {
  const recorded = await Promise.all(
    Array.from({ length: 100 }, (_, i) => ledger.record(entry(String(i), 'same'))),
  );
  expect(recorded.filter(({ isNew }) => isNew)).toHaveLength(1);
  expect(new Set(recorded.map((one) => one.entry.id))).toEqual(new Set(['0']));
  expect(readFileSync(path, 'utf8').split('\n')).toHaveLength(2);
});

it('the file ledger has all its entries after a restart', async () => {
  await ledger.record(entry('a'));
  await reopen();
  expect(await ledger.findByKey('key-a')).toMatchObject({ id: 'a', amount: 5575 });
  expect(await ledger.findById('a')).toMatchObject({ idempotencyKey: 'key-a' });
  expect((await ledger.record(entry('b', 'key-a'))).isNew).toBe(false);
});

it('the file ledger cuts off a last line that a crash has torn, and continues after it', async () => {
  await ledger.record(entry('a'));
  await ledger.close();
  appendFileSync(path, JSON.stringify([entry('torn ü')]).slice(0, -9));
  await reopen();
  expect(await ledger.findByKey('key-torn ü')).toBeUndefined();
  await ledger.record(entry('b'));
  await reopen();
  expect((await ledger.entriesAfter('')).map(({ id }) => id)).toEqual(['a', 'b']);
});

it('the file ledger refuses a file that is damaged in the middle', async () => {
  await ledger.close();
  appendFileSync(path, 'not JSON\n');
  ledger = fileLedger(path);
  await expect(ledger.prepare()).rejects.toThrow();
});

it('the file ledger is read in pages, in the order of identifiers', async () => {
  const ids = Array.from({ length: LEDGER_PAGE + 2 }, (_, i) => String(i).padStart(5, '0'));
  await Promise.all(ids.toReversed().map((id) => ledger.record(entry(id))));
  const first = await ledger.entriesAfter('');
  const second = await ledger.entriesAfter(first.at(-1)?.id ?? '');
  expect([...first, ...second].map(({ id }) => id)).toEqual(ids);
  expect(first).toHaveLength(LEDGER_PAGE);
});
