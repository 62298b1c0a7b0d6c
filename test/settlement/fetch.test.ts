import { afterEach, beforeEach, describe, expect, it } from 'vitest';
import type { SettlementSource } from '#src/connectors/port/settlement-source.ts';
import { readStripeSettlement } from '#src/connectors/stripe/settlement.ts';
import { fetchDue } from '#src/server/fetch-daily.ts';
import { type FetchedReport, fetchSettlement } from '#src/settlement/fetch-settlement.ts';
import { importSettlement } from '#src/settlement/import-settlement.ts';
import { dueSettlement } from '#src/store/tables/settlement-progress.ts';
import { csv } from '../connectors/settlement/read-lines.ts';
import { openStripe, type StripeUnderTest } from '../connectors/stripe/stripe-under-test.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

onOwnDatabase({ empties: 'settlement_file, settlement_line, settlement_progress, audit_log' });

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
const fetchIt = (options: object = {}) =>
  fetchSettlement(database, connection(), source, { actor: 'Ada', firstPauseMs: 1, ...options });
const nextDay = () => {
  stripe.fake.reports.available.end += DAY_S;
};
const stored = () =>
  tables.query('SELECT line_key, file_id, gross, fee, occurred_at FROM settlement_line ORDER BY line_key');
const keys = async () => (await stored()).map(({ line_key }) => line_key);
const requests = () => stripe.fake.requests.length;
const shown = (fetched: FetchedReport | 'nothing to fetch') =>
  typeof fetched === 'string' ? fetched : [fetched.period.from, fetched.period.before, fetched.result];

describe('a fetch of a settlement report', () => {
  it('the first fetch is of the last seven complete days, and a later one repeats two of those before', async () => {
    expect(shown(await fetchIt())).toEqual([
      ...[day('2026-09-24'), day('2026-10-01')],
      { fileId: expect.any(String), added: 2, repeated: 0 },
    ]);
    expect(await keys()).toEqual(['txn_1', 'txn_2']);
    expect(await fetchIt()).toBe('nothing to fetch');
    nextDay();
    stripe.fake.reports.lines.push(line(4, '2026-09-29'), line(5, '2026-10-01'));
    expect(shown(await fetchIt())).toEqual([
      ...[day('2026-09-29'), day('2026-10-02')],
      { fileId: expect.any(String), added: 2, repeated: 1 },
    ]);
    expect(await keys()).toEqual(['txn_1', 'txn_2', 'txn_4', 'txn_5']);
    const names = await tables.query('SELECT name, actor FROM settlement_file ORDER BY created_at');
    expect(names).toEqual([
      { name: 'fetched 2026-09-24 2026-10-01', actor: 'Ada' },
      { name: 'fetched 2026-09-29 2026-10-02', actor: 'Ada' },
    ]);
    expect(await dueSettlement(database)).toMatchObject([{ isMatchDue: true }]);
  });

  it('days without a line are fetched once, too', async () => {
    stripe.fake.reports.lines = [];
    for (let n = 0; n < 3; n++) {
      expect(await fetchIt()).toMatchObject({ result: { added: 0, repeated: 0 } });
      expect(await fetchIt()).toBe('nothing to fetch');
      nextDay();
    }
    expect(await tables.query('SELECT new_lines FROM settlement_file')).toHaveLength(3);
  });

  it('a fetch after an import of the same lines changes nothing, and neither does an import after a fetch', async () => {
    const { lines } = stripe.fake.reports;
    const file = (name: string, own: typeof lines) => {
      const bytes = Buffer.from(csv(Object.keys(own[0] ?? {}), own));
      return { name, open: () => new Blob([bytes]).stream() };
    };
    await importSettlement(database, connection(), file('a.csv', lines.slice(0, 1)), { actor: 'Ada' });
    const [before] = await stored();
    const september = { from: day('2026-09-01'), before: day('2026-10-01') };
    expect(await fetchIt(september)).toMatchObject({ result: { added: 1, repeated: 1 } });
    const after = await stored();
    expect(after[0]).toEqual(before);
    expect(
      await importSettlement(database, connection(), file('b.csv', lines), { actor: 'Ada' }),
    ).toMatchObject({ added: 1, repeated: 2 });
    expect((await stored()).slice(0, 2)).toEqual(after);
    expect(await fetchIt(september)).toMatchObject({ result: 'already imported' });
  });

  it('a period is fetched all of it or nothing', async () => {
    stripe.fake.reports.lines.push(line(9, '2026-09-30', { gross: '12.001' }));
    await expect(fetchIt()).rejects.toThrow('line 4, column gross: is no amount in USD');
    expect(await stored()).toEqual([]);
    stripe.fake.reports.lines.pop();
    stripe.fake.reports.pending = 1_000;
    const stop = AbortSignal.timeout(50);
    await expect(fetchIt({ stop })).rejects.toThrow();
    expect(await tables.query('SELECT 1 FROM settlement_file')).toEqual([]);
    stripe.fake.reports.pending = 0;
    expect(await fetchIt()).toMatchObject({ result: { added: 2 } });
  });

  it('a day that is not complete yet is refused, and no report begins before the first complete ones', async () => {
    await expect(fetchIt({ before: day('2026-10-02') })).rejects.toThrow(
      "the provider's reports are complete for the days before 2026-10-01 (UTC)",
    );
    expect(shown(await fetchIt({ from: day('2025-12-20'), before: day('2026-01-03') }))).toEqual([
      ...[new Date('2026-01-01T00:00:01Z'), day('2026-01-03')],
      expect.objectContaining({ added: 0 }),
    ]);
    expect(await fetchIt({ from: day('2025-12-20'), before: day('2025-12-21') })).toBe('nothing to fetch');
    stripe.fake.reports.available.start -= 400 * DAY_S;
    await expect(fetchIt({ from: day('2025-01-01'), before: day('2026-06-01') })).rejects.toThrow(
      'a report has at most 366 days',
    );
  });
});

describe('the daily fetch', () => {
  const events: string[] = [];
  beforeEach(() => void events.splice(0));
  const deps = (own: object = {}) => ({
    database,
    openedCatalogue: () => ({
      catalogue: { connections: ['s', 't'].map((id) => ({ id, connector: 'stripe' })) },
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
    expect(events).toEqual(['t 2']);
    const before = requests();
    nextDay();
    await run();
    expect(requests()).toBe(before);
    await tables.query("UPDATE settlement_file SET completed_at = now() - interval '20 hours'");
    stripe.fake.reports.lines.push(line(5, '2026-10-01'));
    await run();
    expect(events).toEqual(['t 2', 't 1']);
  });

  it('two replicas that fetch at once import each line once', async () => {
    await Promise.all([run(), run(), run()]);
    expect(await keys()).toEqual(['txn_1', 'txn_2']);
    const files = await tables.query('SELECT new_lines FROM settlement_file WHERE completed_at IS NOT NULL');
    expect(files).toEqual([{ new_lines: 2 }]);
  });

  it('a fetch that fails is reported and repeated the next time', async () => {
    stripe.fake.fail(/report_types/, { answer: { status: 500, body: {} } });
    await run();
    expect(events).toEqual([expect.stringMatching(/^t SettlementFetchError: could not .* HTTP 500$/)]);
    await run();
    expect(events).toHaveLength(2);
    expect(events[1]).toBe('t 2');
  });

  it('a connection without the setting costs neither a request nor a statement', async () => {
    const settlementSource = { ...source, isDaily: false };
    const idle = { ...deps({ settlementSource }), database: undefined as unknown as typeof database };
    await fetchDue(idle);
    expect([requests(), events]).toEqual([0, []]);
  });
});
