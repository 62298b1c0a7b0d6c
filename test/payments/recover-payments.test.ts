import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { pino } from 'pino';
import { afterAll, beforeAll, beforeEach, describe, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  PaymentSchema,
  ProviderDataSchema,
} from '#gen/payments/v1/payment_pb.js';
import { systemClock } from '#src/clock.ts';
import { CARDS_ONLY } from '#src/connectors/capabilities.ts';
import type { LookUp, Outcome, ProviderConnection } from '#src/connectors/connector.ts';
import { finishOf, type TakenAttempt, writeFinish } from '#src/payments/finish-payment.ts';
import { type RecoveryDeps, recoverDue, startRecovery } from '#src/payments/recover-payments.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { type Database, openDatabase } from '#src/store/database.ts';
import { findByKey, getPaymentRecord } from '#src/store/payments.ts';
import { createTestDatabase, type TestDatabase } from '../support/database.ts';
import { claimAttempt, type OpenAttempt } from '../support/open-attempts.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { openTables, type Tables } from '../support/tables.ts';

const providerData = create(ProviderDataSchema, { id: 'SCRIPTED', transactionId: 'ch_1' });
const APPROVED: Outcome = {
  kind: 'approved',
  providerData,
  authorizationCode: 'A1B2C3',
  retrievalReferenceNumber: '012345678901',
};
const DECLINED: Outcome = { kind: 'declined', providerData, iso8583Code: '51' };
const NOT_SENT: Outcome = { kind: 'not_sent', detail: 'closed', because: 'turned_away' };
const UNKNOWN: Outcome = { kind: 'unknown', detail: 'silence', providerData: undefined };

let test: TestDatabase;
let database: Database;
let tables: Tables;
let asked: LookUp[];
let seen: string[];
let open: number[];

beforeAll(async () => {
  test = await createTestDatabase();
  database = openDatabase({ url: test.url, maxConnections: 4, log: pino({ level: 'silent' }) });
  tables = await openTables(test.url);
  await tables.query('INSERT INTO account (id, name) VALUES ($1, $2)', [ACCOUNT_ONE, 'Recovery']);
});
beforeEach(async () => {
  await tables.query('TRUNCATE payment, transaction, vaulted_token');
  [asked, seen, open] = [[], [], []];
});
afterAll(async () => {
  await tables?.close();
  await database?.close();
  await test?.drop();
});

/** Recovery at a provider whose word is always the same. */
function depsOf(says: Outcome | ((query: LookUp) => Promise<Outcome>) | 'no look-up'): RecoveryDeps {
  const lookUp = async (query: LookUp) => {
    asked.push(query);
    return typeof says === 'function' ? says(query) : (says as Outcome);
  };
  const connection: ProviderConnection = {
    identity: 'scripted',
    capabilities: CARDS_ONLY,
    capture: undefined,
    cancel: undefined,
    refund: undefined,
    complete: undefined,
    readNotification: undefined,
    pay: () => Promise.reject(new Error('recovery never sends')),
    lookUp: says === 'no look-up' ? undefined : lookUp,
    probe: undefined,
    deadlineMs: 1_000,
    close: async () => {},
  };
  return {
    database,
    now: systemClock(),
    publicUrl: () => 'https://payments.example',
    encodeAnswer: (record) => Buffer.from(`${record.id} ${Payment_Status[record.status]}`),
    observer: { finished: () => {}, finishFailed: () => {} },
    schedule: { leaseMarginMs: 1_000, firstLookUpMs: 5_000, lookUpsBeforeClosing: 3 },
    connections: () => new Map([['scripted', connection]]),
    recovery: {
      lookedUp: (_attempt, result) => seen.push(result),
      open: (attempts) => open.push(attempts.open),
      failed: (error) => seen.push(String(error)),
    },
  };
}

async function standing(attempt: OpenAttempt): Promise<Payment> {
  const record = await getPaymentRecord(database, attempt.paymentId, ACCOUNT_ONE);
  return decodeRecord(record ?? new Uint8Array());
}

async function answerOf(attempt: OpenAttempt): Promise<string | undefined> {
  const held = await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey);
  return held?.answer && Buffer.from(held.answer).toString();
}

