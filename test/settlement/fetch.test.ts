import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SettlementSource } from '#src/connectors/port/settlement-source.ts';
import { readStripeSettlement } from '#src/connectors/stripe/settlement.ts';
import { fetchDue } from '#src/server/fetch-daily.ts';
import {
  type FetchedReport,
  type FetchOptions,
  fetchNew,
  fetchPeriod,
} from '#src/settlement/fetch-settlement.ts';
import { importSettlement } from '#src/settlement/import-settlement.ts';
import { dueSettlement } from '#src/store/tables/settlement-progress.ts';
import { csv } from '../connectors/settlement/read-lines.ts';
import { openStripe, type StripeUnderTest } from '../connectors/stripe/stripe-under-test.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

onOwnDatabase({
  empties: 'settlement_file, settlement_line, settlement_progress, settlement_coverage, audit_log',
});

const DAY_S = 86_400;
const day = (text: string) => new Date(text);
const line = (n: number, effective: string, more: Record<string, string> = {}) => ({
  ...{ automatic_payout_id: 'po_1', automatic_payout_effective_at_utc: `${effective} 00:00:00` },
  ...{ balance_transaction_id: `txn_${n}`, created_utc: '2026-09-20 10:00:00', currency: 'usd' },
  ...{ gross: '12.00', fee: '0.65', net: '11.35', reporting_category: 'charge', source_id: `ch_${n}` },
  ...{ payment_intent_id: `pi_${n}`, customer_facing_amount: '12.00', customer_facing_currency: 'usd' },
  ...more,
});

let stripe: StripeUnderTest;
let source: SettlementSource;
beforeEach(async () => {
  stripe = await openStripe({ settings: { fetch_settlement: true, account_id: 'acct_1' } });
  source = stripe.connection.settlementSource as SettlementSource;
  stripe.fake.reports.lines = [line(1, '2026-09-25'), line(2, '2026-09-30'), line(3, '2026-08-31')];
});
afterEach(() => stripe.close());

const connection = () => ({
  ...{ id: 's', identity: stripe.connection.identity, read: readStripeSettlement, currency: undefined },
});
const OPTIONS: FetchOptions = { actor: 'Ada', firstPauseMs: 1 };
/** Fetches what is new, and returns the first days with their new and repeated lines. */
async function fetchIt(options: FetchOptions = OPTIONS): Promise<string[]> {
  const fetched: string[] = [];
  for await (const report of fetchNew(database, connection(), source, options)) fetched.push(shown(report));
  return fetched;
}
const fetchDays = async (from: string, before: string) =>
  shown(await fetchPeriod(database, connection(), source, { from: day(from), before: day(before) }, OPTIONS));
const nextDay = () => {
  stripe.fake.reports.available.end += DAY_S;
};
const stored = () =>
  tables.query('SELECT line_key, file_id, gross, fee, occurred_at FROM settlement_line ORDER BY line_key');
const keys = async () => (await stored()).map(({ line_key }) => line_key);
const requests = () => stripe.fake.requests.length;
const shown = ({ period, result }: FetchedReport) => {
  const first = period.from.toISOString().slice(0, 10);
  return typeof result === 'string' ? `${first} again` : `${first} ${result.added} ${result.repeated}`;
};

