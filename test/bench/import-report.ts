import { createReadStream } from 'node:fs';
import { pino } from 'pino';
import { readSandboxSettlement } from '#src/connectors/sandbox/settlement.ts';
import { importSettlement } from '#src/settlement/import-settlement.ts';
import { matchSettlement } from '#src/settlement/match-settlement.ts';
import { openDatabase } from '#src/store/engine/database.ts';
import { answerAsked } from './worker.ts';

/** A report to import. */
export type ImportOrder = { readonly databaseUrl: string; readonly path: string };

/** The cost of an import, and its lines. */
export type ImportResult = {
  readonly importMs: number;
  readonly matchMs: number;
  readonly cpuMs: number;
  readonly added: number;
  readonly matched: number;
};

answerAsked(importReport);

async function importReport({ databaseUrl, path }: ImportOrder): Promise<ImportResult> {
  const log = pino({ level: 'error' }, pino.destination(2));
  const database = openDatabase({ url: databaseUrl, maxConnections: 1, log });
  const before = process.cpuUsage();
  const startedMs = performance.now();
  const connection = { id: 'bench', identity: 'bench', read: readSandboxSettlement, currency: undefined };
  const file = { name: 'report.csv', open: () => createReadStream(path) };
  const imported = await importSettlement(database, connection, file, { actor: 'bench' });
  const importedMs = performance.now();
  const account = {
    identity: 'bench',
    connectionIds: ['bench'],
    agreedFees: new Map(),
    windowMs: 86_400_000,
  };
  const { matched } = await matchSettlement(database, account);
  const { user, system } = process.cpuUsage(before);
  await database.close();
  if (imported === 'already imported') throw new Error(imported);
  return {
    importMs: importedMs - startedMs,
    matchMs: performance.now() - importedMs,
    cpuMs: (user + system) / 1000,
    added: imported.added,
    matched,
  };
}
