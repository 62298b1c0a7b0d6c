import { expect, it } from 'vitest';
import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import type { Database } from '#src/store/engine/database.ts';
import { claimAttempt } from '../support/claimed-rows.ts';
import { notified } from '../support/news.ts';
import { APPROVED, providerData, UNKNOWN } from '../support/outcomes.ts';
import { clock, onMovedClock } from '../support/process-clock.ts';
import {
  asked,
  connectionOf,
  database,
  depsOf,
  depsWith,
  makeDue,
  onOwnDatabase,
  rowOf,
  seen,
  tables,
} from './recovery-under-test.ts';

onOwnDatabase();
onMovedClock();

const DEADLINE_MS = 1_000;
const LEASE_MARGIN_MS = 1_000;

const UNSETTLED = 'SELECT count(*)::integer AS open FROM notification WHERE settled_at IS NULL';

it('a check makes no call that could be in progress when its lease ends, and keeps the news that it left', async () => {
  const attempt = await claimAttempt(database);
  await checkDue(depsOf(UNKNOWN));
  for (const providerPaymentId of ['pi_1', 'pi_2', 'pi_3']) {
    await notified(depsWith({}), 'scripted', { transactionId: attempt.transactionId, providerPaymentId });
  }
  asked.length = 0;
  await makeDue();
  const begunAtMs = performance.now();
  const endedAfterMs: number[] = [];
  // Every call takes until its deadline, and every look-up needs two.
  const slow = (outcome: Outcome) => async (): Promise<Outcome> => {
    clock.aheadMs += DEADLINE_MS;
    endedAfterMs.push(performance.now() - begunAtMs);
    return outcome;
  };
  const over = { deadlineMs: DEADLINE_MS, complete: slow(UNKNOWN) };
  const deps = depsWith({ scripted: connectionOf(slow({ kind: 'to_complete', providerData }), over) });
  await checkDue({ ...deps, schedule: { ...deps.schedule, leaseMarginMs: LEASE_MARGIN_MS } });
  const leaseMs = 4 * DEADLINE_MS + LEASE_MARGIN_MS;
  expect(endedAfterMs).toHaveLength(4);
  expect(Math.max(...endedAfterMs)).toBeLessThan(leaseMs);
  expect(await tables.query(UNSETTLED)).toEqual([{ open: 3 }]);
});

it('a check that learns ever more looks up again only while its lease has time for a look-up and a completion', async () => {
  const attempt = await claimAttempt(database);
  let lookUps = 0;
  const slow = async (): Promise<Outcome> => {
    clock.aheadMs += DEADLINE_MS;
    lookUps += 1;
    return { ...APPROVED, totals: { captured: 100n * BigInt(lookUps), refunded: 0n } } as Outcome;
  };
  const capabilities = { ...CARDS_ONLY, authorization: true, captures: 10 };
  const deps = depsWith({ scripted: connectionOf(slow, { deadlineMs: DEADLINE_MS, capabilities }) });
  await checkDue({ ...deps, schedule: { ...deps.schedule, leaseMarginMs: LEASE_MARGIN_MS } });
  const captures = await tables.query("SELECT 1 FROM transaction WHERE type = 'CAPTURE'");
  expect([lookUps, captures.length]).toEqual([3, 2]);
  const isDue = 'SELECT check_at > now() AS later FROM transaction WHERE id = $1';
  expect(await tables.query(isDue, [attempt.transactionId])).toEqual([{ later: true }]);
});

it('a check whose process was delayed beyond its lease makes no call, and leaves the transaction to others', async () => {
  const attempt = await claimAttempt(database);
  const query = async (...[statement, values]: Parameters<Database['query']>) => {
    const result = await database.query(statement, values);
    if (statement.name === 'take_due_transactions') clock.aheadMs += 120_000;
    return result;
  };
  const deps = { ...depsOf(APPROVED), database: { ...database, query } as Database };
  expect(await checkDue(deps)).toBe(1);
  expect(asked).toEqual([]);
  await makeDue();
  await checkDue(depsOf(APPROVED));
  expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
});

it('a failure at one connection does not end the search at the others', async () => {
  const attempt = await claimAttempt(database);
  const query = (...[statement, values]: Parameters<Database['query']>) =>
    statement.name === 'find_due_transactions' && values?.[0] === 'broken'
      ? Promise.reject(new Error('broken'))
      : database.query(statement, values);
  const connections = { broken: connectionOf(UNKNOWN), scripted: connectionOf(APPROVED) };
  const deps = { ...depsWith(connections), database: { ...database, query } as Database };
  expect(await checkDue(deps)).toBe(1);
  expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
  expect(seen).toEqual(['Error: broken', 'approved']);
});