describe('a fetch of a settlement report', () => {
  it('the last seven complete days are fetched first, and later the new ones and the two before', async () => {
    expect(await fetchIt()).toEqual([
      ...['2026-09-24 0 0', '2026-09-25 1 0', '2026-09-26 0 0', '2026-09-27 0 0', '2026-09-28 0 0'],
      ...['2026-09-29 0 0', '2026-09-30 1 0'],
    ]);
    expect(await keys()).toEqual(['txn_1', 'txn_2']);
    const before = stripe.fake.reports.runs.size;
    expect(await fetchIt()).toEqual([]);
    expect(stripe.fake.reports.runs.size).toBe(before);
    nextDay();
    stripe.fake.reports.lines.push(line(4, '2026-09-29'), line(5, '2026-10-01'));
    expect(await fetchIt()).toEqual(['2026-09-29 1 0', '2026-09-30 again', '2026-10-01 1 0']);
    expect(await keys()).toEqual(['txn_1', 'txn_2', 'txn_4', 'txn_5']);
    const names = await tables.query(
      'SELECT name, actor FROM settlement_file WHERE new_lines > 0 ORDER BY id',
    );
    expect(names).toEqual([
      { name: 'fetched 2026-09-25 2026-09-26', actor: 'Ada' },
      { name: 'fetched 2026-09-30 2026-10-01', actor: 'Ada' },
      { name: 'fetched 2026-09-29 2026-09-30', actor: 'Ada' },
      { name: 'fetched 2026-10-01 2026-10-02', actor: 'Ada' },
    ]);
    expect(await dueSettlement(database)).toMatchObject([{ isMatchDue: true }]);
  });

  it('a fetch that failed half-way continues with the day that failed', async () => {
    stripe.fake.reports.lines.push(line(9, '2026-09-27', { gross: '12.001' }));
    await expect(fetchIt()).rejects.toThrow('line 2, column gross: is no amount in USD');
    expect(await keys()).toEqual(['txn_1']);
    stripe.fake.reports.lines.pop();
    expect(await fetchIt()).toEqual([
      ...['2026-09-25 again', '2026-09-26 again', '2026-09-27 0 0', '2026-09-28 0 0', '2026-09-29 0 0'],
      '2026-09-30 1 0',
    ]);
  });

  it('a fetch after an import of the same lines changes nothing, and neither does an import after a fetch', async () => {
    const { lines } = stripe.fake.reports;
    const file = (name: string, own: typeof lines) => {
      const bytes = Buffer.from(csv(Object.keys(own[0] ?? {}), own));
      return { name, open: () => new Blob([bytes]).stream() };
    };
    await importSettlement(database, connection(), file('a.csv', lines.slice(0, 1)), { actor: 'Ada' });
    const [before] = await stored();
    expect(await fetchDays('2026-09-01', '2026-10-01')).toBe('2026-09-01 1 1');
    const after = await stored();
    expect(after[0]).toEqual(before);
    const again = await importSettlement(database, connection(), file('b.csv', lines), { actor: 'Ada' });
    expect(again).toMatchObject({ added: 1, repeated: 2 });
    expect((await stored()).slice(0, 2)).toEqual(after);
    expect(await fetchDays('2026-09-01', '2026-10-01')).toBe('2026-09-01 again');
  });

  it('a period is fetched all of it or nothing', async () => {
    stripe.fake.reports.lines.push(line(9, '2026-09-30', { gross: '12.001' }));
    await expect(fetchDays('2026-09-01', '2026-10-01')).rejects.toThrow('line 4, column gross: is no amount');
    stripe.fake.reports.pending = 1_000;
    await expect(fetchIt({ ...OPTIONS, stop: AbortSignal.timeout(50) })).rejects.toThrow();
    expect(await stored()).toEqual([]);
    expect(await tables.query('SELECT 1 FROM settlement_file')).toEqual([]);
  });

  it('a period that leaves a gap does not end the fetches of the days before it', async () => {
    await fetchIt();
    stripe.fake.reports.available.end += 30 * DAY_S;
    expect(await fetchDays('2026-10-20', '2026-10-25')).toBe('2026-10-20 0 0');
    const fetched = await fetchIt();
    expect([fetched[0], fetched.length]).toEqual(['2026-09-29 again', 32]);
  });

  it('days that are not complete or too early are refused, and so are too many', async () => {
    const complete =
      'the provider has complete reports on the days from 2026-01-01 and before 2026-10-01 (UTC)';
    await expect(fetchDays('2026-09-01', '2026-10-02')).rejects.toThrow(complete);
    await expect(fetchDays('2026-01-01', '2026-01-02')).rejects.toThrow(complete);
    expect(await fetchDays('2026-01-02', '2026-01-03')).toBe('2026-01-02 0 0');
    stripe.fake.reports.available.start -= 400 * DAY_S;
    await expect(fetchDays('2025-01-01', '2026-06-01')).rejects.toThrow('a report has at most 366 days');
    // The first day of which there are reports may be later than a week ago.
    stripe.fake.reports.available.start = Date.UTC(2026, 8, 29) / 1000;
    await tables.query('DELETE FROM settlement_file');
    expect(await fetchIt()).toEqual(['2026-09-30 1 0']);
  });

  it('a file with the name of a fetched report does not count as one', async () => {
    const bytes = Buffer.from(csv(Object.keys(line(1, '')), [line(8, '2026-09-30')]));
    const file = { name: 'fetched 2026-01-01 2030-01-01', open: () => new Blob([bytes]).stream() };
    await importSettlement(database, connection(), file, { actor: 'Ada' });
    expect(await fetchIt()).toHaveLength(7);
  });
});

describe('the daily fetch', () => {
  const events: string[] = [];
  beforeEach(() => void events.splice(0));
  const deps = (own: object = {}) => ({
    database,
    openedCatalogue: () => ({
      catalogue: { connections: ['s', 't'].map((id) => ({ id, connector: 'stripe', agreedFees: [] })) },
      // Two connections to one account.
      connections: new Map(['s', 't'].map((id) => [id, { ...stripe.connection, ...own }])),
    }),
    settlementFetches: {
      fetched: (id: string, { result }: FetchedReport) =>
        void events.push(`${id} ${typeof result === 'string' ? result : result.added}`),
      failed: (id: string, error: unknown) => void events.push(`${id} ${error}`),
    },
  });
  const run = (own?: object) => fetchDue(deps(own), { firstPauseMs: 1 });

  it('an account is fetched once a day, whatever the number of its connections', async () => {
    await run();
    expect(events).toEqual(['t 0', 't 1', 't 0', 't 0', 't 0', 't 0', 't 1']);
    const before = requests();
    await run();
    // The provider has not completed another day.
    expect(requests()).toBe(before + 1);
    nextDay();
    stripe.fake.reports.lines.push(line(5, '2026-10-01'));
    await run();
    expect(events.slice(7)).toEqual([...['t already imported', 't already imported'], 't 1']);
  });

  it('two replicas that fetch at once import each line once', async () => {
    await Promise.all([run(), run(), run()]);
    expect(events.filter((event) => event.includes('Error'))).toEqual([]);
    expect(await keys()).toEqual(['txn_1', 'txn_2']);
    const files = await tables.query('SELECT new_lines FROM settlement_file WHERE new_lines > 0');
    expect(files).toEqual([{ new_lines: 1 }, { new_lines: 1 }]);
    expect(await tables.query('SELECT 1 FROM settlement_file WHERE completed_at IS NULL')).toEqual([]);
  });

  it('a fetch that fails is reported and repeated the next time', async () => {
    stripe.fake.fail(/report_types/, { answer: { status: 500, body: {} } });
    await run();
    expect(events).toEqual([expect.stringMatching(/^t SettlementFetchError: could not .* HTTP 500$/)]);
    await run();
    expect(events).toHaveLength(8);
  });

  it('a connection without the setting costs neither a request nor a statement', async () => {
    const settlementSource = { ...source, isDaily: false };
    const idle = { ...deps({ settlementSource }), database: undefined as unknown as typeof database };
    await fetchDue(idle);
    expect([requests(), events]).toEqual([0, []]);
  });
});
