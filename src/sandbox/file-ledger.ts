import { type FileHandle, open } from 'node:fs/promises';
import { dirname } from 'node:path';
import { LEDGER_PAGE, type Ledger, type LedgerEntry } from './ledger.ts';

/** An entry, with a promise that resolves once it is on the disk. */
type Kept = { readonly entry: LedgerEntry; readonly saved: Promise<void> };

/**
 * Ledger in an append-only file, for one process at a time. A line is a JSON list of the entries that were written in one
 * step, and the last line with an entry holds its state. A step is synced to the disk before `record` or `change` resolves;
 * concurrent steps share a sync. If a crash tears the last line, its call was never answered, so the next start cuts the
 * line off.
 */
export function fileLedger(path: string): Ledger {
  const byKey = new Map<string, Kept>();
  const byId = new Map<string, Kept>();
  const file = appendOnlyFile(path);

  function keep(entry: LedgerEntry, saved: Promise<void>): void {
    byKey.set(entry.idempotencyKey, { entry, saved });
    byId.set(entry.id, { entry, saved });
  }

  async function prepare(): Promise<void> {
    for (const line of await file.open()) {
      for (const entry of JSON.parse(line) as LedgerEntry[]) keep(entry, Promise.resolve());
    }
  }

  const save = (entries: readonly LedgerEntry[]) => file.append(JSON.stringify(entries));

  async function record(entry: LedgerEntry): Promise<{ entry: LedgerEntry; isNew: boolean }> {
    const first = byKey.get(entry.idempotencyKey);
    if (!first) keep(entry, save([entry]));
    const kept = first ?? byKey.get(entry.idempotencyKey);
    await kept?.saved;
    return { entry: kept?.entry ?? entry, isNew: !first };
  }

  async function change(
    ids: readonly string[],
    decide: (entries: readonly LedgerEntry[]) => readonly LedgerEntry[],
  ): Promise<readonly LedgerEntry[] | undefined> {
    // No await between reading and storing, so no other change can overlap.
    const written = decide(ids.flatMap((id) => byId.get(id)?.entry ?? []));
    const isTaken = written.some(({ id, idempotencyKey }) => !byId.has(id) && byKey.has(idempotencyKey));
    if (isTaken) return undefined;
    if (written.length === 0) {
      // What it was decided from may be on its way to the disk.
      await Promise.all(ids.map((id) => byId.get(id)?.saved));
      return written;
    }
    const saved = save(written);
    for (const entry of written) keep(entry, saved);
    await saved;
    return written;
  }

  async function saved(kept: Kept | undefined): Promise<LedgerEntry | undefined> {
    await kept?.saved;
    return kept?.entry;
  }

  async function entriesAfter(id: string): Promise<LedgerEntry[]> {
    await file.saved();
    const ids = [...byId.keys()].filter((other) => other > id).sort();
    return ids.slice(0, LEDGER_PAGE).flatMap((other) => byId.get(other)?.entry ?? []);
  }

  return {
    prepare,
    record,
    change,
    findByKey: (idempotencyKey) => saved(byKey.get(idempotencyKey)),
    findById: (id) => saved(byId.get(id)),
    entriesAfter,
    close: () => file.close(),
  };
}

/** A file of lines. */
type AppendOnlyFile = {
  /** Returns its lines, once they are on the disk. A last line that was torn by a crash is cut off. */
  open(): Promise<string[]>;
  /** Resolves when the line is on the disk. Lines that wait for the save before them are written together. */
  append(line: string): Promise<void>;
  /** Resolves when all that was appended is on the disk. */
  saved(): Promise<void>;
  close(): Promise<void>;
};

function appendOnlyFile(path: string): AppendOnlyFile {
  let file: FileHandle | undefined;
  let waiting: string[] = [];
  let nextSave: Promise<void> | undefined;
  let lastSave: Promise<void> = Promise.resolve();

  const saved = () => nextSave ?? lastSave;
  return {
    async open() {
      file = await open(path, 'a+', 0o600);
      const text = await file.readFile('utf8');
      const whole = text.slice(0, text.lastIndexOf('\n') + 1);
      if (whole.length < text.length) await file.truncate(Buffer.byteLength(whole));
      await file.sync();
      const directory = await open(dirname(path), 'r');
      await directory.sync();
      await directory.close();
      return whole.split('\n').filter((line) => line !== '');
    },
    append(line) {
      waiting.push(`${line}\n`);
      nextSave ??= lastSave.then(async () => {
        const lines = waiting.join('');
        waiting = [];
        lastSave = nextSave ?? lastSave;
        nextSave = undefined;
        if (!file) throw new Error('the ledger is not open');
        await file.appendFile(lines);
        await file.datasync();
      });
      return nextSave;
    },
    saved,
    async close() {
      await saved();
      await file?.close();
      file = undefined;
    },
  };
}
