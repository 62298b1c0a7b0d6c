import { beforeEach, describe, expect, it } from 'vitest';
import {
  answerUnaskable,
  describeUnaskable,
  type OpenOutcomes,
  type OpenOutcomesDeps,
  type UnaskableOutcomes,
  watchOpenOutcomes,
} from '#src/payments/check/open-outcomes.ts';
import { takeDue } from '#src/store/engine/checks.ts';
import { findByKey } from '#src/store/tables/payment-keys.ts';
import { claimAttempt, type OpenAttempt } from '../support/claimed-rows.ts';
import { coreDeps } from '../support/core-deps.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { silentConnection } from '../support/silent-connection.ts';
import { RESPONSES, shownUnder } from '../support/stored-responses.ts';
import { earlier } from '../support/tables.ts';

let counted: OpenOutcomes[];
let told: UnaskableOutcomes[];

onOwnDatabase({ empties: 'payment, transaction, vaulted_token' });
beforeEach(() => {
  [counted, told] = [[], []];
});

/** A replica with the connections `scripted`, and `mute`, which has no look-up. */
const deps = (): OpenOutcomesDeps => ({
  ...coreDeps({
    ...{ database, responses: RESPONSES },
    connections: new Map([
      ['scripted', silentConnection({ lookUp: async () => UNKNOWN })],
      ['mute', silentConnection()],
    ]),
  }),
  schedule: { leaseMarginMs: 1_000, firstCheckMs: 5_000, closingMarginMs: 10_000 },
  openOutcomes: {
    counted: (outcomes) => counted.push(outcomes),
    unaskable: (outcomes) => told.push(outcomes),
    failed: (error) => {
      throw error;
    },
  },
});

async function claimUnaskable(): Promise<OpenAttempt[]> {
  return [
    await claimAttempt(database, { connectionId: 'gone', identity: 'old' }),
    await claimAttempt(database, { identity: 'another account' }),
    await claimAttempt(database, { connectionId: 'mute' }),
  ];
}

const UNASKABLE = [
  { connectionId: 'gone', identity: 'old', reason: 'no_connection', open: 1 },
  { connectionId: 'mute', identity: 'scripted', reason: 'no_look_up', open: 1 },
  { connectionId: 'scripted', identity: 'another account', reason: 'other_account', open: 1 },
];

const passTime = (seconds: number) =>
  tables.query(`UPDATE transaction SET check_at = ${earlier('check_at', `${seconds} s`)}`);

async function answerOf({ idempotencyKey }: OpenAttempt): Promise<string | undefined> {
  return shownUnder(await findByKey(database, ACCOUNT_ONE, idempotencyKey));
}

describe('the watch over open outcomes', () => {
  it('the watch counts all open outcomes, and reports those that this replica cannot look up', async () => {
    await claimUnaskable();
    await claimAttempt(database);
    const watch = watchOpenOutcomes(deps());
    expect(await watch.look()).toEqual(UNASKABLE);
    await watch.stop();
    expect(counted).toMatchObject([{ open: 4, unaskable: UNASKABLE }]);
    expect(told).toEqual(UNASKABLE);
  });

  it('the watch runs by itself, and reports each outcome that cannot be looked up only once, or on request', async () => {
    const watch = watchOpenOutcomes(deps(), { everyMs: 10 });
    await expect.poll(() => counted.length).toBeGreaterThan(2);
    expect(told).toEqual([]);
    await claimAttempt(database, { connectionId: 'gone', identity: 'old' });
    await expect.poll(() => told).toHaveLength(1);
    const before = counted.length;
    await expect.poll(() => counted.length).toBeGreaterThan(before + 2);
    expect(told).toHaveLength(1);
    await watch.look();
    expect(told).toHaveLength(2);
    await watch.stop();
  });

  it('the watch counts a running request at a provider without look-up as running', async () => {
    await claimAttempt(database, { connectionId: 'mute', leaseS: 60 });
    const watch = watchOpenOutcomes(deps());
    expect(await watch.look()).toEqual([]);
    await watch.stop();
    expect(counted).toMatchObject([{ open: 1 }]);
  });

  it('the watch reports the connection, the reason and what to do', () => {
    const [gone] = UNASKABLE as UnaskableOutcomes[];
    expect(gone && describeUnaskable(gone)).toBe(
      '1 unknown outcomes at connection gone cannot be looked up, and their payments stay PENDING: the catalogue has no such connection (old); add it back so that they can be looked up',
    );
  });
});

describe('a payment that cannot be looked up', () => {
  it('a payment that cannot be looked up gets the response PENDING after half a minute unclaimed, and stays due', async () => {
    const [gone, elsewhere, mute] = (await claimUnaskable()) as [OpenAttempt, OpenAttempt, OpenAttempt];
    const attempts = [gone, elsewhere];
    // The checker writes the responses of attempts whose connection this replica has.
    const checked = [mute, await claimAttempt(database)];
    await answerUnaskable(deps());
    for (const attempt of attempts) expect(await answerOf(attempt)).toBeUndefined();
    await passTime(31);
    await answerUnaskable(deps());
    for (const attempt of attempts) expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
    for (const attempt of checked) expect(await answerOf(attempt)).toBeUndefined();
    const rows = await tables.query(
      'SELECT DISTINCT status, check_at <= now() AS due FROM transaction ORDER BY status',
    );
    expect(rows).toEqual([{ status: 'PENDING', due: true }]);
  });

  it('a payment that one replica cannot look up is left to another that can and is doing so', async () => {
    const [gone] = await claimUnaskable();
    await passTime(31);
    const ofGone = { connectionId: 'gone', identity: 'old' };
    expect(await takeDue(database, ofGone, { limit: 1, leaseS: 60 })).toHaveLength(1);
    await answerUnaskable(deps());
    expect(gone && (await answerOf(gone))).toBeUndefined();
  });

  it('a payment that cannot be looked up gets its response from the watch', async () => {
    const [gone] = await claimUnaskable();
    await passTime(31);
    const watch = watchOpenOutcomes(deps());
    await watch.look();
    await watch.stop();
    expect(gone && (await answerOf(gone))).toBe(`${gone?.paymentId} PENDING`);
  });
});
