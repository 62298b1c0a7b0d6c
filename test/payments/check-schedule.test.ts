import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, describe, expect, it, vi } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { withinLease } from '#src/connectors/guards/within-lease.ts';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { CheckDeps } from '#src/payments/check/check-transaction.ts';
import { checkTransaction } from '#src/payments/check/check-transaction.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { encodeRecord } from '#src/payments/stored-record.ts';
import type { Database } from '#src/store/engine/database.ts';
import { withAges } from '../support/database-clock.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { idOf, onOperatedPayments, payments, refund } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

/** The look-ups at the provider, the results for the observer, and the written schedules. */
let asked: LookUp[];
let told: unknown[];
let scheduled: unknown[];

onOperatedPayments({ empties: 'payment, transaction, notification' });
beforeEach(() => {
  [asked, told, scheduled] = [[], [], []];
  payments.provider.next.length = 0;
  vi.spyOn(Math, 'random').mockReturnValue(0.5);
});
afterEach(() => {
  vi.restoreAllMocks();
});

const providerData = create(ProviderDataSchema, { transactionId: 'theirs' });
const APPROVED: Outcome = {
  ...{ kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' },
};
const PENDING: Outcome = { kind: 'pending', providerData };
const REDIRECT: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://wallet.example' } };

/** Returns dependencies with which every transaction has this exact age by the database's clock. */
function depsAt(ageMs: number): CheckDeps {
  const aged = withAges(payments.database, () => ageMs);
  const query: Database['query'] = (statement, values = []) => {
    if (statement.name === 'postpone_check') scheduled.push(values[3] ?? 'ended');
    if (/^write_change/.test(statement.name)) scheduled.push(['written', values[14]]);
    return aged.query(statement, values);
  };
  return {
    ...payments.deps,
    database: { ...payments.database, query },
    schedule: { leaseMarginMs: 60_000, firstCheckMs: 5_000, closingMarginMs: 10_000 },
    checked: { ...payments.deps.checked, learned },
  };
}

const learned: CheckDeps['checked']['learned'] = ({ transactionId }, result) =>
  told.push([transactionId, result]);

const at = (says: Outcome, over: Partial<ProviderConnection> = {}): ProviderConnection => ({
  ...payments.provider.connection,
  lookUp: async (query) => {
    asked.push(query);
    return says;
  },
  ...over,
});
const mute = () => at(UNKNOWN, { lookUp: undefined });

const TAKE = 'UPDATE transaction SET fence = fence + 1 WHERE id = $1 RETURNING fence';
const STATUS = 'SELECT status FROM transaction WHERE id = $1';
const statusOf = async (payment: Payment) =>
  (await payments.tables.query(STATUS, [idOf(payment)]))[0]?.status;

/** Checks a payment's last transaction at an age. @returns true if the check wrote a change. */
async function check(payment: Payment, ageMs: number, connection = at(UNKNOWN)): Promise<boolean> {
  const names = { accountId: ACCOUNT_ONE, paymentId: payment.id, transactionId: idOf(payment) };
  const [row] = await payments.tables.query(TAKE, [names.transactionId]);
  const before = scheduled.length;
  const own = { ...names, connectionId: 'ledger', fence: Number(row?.fence) };
  await checkTransaction(depsAt(ageMs), withinLease(connection, Number.POSITIVE_INFINITY), own);
  return scheduled.slice(before).some(Array.isArray);
}

/** The age of a redirect at its last look-up: 30 s after its term of one day. */
const LAST_MS = DAY_MS + 30_000;

/** Makes a wallet payment whose payer is redirected. */
const sentAway = () => payments.pay({ wallet: true });

describe('a redirected payer', () => {
  it('a redirect is looked up with the data of the transaction', async () => {
    const payment = await sentAway();
    await payments.tables.query("UPDATE transaction SET reference = 'theirs'");
    expect(await check(payment, 31_000)).toBe(false);
    expect(asked).toMatchObject([
      {
        ...{ transactionId: idOf(payment), money: { minorUnits: 10_000n, currency: 'USD' } },
        ...{ reference: 'theirs', ageMs: 31_000, payerTimeLeftMs: DAY_MS - 31_000 },
        of: { kind: 'PAYER_PAGE' },
      },
    ]);
    expect(asked[0]).not.toHaveProperty('hint');
    expect(told).toEqual([[idOf(payment), UNKNOWN]]);
  });

  it.each([
    [-1, false],
    [0, true],
  ])(
    'a redirect is closed by the look-up 30 s after its term: %i ms from then, %j',
    async (fromLastMs, close) => {
      const payment = await sentAway();
      await check(payment, LAST_MS + fromLastMs);
      expect(asked.map((query) => query.close)).toEqual([close]);
    },
  );

  it.each([
    ['a minute at first', 0, 60],
    ['a minute at first', 120_000, 60],
    ['half its age', 122_000, 61],
    ['half its age', 7_000_000, 3_500],
    ['at most an hour', 7_202_000, 3_600],
    ['the time until the last look-up', LAST_MS - 50_000, 50],
    ['at least a second', LAST_MS - 500, 1],
    ['an hour once the term is over', LAST_MS, 3_600],
  ])('a redirect is looked up again after %s: at %i ms', async (_what, ageMs, pauseS) => {
    const payment = await sentAway();
    // The pause is the same however often the redirect was looked up.
    for (const times of [1, 2, 5_000]) {
      await payments.tables.query('UPDATE transaction SET fence = $1', [times]);
      await check(payment, ageMs);
    }
    expect(scheduled).toEqual([pauseS, pauseS, pauseS]);
  });

  it('a redirect that the provider still reports as a redirect is EXPIRED at the last look-up', async () => {
    const payment = await sentAway();
    expect(await check(payment, LAST_MS - 1, at(REDIRECT))).toBe(false);
    expect([await statusOf(payment), scheduled]).toEqual(['CREATED', [1]]);
    expect(await check(payment, LAST_MS, at(REDIRECT))).toBe(true);
    expect(await statusOf(payment)).toBe('EXPIRED');
  });

  it('a redirect reported as pending is written once, with the time of the next look-up', async () => {
    const payment = await sentAway();
    const before = LAST_MS - DAY_MS;
    expect(await check(payment, before, at(PENDING))).toBe(true);
    expect(await check(payment, before, at(PENDING))).toBe(false);
    expect(scheduled).toEqual([['written', 60], 60]);
    expect(await statusOf(payment)).toBe('PENDING');
  });

  it('a redirect without look-up is EXPIRED after its term, and keeps its provider data', async () => {
    const payment = await sentAway();
    const [first] = payment.transactionsHistory;
    if (first) first.providerData = providerData;
    await payments.tables.query('UPDATE payment SET record = $1', [encodeRecord(payment)]);
    expect(await check(payment, LAST_MS - 1, mute())).toBe(false);
    expect(await check(payment, LAST_MS, mute())).toBe(true);
    expect(await statusOf(payment)).toBe('EXPIRED');
    // The record keeps the provider's first response.
    expect(await getPayment(payments.deps, payment.id, payments.caller())).toMatchObject({
      transactions: { providerData: { transactionId: 'theirs' } },
    });
  });

  it('a pending redirect without look-up stays open after its term', async () => {
    const payment = await sentAway();
    await check(payment, LAST_MS - DAY_MS, at(PENDING));
    scheduled.length = 0;
    expect(await check(payment, LAST_MS, mute())).toBe(false);
    expect([await statusOf(payment), scheduled]).toEqual(['PENDING', [3_600]]);
  });
});

describe('an open operation', () => {
  async function openRefund(): Promise<Payment> {
    const payment = await payments.pay();
    payments.provider.next.push('does it, unanswered');
    return (await refund(payment)).record;
  }

  it.each([
    [10_999, false, 5.4995],
    [11_000, true, 5.5],
    [100 * DAY_MS, true, 86_400],
  ])(
    'an open operation is closed after its call and a margin, with growing pauses: %i ms, %j',
    async (ageMs, close, pauseS) => {
      const opened = await openRefund();
      // The result is the same however often the operation was checked.
      for (const times of [1, 1_000]) {
        await payments.tables.query('UPDATE transaction SET fence = $1', [times]);
        expect(await check(opened, ageMs)).toBe(false);
      }
      expect(asked).toMatchObject([
        { close, of: { kind: 'refund' } },
        { close, of: { kind: 'refund' } },
      ]);
      expect(scheduled).toEqual([pauseS, pauseS]);
    },
  );

  it.each([true, false])(
    'an open operation is not ended by a report about its payer (answered: %j)',
    async (isAnswered) => {
      const opened = await openRefund();
      if (!isAnswered) await payments.tables.query('UPDATE transaction SET response = NULL');
      const written = await check(opened, 100 * DAY_MS, at(REDIRECT));
      expect([await statusOf(opened), written]).toEqual(['PENDING', !isAnswered]);
    },
  );

  it('an open operation succeeds once the provider reports it', async () => {
    const opened = await openRefund();
    expect(await check(opened, 0, at(APPROVED))).toBe(true);
    expect([await statusOf(opened), scheduled]).toEqual(['SUCCEEDED', [['written', null]]]);
  });

  it('a check of an operation without its record throws and does not call the provider', async () => {
    const opened = await openRefund();
    await expect(check({ ...opened, id: randomUUID() }, 0)).rejects.toThrow('does not exist');
    const ofAnother = check({ ...opened, id: (await payments.pay()).id }, 0, at(APPROVED));
    await expect(ofAnother).rejects.toThrow('lacks transaction');
    expect([asked, told, scheduled]).toEqual([[], [], []]);
  });
});

describe('an authorization', () => {
  /** The age at which our term of an authorization ends. */
  const LAPSES_MS = 7 * DAY_MS;
  async function authorized(set = 'released = released') {
    const payment = await payments.pay({ capture: false });
    await payments.tables.query(`UPDATE payment SET ${set}`);
    return payment;
  }

  it('an authorization at the end of its term stays open if its look-up is unanswered', async () => {
    const payment = await authorized();
    expect(await check(payment, LAPSES_MS, at(UNKNOWN))).toBe(false);
    expect([asked.length, scheduled, await statusOf(payment)]).toEqual([1, [3_600], 'SUCCEEDED']);
  });

  it.each([
    ['reports something that needs review', { ...UNKNOWN, alarm: true } as const],
    [
      'has captured more than was authorized',
      { ...APPROVED, totals: { captured: 10_001n, refunded: 0n } } as const,
    ],
  ])('after its term, an authorization is looked up once a day if its provider %s', async (_what, says) => {
    const payment = await authorized();
    await check(payment, LAPSES_MS, at(says));
    expect([asked.length, scheduled, await statusOf(payment)]).toEqual([1, [86_400], 'SUCCEEDED']);
  });

  it('an authorization lapses at the end of its term without a look-up if the provider does not offer look-ups', async () => {
    const payment = await authorized();
    expect(await check(payment, LAPSES_MS, mute())).toBe(true);
    expect([scheduled, told]).toEqual([[['written', null]], [[idOf(payment), 'lapsed']]]);
  });

  it.each([
    ['is checked again at the end of its term', '', -5_000, [5]],
    ['is checked again after at least a second', '', -1, [1]],
    ['lapses at the end of its term', '', 0, [['written', null]]],
    ['lapses if a part of it was captured', 'captured_minor_units = 9999', 0, [['written', null]]],
    ['is no longer checked if all of it was captured', 'captured_minor_units = 10000', -5_000, ['ended']],
    ['is no longer checked if it was released', 'released = true', 0, ['ended']],
    ['waits an hour while an operation is open', `open_operation = '${randomUUID()}'`, 0, [3_600]],
    ['waits an hour while an operation is open', `open_operation = '${randomUUID()}'`, -5_000, [3_600]],
  ])('an authorization %s (set: %s), %i ms after its term', async (_what, set, fromLapseMs, expected) => {
    const payment = await authorized(set || undefined);
    const says = fromLapseMs < 0 ? UNKNOWN : APPROVED;
    const written = await check(payment, LAPSES_MS + fromLapseMs, at(says));
    expect(scheduled).toEqual(expected);
    expect(written).toBe(Array.isArray(expected[0]));
    // The provider does not know our terms, but may have ended or captured the authorization before.
    const isAsked = written || expected[0] === 5 || expected[0] === 1;
    const result = written ? 'lapsed' : UNKNOWN;
    expect(told).toEqual(written || isAsked ? [[idOf(payment), result]] : []);
    expect(asked.map(({ close }) => close)).toEqual(isAsked ? [false] : []);
  });

  it.each([
    ['a purchase', 'capture = true'],
    ['an open transaction', "status = 'PENDING'"],
    ['a dispute', "type = 'CHARGEBACK'"],
  ])('%s is looked up at the age at which authorizations lapse', async (_what, columns) => {
    const payment = await authorized();
    await payments.tables.query(`UPDATE transaction SET ${columns}`);
    await check(payment, LAPSES_MS).catch(() => {});
    expect(asked).toHaveLength(1);
  });
});