async function rowOf(attempt: OpenAttempt): Promise<Record<string, unknown>> {
  const [row] = await tables.query(
    `SELECT p.status, t.status AS transaction_status, t.fence, t.look_ups,
      extract(epoch FROM t.look_up_at - now())::float8 AS due_in_s
      FROM payment p JOIN transaction t ON t.payment_id = p.id WHERE p.id = $1`,
    [attempt.paymentId],
  );
  return row ?? {};
}

const makeDue = () => tables.query('UPDATE transaction SET look_up_at = now() WHERE look_up_at IS NOT NULL');

const takenBy = (attempt: OpenAttempt, fence: number): TakenAttempt => ({
  ...attempt,
  fence,
  lookUps: fence,
});

/** A record of one's own, as another process has read it. */
const copyOf = ({ record }: OpenAttempt) => fromBinary(PaymentSchema, toBinary(PaymentSchema, record));

describe('an outcome that nobody knows', () => {
  it.each([
    ['approved', APPROVED, 'SUCCEEDED', 'SUCCEEDED'],
    ['declined', DECLINED, 'DECLINED', 'DECLINED'],
    ['not sent', NOT_SENT, 'ERROR', 'ERROR'],
  ])('becomes what the provider says: %s', async (_name, outcome, status, transactionStatus) => {
    const attempt = await claimAttempt(database);
    expect(await recoverDue(depsOf(outcome))).toBe(1);
    expect(await rowOf(attempt)).toMatchObject({
      status,
      transaction_status: transactionStatus,
      due_in_s: null,
    });
    const record = await standing(attempt);
    expect(Payment_Status[record.status]).toBe(status);
    expect(record.transactionsHistory).toHaveLength(1);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} ${status}`);
    expect(await recoverDue(depsOf(outcome))).toBe(0);
  });

  it('is asked for by what was claimed', async () => {
    const attempt = await claimAttempt(database);
    await recoverDue(depsOf(APPROVED));
    expect(asked).toMatchObject([
      {
        transactionId: attempt.transactionId,
        money: { minorUnits: 5_575n, currency: 'USD' },
        of: { kind: 'card', capture: false, attempt: { transactionId: attempt.transactionId } },
        close: false,
      },
    ]);
  });

  it('stays open while the provider does not tell it, and is asked for after growing pauses', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(UNKNOWN);
    for (const pauseS of [10, 20, 40, 80]) {
      await makeDue();
      await recoverDue(deps);
      const row = await rowOf(attempt);
      expect(row).toMatchObject({ status: 'PENDING', transaction_status: 'PENDING' });
      expect(row.due_in_s).toBeGreaterThan(pauseS * 0.79);
      expect(row.due_in_s).toBeLessThan(pauseS * 1.21);
    }
    // Its key stays in progress: nothing was answered, and nothing may be made up.
    expect(await answerOf(attempt)).toBeUndefined();
    expect(seen).toEqual(['unknown', 'unknown', 'unknown', 'unknown']);
  });

  it('is never asked for more seldom than once a day and a fifth', async () => {
    const attempt = await claimAttempt(database);
    await tables.query('UPDATE transaction SET look_ups = 1000000');
    await recoverDue(depsOf(UNKNOWN));
    const { due_in_s } = await rowOf(attempt);
    expect(due_in_s).toBeGreaterThan(86_400 * 0.79);
    expect(due_in_s).toBeLessThan(86_400 * 1.21);
  });

  it('has the provider close it after three look-ups, not before', async () => {
    await claimAttempt(database);
    for (let i = 0; i < 5; i++) {
      await makeDue();
      await recoverDue(depsOf(UNKNOWN));
    }
    expect(asked.map(({ close }) => close)).toEqual([false, false, false, true, true]);
  });

  it('stays PENDING, and counts as open, when its connection is gone or offers no look-up', async () => {
    const gone = await claimAttempt(database, { connectionId: 'gone' });
    const mute = await claimAttempt(database);
    const stop = startRecovery(depsOf('no look-up'), { intervalMs: 20 });
    await expect.poll(() => open, { timeout: 10_000 }).toContain(2);
    await stop();
    expect(await rowOf(gone)).toMatchObject({ status: 'PENDING', look_ups: 1 });
    expect(await rowOf(mute)).toMatchObject({ status: 'PENDING', look_ups: 1 });
    expect(seen).toEqual(['no_look_up', 'no_look_up']);
  });

  it('does not keep others from being looked up when asking for it fails', async () => {
    const bad = await claimAttempt(database);
    const good = await claimAttempt(database);
    const failing = async (query: LookUp) => {
      if (query.transactionId === bad.transactionId) throw new Error('a connector’s bug');
      return APPROVED;
    };
    await recoverDue(depsOf(failing));
    expect(await rowOf(good)).toMatchObject({ status: 'SUCCEEDED' });
    expect(await rowOf(bad)).toMatchObject({ status: 'PENDING' });
    expect(seen).toContain('Error: a connector’s bug');
  });
});

describe('what was answered', () => {
  it('is replayed as it was, while the payment itself moves on', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(APPROVED);
    await writeFinish(deps, finishOf(deps, takenBy(attempt, 0), copyOf(attempt), UNKNOWN));
    await makeDue();
    await recoverDue(deps);
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
    const held = await findByKey(database, ACCOUNT_ONE, attempt.idempotencyKey);
    const answered = decodeRecord(held?.record ?? new Uint8Array());
    expect(answered.status).toBe(Payment_Status.PENDING);
    expect((await standing(attempt)).status).toBe(Payment_Status.SUCCEEDED);
  });
});

describe('who has lost an attempt', () => {
  it('does not write that it is unknown over what another taker is about to learn', async () => {
    const attempt = await claimAttempt(database);
    const deps = depsOf(async () => {
      // Meanwhile the one that was held up comes back, with its deadline passed.
      const late = finishOf(deps, takenBy(attempt, 0), copyOf(attempt), UNKNOWN);
      expect(await writeFinish(deps, late)).toBe(false);
      return APPROVED;
    });
    await recoverDue(deps);
    expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED', fence: 1, due_in_s: null });
    expect(await answerOf(attempt)).toBe(`${attempt.paymentId} SUCCEEDED`);
  });

  it.each([
    ['unknown', UNKNOWN],
    ['declined', DECLINED],
    ['not sent', NOT_SENT],
  ])('changes no terminal state, whatever it brings: %s', async (_name, outcome) => {
    const attempt = await claimAttempt(database, { vault: true });
    const deps = depsOf(APPROVED);
    await recoverDue(deps);
    const before = [await rowOf(attempt), await standing(attempt), await answerOf(attempt)];
    for (const fence of [0, 1, 2]) {
      const late = finishOf(deps, takenBy(attempt, fence), copyOf(attempt), outcome);
      expect(await writeFinish(deps, late)).toBe(false);
    }
    expect([await rowOf(attempt), await standing(attempt), await answerOf(attempt)]).toEqual(before);
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual([{ active: true }]);
  });
});

describe('two recoveries at once', () => {
  it('look up different attempts', async () => {
    await Promise.all(Array.from({ length: 30 }, () => claimAttempt(database)));
    const deps = depsOf(APPROVED);
    const taken = await Promise.all([recoverDue(deps), recoverDue(deps)]);
    expect(taken.reduce((sum, count) => sum + count, 0)).toBe(asked.length);
    expect(new Set(asked.map(({ transactionId }) => transactionId)).size).toBe(asked.length);
  });
});

describe('a card that waits for the outcome', () => {
  it.each([
    ['is kept when the payment is approved', APPROVED, [{ active: true }]],
    ['is dropped when it is declined', DECLINED, []],
    ['is dropped when it was never sent', NOT_SENT, []],
    ['waits on while nobody knows', UNKNOWN, [{ active: false }]],
  ])('%s', async (_name, outcome, tokens) => {
    const attempt = await claimAttempt(database, { vault: true });
    await recoverDue(depsOf(outcome));
    expect(await tables.query('SELECT active FROM vaulted_token')).toEqual(tokens);
    const { paymentMethod } = await standing(attempt);
    expect(paymentMethod?.vaultedToken).toBe(outcome.kind === 'approved' ? attempt.vaultedToken : '');
  });
});
