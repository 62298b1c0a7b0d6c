import { expect, it } from 'vitest';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { claimAttempt } from '../support/claimed-rows.ts';
import { notified } from '../support/news.ts';
import { APPROVED, UNKNOWN } from '../support/outcomes.ts';
import {
  answerOf,
  asked,
  connectionOf,
  database,
  depsOf,
  depsWith,
  makeDue,
  onOwnDatabase,
  openCount,
  rowOf,
  seen,
  tables,
} from './recovery-under-test.ts';

onOwnDatabase();

const AN_HOUR_MS = 3_600_000;

/** A connection without look-up, and the technical cancels that it received. */
function mute(afterMs: number): { readonly connection: ProviderConnection; readonly canceled: LookUp[] } {
  const canceled: LookUp[] = [];
  const send = async (query: LookUp) => canceled.push(query) > 0;
  return {
    connection: connectionOf(UNKNOWN, { lookUp: undefined, technicalCancel: { afterMs, send } }),
    canceled,
  };
}

const check = async (connection: ProviderConnection) => {
  await makeDue();
  await checkDue(depsWith({ scripted: connection }));
};

it('a payment without look-up gets the response PENDING, and is canceled at its provider when overdue', async () => {
  const attempt = await claimAttempt(database);
  const early = mute(AN_HOUR_MS);
  await check(early.connection);
  expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  expect(early.canceled).toEqual([]);

  const late = mute(0);
  await check(late.connection);
  expect(late.canceled).toMatchObject([{ transactionId: attempt.transactionId, of: { kind: 'CARD' } }]);
  // The cancel does not reveal the outcome: a notification will.
  expect(await rowOf(attempt)).toMatchObject({ status: 'PENDING', transaction_status: 'PENDING' });
  expect(seen).toEqual(['unknown', 'unknown']);
});

it('a payment that its provider named in its response, as pending, is never canceled technically', async () => {
  await claimAttempt(database);
  await tables.query("UPDATE transaction SET reference = 'PSP0000000000001'");
  const late = mute(0);
  await check(late.connection);
  expect(late.canceled).toEqual([]);
});

it('a payment that can be neither looked up nor canceled gets the response PENDING, and stays open', async () => {
  const attempt = await claimAttempt(database);
  await check(connectionOf(UNKNOWN, { lookUp: undefined }));
  expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  expect(await rowOf(attempt)).toMatchObject({ status: 'PENDING', transaction_status: 'PENDING' });
  expect(await openCount()).toBe(1);
});

it('a notification prompts a look-up of an open outcome at once, with its provider id', async () => {
  const attempt = await claimAttempt(database);
  await check(connectionOf(UNKNOWN));
  await tables.query("UPDATE payment SET response = 'PENDING'");
  const hint = { providerPaymentId: 'pi_1' };
  const news = { ...hint, transactionId: attempt.transactionId };
  expect(await notified(depsOf(UNKNOWN), 'scripted', news)).toBe('waiting');
  await tables.query('DELETE FROM notification');
  expect(await notified(depsOf(APPROVED), 'scripted', news)).toBe('applied');
  expect(asked.slice(1)).toMatchObject([
    { hint, close: false },
    { hint, close: false },
  ]);
  expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
});

it('an unanswered look-up after a notification is repeated in two seconds, even after a later notification', async () => {
  const attempt = await claimAttempt(database);
  await check(connectionOf(UNKNOWN));
  expect(await notified(depsOf(UNKNOWN), 'scripted', attempt)).toBe('waiting');
  const { due_in_s: dueInS } = await rowOf(attempt);
  expect(dueInS).toBeGreaterThan(1);
  expect(dueInS).toBeLessThanOrEqual(2);
  // Another notification does not prompt it sooner.
  expect(await notified(depsOf(APPROVED), 'scripted', attempt)).toBe('waiting');
  expect(asked).toHaveLength(2);
  await makeDue();
  await checkDue(depsOf(APPROVED));
  const settled = await tables.query('SELECT result FROM notification');
  expect(settled).toEqual([{ result: 'applied' }, { result: 'applied' }]);
});

it('notifications never close an attempt, however many come', async () => {
  const attempt = await claimAttempt(database);
  await tables.query("UPDATE payment SET response = 'PENDING'");
  for (let i = 0; i < 6; i++) {
    await notified(depsOf(UNKNOWN), 'scripted', attempt);
    await tables.query('DELETE FROM notification');
  }
  expect(asked.map(({ close }) => close)).toEqual(Array(6).fill(false));
});
