import { execFileSync } from 'node:child_process';
import { createWriteStream, mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { openLedger } from '#sandbox/ledger.ts';
import { SANDBOX_ACCOUNT, writeSettlementReport } from '#sandbox/settlement-report.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { withClockAhead } from '../support/process-clock.ts';
import { readCsv } from '../support/read-csv.ts';
import { endAfterEach, spawnCommand, startProgram } from '../support/service-process.ts';
import { type Made, makeMonth, spreadOverMonth } from './month.ts';

/** Number of payments; the contract of the month is one hundred thousand. */
const COUNT = Number(process.env.SETTLED_PAYMENTS ?? 600);
/** Number of lines that an import stores at once. */
const BATCH = 1_000;
const TIMEOUT_MS = 120_000 + COUNT * 60;

const directory = mkdtempSync(join(tmpdir(), 'payments-month-'));
const report = join(directory, 'report.csv');
let made: readonly Made[];

onService();
endAfterEach();
beforeAll(async () => {
  made = await makeMonth(server.url, COUNT);
  await vi.waitFor(
    async () =>
      expect(
        await tables.query(`
          SELECT 1 FROM transaction WHERE status = 'PENDING' AND type <> 'CHARGEBACK'
          UNION ALL SELECT 1 FROM sandbox.ledger WHERE kind = 'dispute' AND due_at IS NOT NULL LIMIT 1`),
      ).toEqual([]),
    { timeout: TIMEOUT_MS, interval: 500 },
  );
  await spreadOverMonth(tables, made);
  writeFileSync(report, await withClockAhead(120_000, writeReport));
}, TIMEOUT_MS);
afterAll(() => rmSync(directory, { recursive: true }));

async function writeReport(): Promise<string> {
  const ledger = openLedger(server.databaseUrl);
  const text = await Array.fromAsync(writeSettlementReport(ledger, SANDBOX_ACCOUNT));
  await ledger.close();
  return text.join('');
}

const environment = () => ({
  DATABASE_URL: server.databaseUrl,
  SANDBOX: 'on',
  HASH_KEY: Buffer.from(server.keys.hashKey).toString('base64'),
  VAULT_KEYS: `one:${Buffer.alloc(32).toString('base64')}`,
});
const importFile = (path: string) =>
  spawnCommand('settlement', environment(), 'import', path, '--connection', 'sandbox-one');

/** The number and the hash of what is known of reports, without times. */
async function known() {
  const digest = async (columns: string, table: string) =>
    (
      await tables.query(
        `SELECT count(*)::integer AS n, md5(string_agg(one, ' ' ORDER BY one)) AS hash
         FROM (SELECT concat_ws(' ', ${columns}) AS one FROM ${table}) AS rows`,
      )
    )[0] as { n: number; hash: string };
  return {
    lines: await digest('line_key, result, net', 'settlement_line'),
    matches: await digest('transaction_id, line_key, net', 'settlement_match'),
    differences: await digest('kind, subject, detail, ended_at IS NULL', 'settlement_difference'),
  };
}

/** The differences that are there, by the payment that they are about; of a payout, the payment that it was to leave out. */
async function differences(): Promise<string[]> {
  const found = await tables.query(`
    WITH open AS (SELECT kind, subject, payment_id FROM settlement_difference WHERE ended_at IS NULL),
      matched AS MATERIALIZED (SELECT line_key, payment_id, payout_reference, settlement_currency FROM settlement_match),
      unpaid AS (SELECT id, parent_id FROM sandbox.ledger WHERE details::jsonb->>'settleWrong' = 'payout')
    SELECT kind, payment_id::text AS payment FROM open WHERE kind NOT IN ('unknown_line', 'payout_unbalanced')
    UNION ALL SELECT kind, s.key FROM open LEFT JOIN shifted s ON s.charge = split_part(subject, '/', 1)
    WHERE kind = 'unknown_line'
    UNION ALL SELECT o.kind, m.payment_id::text
    FROM open o LEFT JOIN (matched m JOIN unpaid ON unpaid.id = split_part(m.line_key, '/', 1))
      ON m.payout_reference || ' ' || m.settlement_currency = o.subject
    WHERE o.kind = 'payout_unbalanced'`);
  return found.map(({ kind, payment }) => `${kind} ${payment}`).sort();
}

it('an import that is killed while it reads changes nothing', { timeout: TIMEOUT_MS }, async () => {
  const lines = readFileSync(report, 'utf8').split(/(?<=\n)/);
  expect(lines.length).toBeGreaterThan(BATCH + 1);
  const pipe = join(directory, 'pipe.csv');
  execFileSync('mkfifo', [pipe]);
  const args = ['import', pipe, '--connection', 'sandbox-one'];
  const { child, ended } = startProgram('src/commands/settlement.ts', environment(), args);
  // It is read once for its hash, and then once more.
  await new Promise((resolve) => createWriteStream(pipe).end(lines.join(''), () => resolve(undefined)));
  await vi.waitFor(async () => expect(await tables.query('SELECT 1 FROM settlement_file')).toHaveLength(1), {
    timeout: 60_000,
  });
  const second = createWriteStream(pipe);
  second.on('error', () => {});
  second.write(lines.slice(0, BATCH + 100).join(''));
  await vi.waitFor(async () => expect((await known()).lines.n).toBe(BATCH), { timeout: 60_000 });
  child.kill('SIGKILL');
  second.destroy();
  expect((await ended).signal).toBe('SIGKILL');
  const { matches, differences: found } = await known();
  expect([matches.n, found.n]).toEqual([0, 0]);
  expect((await importFile(report)).stderr).toContain('repeat in 5 minutes');
  await tables.query("UPDATE settlement_file SET seen_at = now() - interval '6 minutes'");
});

it('an import that is killed while it matches is completed by the next', {
  timeout: TIMEOUT_MS,
}, async () => {
  await tables.query('BEGIN');
  await tables.query('LOCK TABLE settlement_match IN EXCLUSIVE MODE');
  const args = ['import', report, '--connection', 'sandbox-one'];
  const { child, ended } = startProgram('src/commands/settlement.ts', environment(), args);
  const waits = () =>
    tables.query("SELECT 1 FROM pg_locks WHERE relation = 'settlement_match'::regclass AND NOT granted");
  await vi.waitFor(async () => expect(await waits()).toHaveLength(1), { timeout: TIMEOUT_MS });
  child.kill('SIGKILL');
  await ended;
  await tables.query('ROLLBACK');
  const { code, stdout, stderr } = await importFile(report);
  expect(stdout).toContain('it was imported before');
  expect([code, stderr]).toEqual([3, expect.stringContaining('ALARM')]);
});

it('every difference of the month is found, and nothing else', { timeout: TIMEOUT_MS }, async () => {
  const expected = made.flatMap(({ paymentId, differences: kinds }) =>
    kinds.map((kind) => `${kind} ${paymentId}`),
  );
  const found = await differences();
  const without = (list: readonly string[], others: readonly string[]) => {
    const known = new Set(others);
    return list.filter((one) => !known.has(one));
  };
  expect(without(found, expected)).toEqual([]);
  expect(without(expected, found)).toEqual([]);
  expect(found).toHaveLength(expected.length);
  expect(new Set(expected.map((text) => text.split(' ')[0])).size).toBe(10);
});

it('the same report again, and its lines in another order, change nothing', {
  timeout: TIMEOUT_MS,
}, async () => {
  const before = await known();
  expect((await importFile(report)).stdout).toContain('it was imported before');
  expect(await known()).toEqual(before);
  const [header = '', ...lines] = readFileSync(report, 'utf8').split(/(?<=\n)/);
  const again = join(directory, 'again.csv');
  writeFileSync(again, header + lines.reverse().join(''));
  expect((await importFile(again)).stdout).toContain(`0 new lines, ${lines.length} repeated`);
  expect(await known()).toEqual(before);
});

it('fees, payouts and what they leave add up to the provider’s ledger', { timeout: TIMEOUT_MS }, async () => {
  const sums = await tables.query(`
    SELECT settlement_currency, sum(net) FILTER (WHERE kind <> 'payout')::bigint AS moved,
      -sum(net) FILTER (WHERE kind = 'payout')::bigint AS paid
    FROM settlement_line GROUP BY 1 ORDER BY 1`);
  const unpaid = await tables.query(`
    SELECT settlement_currency, sum(net)::bigint AS n FROM settlement_line l JOIN settlement_difference d
      ON d.account_id = l.account_id AND d.kind = 'payout_unbalanced' AND d.subject = l.payout_reference || ' ' || l.settlement_currency
    GROUP BY 1`);
  const left = new Map(unpaid.map(({ settlement_currency, n }) => [settlement_currency, BigInt(String(n))]));
  for (const { settlement_currency, moved, paid } of sums) {
    const rest = left.get(settlement_currency) ?? 0n;
    expect([settlement_currency, BigInt(String(moved)) - BigInt(String(paid))]).toEqual([
      settlement_currency,
      rest,
    ]);
  }
});

it('the exported lines and differences are those of the report, each once, with the report’s amounts', {
  timeout: TIMEOUT_MS,
}, async () => {
  const file = async (kind: string, period: Record<string, string>) => {
    const response = await fetch(`${server.url}/v1/exports/${kind}.csv?${new URLSearchParams(period)}`, {
      headers: { 'operator-key': 'op_sandbox' },
    });
    expect(response.status).toBe(200);
    return readCsv(await response.text());
  };
  const [{ from, before, until } = {}] = (await tables.query(`
    SELECT to_char(now() AT TIME ZONE 'UTC' - interval '60 days', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS from,
      to_char(now() AT TIME ZONE 'UTC' - interval '40 seconds', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS before,
      to_char(now() AT TIME ZONE 'UTC' + interval '1 day', 'YYYY-MM-DD"T"HH24:MI:SS"Z"') AS until`)) as {
    [name: string]: string;
  }[];
  const exported = await file('settlement', { from: String(from), before: String(before) });
  // The report writes one decimal place for a currency that has none.
  const key = ({ line_reference, gross, fee, net, settlement_currency, payout_reference }: Row) =>
    [line_reference, gross, fee, net, settlement_currency, payout_reference]
      .join(' ')
      .replaceAll(/\.0(?= )/g, '');
  const reported = readCsv(readFileSync(report, 'utf8'))
    .filter(({ created_at: at = '' }) => Date.parse(at) < Date.parse(String(before)))
    .map(({ movement, payout, ...line }) =>
      key({ ...line, line_reference: movement, payout_reference: payout }),
    );
  expect(reported.length).toBeGreaterThan(COUNT / 2);
  expect(exported.map(key).sort()).toEqual(reported.sort());
  await tables.query("UPDATE settlement_difference SET opened_at = opened_at - interval '1 minute'");
  const open = (await file('differences', { from: String(from), before: String(until) })).filter(
    ({ difference_status: status }) => status === 'OPEN',
  );
  expect(open.map(({ difference_kind: kind }) => kind).sort()).toEqual(
    made.flatMap(({ differences: kinds }) => kinds).sort(),
  );
});

type Row = Record<string, string | undefined>;
