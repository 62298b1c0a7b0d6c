import { expect, it } from 'vitest';
import type { LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import { recoverDue, recoverNow } from '#src/payments/check/recover-payments.ts';
import { claimAttempt } from '../support/open-attempts.ts';
import {
  APPROVED,
  answerOf,
  asked,
  connectionOf,
  database,
  depsOf,
  depsWith,
  onOwnDatabase,
  rowOf,
  seen,
  tables,
  UNKNOWN,
} from './recovery-under-test.ts';

onOwnDatabase();

const AN_HOUR_MS = 3_600_000;

/** A connection without look-up, and the technical cancels that it was asked for. */
function mute(afterMs: number): { readonly connection: ProviderConnection; readonly canceled: LookUp[] } {
  const canceled: LookUp[] = [];
  const send = async (query: LookUp) => canceled.push(query) > 0;
  return {
    connection: connectionOf(UNKNOWN, { lookUp: undefined, technicalCancel: { afterMs, send } }),
    canceled,
  };
}

const recover = async (connection: ProviderConnection) => {
  await tables.query('UPDATE transaction SET look_up_at = now()');
  await recoverDue(depsWith({ scripted: connection }));
};

it('a payment without look-up is answered PENDING, and its provider asked to cancel it once it is overdue', async () => {
  const attempt = await claimAttempt(database);
  const early = mute(AN_HOUR_MS);
  await recover(early.connection);
  expect(await answerOf(attempt)).toBe(`${attempt.paymentId} PENDING`);
  expect(early.canceled).toEqual([]);

  const late = mute(0);
  await recover(late.connection);
  expect(late.canceled).toMatchObject([{ transactionId: attempt.transactionId, of: { kind: 'card' } }]);
  // The cancel says nothing of what became of it: a notification will.
  expect(await rowOf(attempt)).toMatchObject({ status: 'PENDING', transaction_status: 'PENDING' });
  expect(seen).toEqual(['unknown', 'unknown']);
});

it('a notification has an open outcome looked up at once, with the reference that it gave', async () => {
  const attempt = await claimAttempt(database);
  await recover(connectionOf(UNKNOWN));
  await tables.query("UPDATE payment SET answer = 'PENDING'");
  const hint = { reference: 'pi_1' };
  const options = { hint, stop: undefined };
  const deps = depsOf(APPROVED);
  expect(await recoverNow(deps, connectionOf(UNKNOWN), attempt.transactionId, options)).toBe('waiting');
  expect(await recoverNow(deps, connectionOf(APPROVED), attempt.transactionId, options)).toBe('applied');
  expect(asked.slice(1)).toMatchObject([
    { hint, close: false },
    { hint, close: false },
  ]);
  expect(await rowOf(attempt)).toMatchObject({ status: 'SUCCEEDED' });
  expect(await recoverNow(deps, connectionOf(APPROVED), attempt.transactionId, options)).toBe('waiting');
});

it('a notification never has an attempt closed, however many come', async () => {
  const attempt = await claimAttempt(database);
  await tables.query("UPDATE payment SET answer = 'PENDING'");
  for (let i = 0; i < 6; i++) {
    await recoverNow(depsOf(UNKNOWN), connectionOf(UNKNOWN), attempt.transactionId, {
      hint: {},
      stop: undefined,
    });
  }
  expect(asked.map(({ close }) => close)).toEqual(Array(6).fill(false));
});
