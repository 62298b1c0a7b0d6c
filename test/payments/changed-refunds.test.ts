import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { notified } from '../support/news.ts';
import { wantEveryEvent } from '../support/tables.ts';
import { alarms, idOf, onOperatedPayments, others, payments, refund } from './operated-payments.ts';

/* A provider with look-up lists a refund as done, then as failed, then as done again. */

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

const CORRECTS = { DONE: ['FAILED', ''], FAILED: ['DONE', ''] } as const;
type Listed = keyof typeof CORRECTS;

function outcomeOf(status: Listed, corrects: readonly string[] = CORRECTS[status]): Outcome {
  const told = {
    providerData: create(ProviderDataSchema, { status }),
    reference: 'r-1',
    providerPaymentId: 'r-1',
    corrects,
  };
  return status === 'DONE'
    ? { kind: 'approved', ...told, authorizationCode: '', retrievalReferenceNumber: '' }
    : { kind: 'declined', ...told, iso8583Code: '05', advice: 'NONE' };
}

/** The provider, which now lists the refund with this status. */
function listing(status: Listed, corrects?: readonly string[]): ProviderConnection {
  const { connection } = payments.provider;
  const movement = { type: 'REFUND', providerPaymentId: 'r-1', minorUnits: 10_000n } as const;
  const isDone = status === 'DONE';
  const refunded = isDone ? 10_000n : 0n;
  const listed = { movements: isDone ? [movement] : [], failedRefunds: isDone ? [] : ['r-1'] };
  const lookUp = async (query: LookUp): Promise<Outcome> => {
    if (query.of.kind === 'refund') return outcomeOf(status, corrects);
    const outcome = (await connection.lookUp?.(query)) as Outcome;
    return outcome.kind === 'approved'
      ? { ...outcome, totals: { captured: 10_000n, refunded, ...listed } }
      : outcome;
  };
  return { ...connection, lookUp };
}

const at = (connection: ProviderConnection) => ({
  ...payments.deps,
  connections: () => new Map([['ledger', connection]]),
});

/** A refunded purchase, and the id of its refund. */
async function refunded(): Promise<{ payment: Payment; refundId: string }> {
  const payment = await payments.pay();
  const refundId = idOf((await refund(payment)).record);
  await payments.tables.query(
    "UPDATE transaction SET reference = 'r-1', provider_payment_id = 'r-1' WHERE id = $1",
    [refundId],
  );
  return { payment, refundId };
}

it('a refund that failed after it was done is DECLINED, and SUCCEEDED once it is done again, each with its event', async () => {
  await wantEveryEvent(payments.tables);
  const { payment, refundId } = await refunded();
  const states = [];
  for (const status of ['FAILED', 'FAILED', 'DONE', 'FAILED'] as const) {
    await notified(at(listing(status)), 'ledger', { transactionId: refundId });
    states.push(await payments.stateOf(payment));
  }
  const failed = 'SUCCEEDED/APPROVED';
  expect([states, alarms]).toEqual([[failed, failed, 'REFUNDED/REFUNDED', failed], []]);
  const events = await payments.tables.query("SELECT 1 FROM event WHERE type = 'payment.refund'");
  expect(events).toHaveLength(4);
});

it.each(['FAILED', 'DONE'] as const)(
  'a notification that names only the payment makes the check look at a refund that is listed as %s',
  async (status) => {
    const { payment, refundId } = await refunded();
    if (status === 'DONE') await notified(at(listing('FAILED')), 'ledger', { transactionId: refundId });
    const connection = at(listing(status));
    expect(await notified(connection, 'ledger', { transactionId: idOf(payment) })).toBe('waiting');
    // First the refund is looked up, then its payment again.
    for (let i = 0; i < 2; i++) {
      await payments.tables.query('UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL');
      await checkDue(connection);
    }
    const result = status === 'DONE' ? 'SUCCEEDED' : 'DECLINED';
    expect([await others(payment), alarms]).toEqual([[`REFUND ${result} 10000`], []]);
  },
);

it('a refund that is done again after the merchant refunded again raises an alarm, and stays DECLINED', async () => {
  const { payment, refundId } = await refunded();
  await notified(at(listing('FAILED')), 'ledger', { transactionId: refundId });
  payments.provider.elsewhere(idOf(payment), { refunded: -10_000n });
  await refund(payment);
  await notified(at(listing('DONE')), 'ledger', { transactionId: refundId });
  expect([await others(payment), alarms]).toEqual([
    ['REFUND DECLINED 10000', 'REFUND SUCCEEDED 10000'],
    ['contradiction'],
  ]);
});

it('an opposite that the table of the provider does not list raises an alarm, and changes nothing', async () => {
  const { payment, refundId } = await refunded();
  await notified(at(listing('FAILED', [])), 'ledger', { transactionId: refundId });
  expect([await payments.stateOf(payment), alarms]).toEqual(['REFUNDED/REFUNDED', ['contradiction']]);
});

it('a check that was overtaken by news about its refund does not write an older state', async () => {
  const { payment, refundId } = await refunded();
  const older = listing('FAILED');
  const lookUp = async (query: LookUp) => {
    const outcome = await older.lookUp?.(query);
    await payments.tables.query('UPDATE transaction SET fence = fence + 1 WHERE id = $1', [refundId]);
    return outcome as Outcome;
  };
  await notified(at({ ...older, lookUp }), 'ledger', { transactionId: refundId });
  expect(await payments.stateOf(payment)).toBe('REFUNDED/REFUNDED');
});

it('a refund that was never answered with a reference is not looked up again once it is final', async () => {
  const { refundId } = await refunded();
  await payments.tables.query('UPDATE transaction SET reference = NULL WHERE id = $1', [refundId]);
  let lookUps = 0;
  const lookUp = async () => {
    lookUps++;
    return outcomeOf('FAILED');
  };
  await notified(at({ ...payments.provider.connection, lookUp }), 'ledger', { transactionId: refundId });
  expect(lookUps).toBe(0);
});
