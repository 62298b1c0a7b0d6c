import { describe, expect, it } from 'vitest';
import type { SettlementSource } from '#src/connectors/port/settlement-source.ts';
import { readStripeSettlement } from '#src/connectors/stripe/settlement.ts';
import { readLines } from '../settlement/read-lines.ts';
import { openedForEach } from '../under-test.ts';
import { openStripe } from './stripe-under-test.ts';

const under = openedForEach(openStripe);
const SEPTEMBER = { from: new Date('2026-09-01'), before: new Date('2026-10-01') };
const OURS = '01999999-aaaa-7bbb-8ccc-000000123456';
const CHARGE = {
  ...{ automatic_payout_id: 'po_1', automatic_payout_effective_at_utc: '2026-09-30 00:00:00' },
  ...{ balance_transaction_id: 'txn_1', created_utc: '2026-09-28 23:59:59', currency: 'usd' },
  ...{ gross: '12.00', fee: '0.65', net: '11.35', reporting_category: 'charge', source_id: 'ch_1' },
  ...{ charge_id: 'ch_1', payment_intent_id: 'pi_1', customer_facing_amount: '12.00' },
  ...{ customer_facing_currency: 'usd', 'payment_metadata[transaction_id]': OURS },
  ...{ customer_email: 'ada@example.com', description: 'Two nights, "sea view"' },
};

function source(of = under.connection): SettlementSource {
  if (!of.settlementSource) throw new Error('the connection has no settlement source');
  return of.settlementSource;
}

async function reportOf(of = source()) {
  const id = await of.request(SEPTEMBER);
  expect(await of.read(id)).toBeUndefined();
  return of.read(id);
}

describe("Stripe's reports on payouts", () => {
  it('the period of complete reports lies a second within what Stripe says', async () => {
    expect(await source().available()).toEqual({
      from: new Date('2026-01-01T00:00:01Z'),
      before: new Date('2026-10-01T04:59:59Z'),
    });
  });

  it('a report is requested, awaited and read, with the lines that a file from the dashboard has', async () => {
    const { reports, requests } = under.fake;
    reports.lines = [
      CHARGE,
      {
        ...CHARGE,
        balance_transaction_id: 'txn_2',
        automatic_payout_effective_at_utc: '2026-10-01 00:00:00',
      },
      // Stripe's API counts both currencies in hundredths; its reports do not.
      { ...CHARGE, balance_transaction_id: 'txn_3', currency: 'isk', gross: '1200', fee: '65', net: '1135' },
      { ...CHARGE, balance_transaction_id: 'txn_4', currency: 'ugx', gross: '1200', fee: '65', net: '1135' },
    ];
    const text = new TextDecoder().decode(await reportOf());
    expect(text).not.toMatch(/ada@|sea view/);
    const lines = await readLines(readStripeSettlement, text);
    expect(
      lines.map(({ key, gross, fee, settlementCurrency }) => [key, gross, fee, settlementCurrency]),
    ).toEqual([
      ['txn_1', 1200n, -65n, 'USD'],
      ['txn_3', 1200n, -65n, 'ISK'],
      ['txn_4', 1200n, -65n, 'UGX'],
    ]);
    const [line] = lines;
    expect(line).toMatchObject({ ourId: OURS, payoutReference: 'po_1', providerReference: 'pi_1' });
    const [fromDashboard] = await readLines(
      readStripeSettlement,
      `${Object.keys(CHARGE)}\n${Object.values({ ...CHARGE, description: '' })}\n`,
    );
    expect(line).toEqual(fromDashboard);
    expect(requests.every(({ headers }) => headers['stripe-version'] === '2023-08-16')).toBe(true);
  });

  it.each<[string, RegExp, (of: SettlementSource) => Promise<unknown>]>([
    ['read which reports there are', /report_types/, (of) => of.available()],
    ['request a report', /POST .*report_runs/, (of) => of.request(SEPTEMBER)],
    ["read a report's file", /contents/, reportOf],
  ])('if the service cannot %s, the error says why, and a repeat succeeds', async (what, pattern, call) => {
    const answers = [
      [{ status: 302, body: { url: 'https://elsewhere.example' } }, 'HTTP 302'],
      [{ status: 500, body: {} }, 'HTTP 500'],
      [{ status: 403, body: { error: { message: 'sk_test_1 may not' } } }, 'the API key must be allowed'],
    ] as const;
    for (const [answer, reason] of answers) {
      under.fake.fail(pattern, { answer });
      const error = await call(source()).then(String, String);
      expect(error).toMatch(/^SettlementFetchError: could not /);
      expect(error).toContain(what);
      expect(error).toContain(reason);
      expect(error).not.toContain('sk_test');
    }
    under.fake.fail(pattern, 'lost_before');
    await expect(call(source())).rejects.toThrow(/could not .*: (awaiting the response|before sending)/);
    // A file has minutes.
    if (pattern.source !== 'contents') {
      under.fake.fail(pattern, 'silent');
      await expect(call(source(under.impatient))).rejects.toThrow('DEADLINE');
    }
    await call(source());
  });

  it("Stripe's words about a wrong period, a failed report and a report that is too large are shown", async () => {
    const later = { from: SEPTEMBER.from, before: new Date('2026-10-02') };
    await expect(source().request(later)).rejects.toThrow(/HTTP 400: The interval must be within/);
    under.fake.reports.failure = 'An internal error';
    await expect(reportOf()).rejects.toThrow('Stripe could not write the report: An internal error');
    Object.assign(under.fake.reports, { failure: '', size: 33_554_433 });
    await expect(reportOf()).rejects.toThrow(
      'has 33554433 bytes, more than 33554432: fetch a shorter period, or import the file',
    );
    expect(under.fake.requests.filter(({ call }) => call.includes('/files/'))).toEqual([]);
  });

  it('a file that is larger than it was said to be is refused', async () => {
    Object.assign(under.fake.reports, { size: 1 });
    under.fake.reports.lines = Array.from({ length: 3_400 }, () => ({
      ...CHARGE,
      source_id: 'x'.repeat(10_000),
    }));
    await expect(reportOf()).rejects.toThrow(
      "could not read a report's file: reading the response: ANSWER_TOO_LARGE",
    );
  });

  it('reports are fetched daily only if the setting says so', async () => {
    expect(source().isDaily).toBe(false);
    const daily = await openStripe({ settings: { fetch_settlement: true } });
    expect(source(daily.connection).isDaily).toBe(true);
    await daily.close();
  });
});
