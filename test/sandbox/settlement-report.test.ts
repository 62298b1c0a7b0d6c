import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { readSandboxSettlement } from '#src/connectors/sandbox/settlement.ts';
import { formatMoney } from '#src/money.ts';
import { readLines } from '../connectors/settlement/read-lines.ts';
import { withClockAhead } from '../support/process-clock.ts';
import { API_KEY, ask, CHARGE, type ProviderUnderTest, startProvider } from './provider-under-test.ts';

let provider: ProviderUnderTest;
beforeAll(async () => {
  provider = await startProvider();
});
afterAll(() => provider.close());

const charge = async (more: object = {}) =>
  (await ask(provider.origin, '/v1/charges', { ...CHARGE, ...more })).answer;
const operate = async (path: string, payment: string, amount: number, more: object = {}) =>
  (await ask(provider.origin, path, { payment, amount, currency: 'USD', ...more })).answer.id;

/** Reads the report of two minutes later, by its lines' payments. */
async function readReport() {
  const text = await withClockAhead(120_000, async () => (await provider.get('/v1/settlements.csv')).text());
  const lines = await readLines(readSandboxSettlement, text);
  return lines.map(({ kind, rawKind, amount, gross, fee, net, settlementCurrency: currency, ...line }) => ({
    ...line,
    text: `${rawKind} ${amount && formatMoney(amount)} ${amount?.currency}: ${formatMoney({ minorUnits: gross, currency })} ${formatMoney({ minorUnits: fee, currency })} ${currency}`,
    ...{ kind, net },
  }));
}
type Line = Awaited<ReturnType<typeof readReport>>[number];
const of = (lines: readonly Line[], payment: string) =>
  lines
    .filter(({ parentReference }) => parentReference === payment)
    .map(({ text }) => text)
    .sort();

it('the sandbox’s report has every move of money with its fee, and payouts that add up', async () => {
  const plain = await charge();
  const declined = await charge({ description: 'sandbox:decline:05' });
  const authorized = await charge({ capture: false });
  await operate('/v1/captures', authorized.id, 2000);
  await operate('/v1/captures', authorized.id, 1000, { final: true });
  const refunded = await charge();
  await operate('/v1/refunds', refunded.id, 100);
  await operate('/v1/refunds', refunded.id, 200, { description: 'sandbox:fail_after:10' });
  await operate('/v1/refunds', refunded.id, 300, { description: 'sandbox:decline:05' });
  await operate('/v1/refunds', refunded.id, 400, { description: 'sandbox:done_after:60000' });
  const disputed = await charge({ description: 'sandbox:dispute_after:0' });
  const converted = await charge({ amount: 1_000_000, currency: 'COP' });
  await vi.waitFor(async () =>
    expect(
      await provider.query(`
      SELECT id FROM sandbox.ledger WHERE details::json->'moves' IS NULL AND kind = 'dispute'
      UNION ALL SELECT id FROM sandbox.ledger WHERE kind = 'refund' AND amount = 200 AND status = 'pending'`),
    ).toEqual([]),
  );
  const lines = await readReport();
  expect(of(lines, plain.id)).toEqual(['payment 55.75 USD: 55.75 -1.92 USD']);
  expect(of(lines, declined.id)).toEqual([]);
  expect(of(lines, authorized.id)).toEqual([
    'capture 10.00 USD: 10.00 -0.59 USD',
    'capture 20.00 USD: 20.00 -0.88 USD',
  ]);
  expect(of(lines, refunded.id)).toEqual([
    'payment 55.75 USD: 55.75 -1.92 USD',
    'refund -1.00 USD: -1.00 0.00 USD',
    'refund -2.00 USD: -2.00 0.00 USD',
    'refund_failure 2.00 USD: 2.00 0.00 USD',
  ]);
  expect(of(lines, disputed.id)).toEqual([
    'dispute -55.75 USD: -55.75 -15.00 USD',
    'payment 55.75 USD: 55.75 -1.92 USD',
  ]);
  expect(of(lines, converted.id)).toEqual(['payment 10000.00 COP: 2.50 -0.37 USD']);
  expect(lines.find(({ parentReference }) => parentReference === plain.id)).toMatchObject({
    ...{ key: `${plain.id}/1`, kind: 'payment', providerReference: plain.id },
    occurredAt: expect.any(Date),
  });
  for (const [payout, own] of Map.groupBy(lines, ({ payoutReference }) => payoutReference)) {
    expect([payout, own.reduce((sum, { net }) => sum + net, 0n)]).toEqual([payout, 0n]);
    expect(own.filter(({ kind }) => kind === 'payout')).toHaveLength(1);
  }
});

it.each([
  ['missing', []],
  ['amount', ['payment 55.76 USD: 55.76 -1.92 USD']],
  ['currency', ['payment 55.75 EUR: 55.75 -1.92 USD']],
  ['twice', ['payment 55.75 USD: 55.75 -1.92 USD', 'payment 55.75 USD: 55.75 -1.92 USD']],
  ['unknown', []],
  ['fee', ['payment 55.75 USD: 55.75 -3.84 USD']],
])('a report that is %s on request', async (how, expected) => {
  const { id } = await charge({ description: `sandbox:settle_wrong:${how}` });
  expect(of(await readReport(), id)).toEqual(expected);
});

it('a declined charge is settled, and a refund taken back, on request', async () => {
  const declined = await charge({ description: 'sandbox:decline:05,settle_wrong:declined' });
  const { id } = await charge();
  await operate('/v1/refunds', id, 100, { description: 'sandbox:settle_wrong:reversed' });
  const lines = await readReport();
  expect(of(lines, declined.id)).toEqual(['payment 55.75 USD: 55.75 -1.92 USD']);
  expect(of(lines, id)).toEqual([
    'payment 55.75 USD: 55.75 -1.92 USD',
    'refund -1.00 USD: -1.00 0.00 USD',
    'refund_failure 1.00 USD: 1.00 0.00 USD',
  ]);
});

it('a report is of one account, and has nothing that is not yet paid out', async () => {
  await charge();
  const headers = { authorization: `Bearer ${API_KEY}`, 'sandbox-account': 'acct_other' };
  const other = await withClockAhead(120_000, async () =>
    (await fetch(`${provider.origin}/v1/settlements.csv`, { headers })).text(),
  );
  expect(other.split('\r\n')).toHaveLength(2);
  const early = await (await provider.get('/v1/settlements.csv')).text();
  expect(early.split('\r\n')).toHaveLength(2);
});

it('an unknown difference is refused', async () => {
  const { status } = await ask(provider.origin, '/v1/charges', {
    ...{ ...CHARGE, description: 'sandbox:settle_wrong:much' },
  });
  expect(status).toBe(400);
});
