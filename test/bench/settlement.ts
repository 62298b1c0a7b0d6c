import { createWriteStream } from 'node:fs';
import { join } from 'node:path';
import { Readable } from 'node:stream';
import { pipeline } from 'node:stream/promises';
import pg from 'pg';
import { readArguments } from '#src/commands/command-line.ts';
import { createProgress } from '#src/commands/progress.ts';
import { positive } from './arguments.ts';
import type { ImportOrder, ImportResult } from './import-report.ts';
import { cpuOfTreeMs, machineName, peakResidentMb } from './proc.ts';
import { addAccounts } from './stored-payments.ts';
import { cleanUpAfter, type Ending, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: npm run bench:settlement -- [--lines 1000000]

Stores payments of a hundred accounts over 30 days, imports a settlement report with a line for each, and finds their
transactions. It prints the durations, the CPU time and the memory. Every line must be matched, without a difference.`;

const { values } = readArguments(USAGE, { options: { lines: { type: 'string', default: '1000000' } } });
const lines = positive('lines', values.lines);
const BATCH = 20_000;

/** Ids end with the last six digits of their account's, as the service's do. */
const FILL = `
  WITH made AS (
    SELECT ('acc00000-0000-4000-8000-' || lpad((n % 99 + 1)::text, 12, '0'))::uuid AS account,
      overlay(uuidv7(age)::text PLACING lpad((n % 99 + 1)::text, 6, '0') FROM 31)::uuid AS id, now() + age AS at, n
    FROM generate_series($1::integer, $2::integer) AS n,
      LATERAL (SELECT interval '30 days' * (n::float8 / $3::float8 - 1)) AS aged (age)
  ), paid AS (
    INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, created_at)
    SELECT id, account, 'stored-' || n, '', '', 'SUCCEEDED', '', at FROM made
  )
  INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
    currency, capture, created_at, succeeded_at, provider_payment_id)
  SELECT id, id, account, 'bench', 'bench', 'SUCCEEDED', 1000, 'USD', true, at, at, 'ch_' || id FROM made`;

await cleanUpAfter(bench);

async function bench(ending: Ending): Promise<void> {
  const { home, databaseUrl, postmaster } = await startSurroundings('settlement', ending);
  const client = new pg.Client(databaseUrl);
  await client.connect();
  ending.push(() => client.end());
  const progress = createProgress(process.stderr);
  await addAccounts(client);
  await client.query('SET synchronous_commit = off');
  for (let first = 1; first <= lines; first += BATCH) {
    progress.state(`storing payment ${first}`);
    await client.query(FILL, [first, Math.min(first + BATCH - 1, lines), lines]);
  }
  await client.query('VACUUM (ANALYZE) payment, transaction');
  await client.query('CHECKPOINT');
  progress.end();
  const path = join(home, 'report.csv');
  await pipeline(Readable.from(writeReport(client)), createWriteStream(path));

  const worker = await startWorker<ImportOrder, ImportResult>('import-report.ts');
  ending.push(worker.stop);
  const before = cpuOfTreeMs(postmaster);
  const { importMs, matchMs, cpuMs, added, matched } = await worker.ask({ databaseUrl, path });
  const { rows } = await client.query('SELECT count(*)::integer AS n FROM settlement_difference');
  if (added < lines || matched !== lines || rows[0].n !== 0) {
    throw new Error(`${added} lines, ${matched} of them matched, ${rows[0].n} differences`);
  }
  console.log(machineName());
  console.table({
    [`a report of ${added} lines`]: {
      'import s': seconds(importMs),
      'match s': seconds(matchMs),
      'CPU s': seconds(cpuMs),
      'PG CPU s': seconds(cpuOfTreeMs(postmaster) - before),
      'peak MB': Math.round(peakResidentMb(worker.pid)),
    },
  });
}

/** Writes a report as the sandbox's, with a payout for each thousand payments. */
async function* writeReport(client: pg.Client): AsyncGenerator<string> {
  yield 'movement,type,created_at,payment,operation,transaction,amount,currency,gross,fee,net,settlement_currency,exchange_rate,payout\n';
  let after = '00000000-0000-0000-0000-000000000000';
  for (;;) {
    const { rows } = await client.query<{ id: string; at: Date }>(
      'SELECT id, succeeded_at AS at FROM transaction WHERE id > $1 ORDER BY id LIMIT 1000',
      [after],
    );
    const last = rows.at(-1);
    if (!last) return;
    after = last.id;
    const paid = rows.map(
      ({ id, at }) =>
        `ch_${id}/1,payment,${at.toISOString()},ch_${id},ch_${id},${id},10.00,USD,10.00,-0.59,9.41,USD,,po_${after}\n`,
    );
    const total = ((rows.length * 941) / 100).toFixed(2);
    yield `${paid.join('')}po_${after},payout,${last.at.toISOString()},,,,-${total},USD,-${total},0.00,-${total},USD,,po_${after}\n`;
  }
}

function seconds(ms: number): number {
  return Math.round(ms / 100) / 10;
}
