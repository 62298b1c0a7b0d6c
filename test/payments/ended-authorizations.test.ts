import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  ProviderDataSchema,
} from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { alarmingOutcome } from '#src/connectors/provider-answer.ts';
import { applySigned } from '#src/payments/check/apply-signed.ts';
import { followUpNow } from '#src/payments/check/follow-up.ts';
import { recoverDue } from '#src/payments/check/recover-payments.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { interleave } from '../support/interleave.ts';
import { wantEveryEvent } from '../support/tables.ts';
import { type OperatedPayments, onOperatedPayments, payments } from './operated-payments.ts';
import * as requested from './requested-operations.ts';

let payment: Payment;
let deps: OperatedPayments['deps'];
/** The payment's connection, once the provider has ended the authorization. */
let ended: ProviderConnection;

onOperatedPayments({ empties: 'payment, transaction, webhook, event' });
beforeEach(async () => {
  payment = await payments.pay({ capture: false });
  const { connection } = payments.provider;
  ended = {
    ...connection,
    lookUp: async (query) =>
      query.transactionId === requested.idOf(payment)
        ? EXPIRED
        : ((await connection.lookUp?.(query)) ?? EXPIRED),
  };
  deps = { ...payments.deps, connections: () => new Map([['ledger', ended]]) };
});

const EXPIRED: Outcome = { kind: 'expired', providerData: create(ProviderDataSchema) };
const APPROVED: Outcome = {
  kind: 'approved',
  providerData: create(ProviderDataSchema),
  ...{ authorizationCode: '', retrievalReferenceNumber: '' },
};

async function state(): Promise<string> {
  const { status, subStatus } = await getPayment(payments.deps, payment.id, payments.caller());
  return `${Payment_Status[status]}/${Payment_SubStatus_Value[subStatus]}`;
}

const cancel = () => requested.cancel(payment, { deps });
const capture = (amount?: string) =>
  requested.capture(payment, { deps, ...(amount !== undefined && { amount }) });

/** Runs statements, but for the one of this name: its database is down. */
const refusing =
  (name: string): Database['query'] =>
  async (statement, values) => {
    if (statement.name === name) throw new DatabaseUnavailableError(new Error('refused'));
    return payments.database.query(statement, values);
  };

describe('an authorization that its provider ended before our term', () => {
  it('is EXPIRED once a notification has it looked up', async () => {
    const { connection } = payments.provider;
    expect(await followUpNow(deps, connection, requested.idOf(payment), { hint: {} })).toBe('unchanged');
    expect(await state()).toBe('SUCCEEDED/APPROVED');
    expect(await followUpNow(deps, ended, requested.idOf(payment), { hint: {} })).toBe('applied');
    expect(await state()).toBe('EXPIRED/EXPIRED');
    await expect(cancel()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it.each([
    ['declined', 'capture', 'declines it', capture],
    ['declined', 'cancel', 'declines it', cancel],
    ['refused', 'capture', 'refuses it', capture],
    ['refused', 'cancel', 'refuses it', cancel],
  ] as const)('is EXPIRED soon after the provider %s a %s of it', async (_how, _verb, behaviour, operate) => {
    payments.provider.next.push(behaviour);
    await operate();
    expect(await state()).toBe('SUCCEEDED/APPROVED');
    await recoverDue(deps);
    expect(await state()).toBe('EXPIRED/EXPIRED');
  });

  it('is EXPIRED soon after a capture was declined while an earlier look-up was under way', async () => {
    const lookUp = async (): Promise<Outcome> => {
      payments.provider.next.push('declines it');
      await capture();
      return APPROVED;
    };
    expect(await followUpNow(deps, { ...ended, lookUp }, requested.idOf(payment), { hint: {} })).toBe(
      'unchanged',
    );
    await recoverDue(deps);
    expect(await state()).toBe('EXPIRED/EXPIRED');
  });

  it.each(['does it', 'does it, unanswered'] as const)(
    'is looked up no sooner because of a capture of a part, where the provider %s',
    async (behaviour) => {
      payments.provider.next.push(behaviour);
      await capture('30');
      await recoverDue(deps);
      const due = "SELECT 1 FROM transaction WHERE id = $1 AND follow_up_at > now() + interval '23 hours'";
      expect(await payments.tables.query(due, [requested.idOf(payment)])).toHaveLength(1);
    },
  );

  it('is looked up no sooner because of a capture that did not reach the provider', async () => {
    const { connection } = payments.provider;
    const unreached = async (): Promise<Outcome> => ({
      kind: 'not_sent',
      because: 'unreachable',
      detail: 'down',
    });
    deps = { ...deps, connections: () => new Map([['ledger', { ...connection, capture: unreached }]]) };
    await capture('30');
    const due = "SELECT 1 FROM transaction WHERE id = $1 AND follow_up_at > now() + interval '23 hours'";
    expect(await payments.tables.query(due, [requested.idOf(payment)])).toHaveLength(1);
  });

  it.each<[string, Outcome]>([
    ['declined', { kind: 'declined', iso8583Code: '05', providerData: create(ProviderDataSchema) }],
    ['never made', { kind: 'not_sent', because: 'turned_away', detail: 'closed' }],
  ])('is EXPIRED, and an alarm, if it is said to be %s: nothing is held any more', async (_what, told) => {
    const results: unknown[] = [];
    const recovery = { followedUp: (_followed: unknown, result: unknown) => results.push(result) };
    const other: ProviderConnection = { ...ended, lookUp: async () => told };
    expect(await followUpNow({ ...deps, recovery }, other, requested.idOf(payment), { hint: {} })).toBe(
      'applied',
    );
    expect([await state(), results]).toEqual(['EXPIRED/EXPIRED', ['contradiction']]);
    await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('is asked about again within the hour if the provider did not answer', async () => {
    const silent: ProviderConnection = {
      ...ended,
      lookUp: async () => ({ kind: 'unknown', detail: 'silence', providerData: undefined }),
    };
    expect(await followUpNow(deps, silent, requested.idOf(payment), { hint: {} })).toBe('unchanged');
    const due = "SELECT 1 FROM transaction WHERE follow_up_at <= now() + interval '1 hour'";
    expect(await payments.tables.query(due)).toHaveLength(1);
  });

  it.each<[string, Outcome]>([
    ['an approval', APPROVED],
    ['an alarm', alarmingOutcome('its capture failed')],
  ])(
    'is asked about when it was to be, and then only when our term ends, if the provider answered: %s',
    async (_what, told) => {
      const answering: ProviderConnection = { ...ended, lookUp: async () => told };
      const dueAt = () => payments.tables.query('SELECT follow_up_at::text FROM transaction');
      const before = await dueAt();
      expect(await followUpNow(deps, answering, requested.idOf(payment), { hint: {} })).toBe('unchanged');
      expect(await dueAt()).toEqual(before);
      await payments.makeDue();
      await recoverDue({ ...deps, connections: () => new Map([['ledger', answering]]) });
      const due = "SELECT 1 FROM transaction WHERE follow_up_at > now() + interval '6 days 23 hours'";
      expect(await payments.tables.query(due)).toHaveLength(1);
    },
  );

  it('keeps what was captured of it, and offers no rest', async () => {
    await capture('30');
    await followUpNow(deps, ended, requested.idOf(payment), { hint: {} });
    expect(await state()).toBe('SUCCEEDED/PARTIALLY_CAPTURED');
    await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('is EXPIRED, and no alarm, if its provider has signed that it has expired', async () => {
    const results: unknown[] = [];
    const recovery = { followedUp: (_followed: unknown, result: unknown) => results.push(result) };
    const apply = (minorUnits = 10_000n) =>
      applySigned({ ...deps, recovery }, { ...ended, lookUp: undefined }, requested.idOf(payment), {
        ...{ outcome: EXPIRED, minorUnits, currency: 'USD' },
      });
    payments.provider.next.push('delays it');
    await cancel();
    expect(await apply()).toBe('waiting');
    payment = await payments.pay({ capture: false });
    expect([await apply(), await state()]).toEqual(['applied', 'EXPIRED/EXPIRED']);
    expect([await apply(), results]).toEqual(['unchanged', []]);
    payment = await payments.pay({ capture: false });
    await capture('30');
    expect([await apply(), await state()]).toEqual(['applied', 'SUCCEEDED/PARTIALLY_CAPTURED']);
    await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    // Of one that is over here, an end says nothing, whatever amount it tells.
    expect([await apply(7_000n), results]).toEqual(['unchanged', []]);
    payment = await payments.pay({ capture: false });
    await capture();
    expect([await apply(), await state(), results]).toEqual(['unchanged', 'SUCCEEDED/CAPTURED', []]);
  });

  it('does not end by the signed end of another charge under our reference: that is an alarm', async () => {
    const results: unknown[] = [];
    const recovery = { followedUp: (_followed: unknown, result: unknown) => results.push(result) };
    await payments.tables.query("UPDATE transaction SET reference = 'ours'");
    const apply = (paidReference: string) =>
      applySigned({ ...deps, recovery }, { ...ended, lookUp: undefined }, requested.idOf(payment), {
        ...{ outcome: EXPIRED, minorUnits: 10_000n, currency: 'USD', paidReference },
      });
    expect([await apply('theirs'), await state(), results]).toEqual([
      'unchanged',
      'SUCCEEDED/APPROVED',
      ['mismatch'],
    ]);
    expect([await apply('ours'), await state()]).toEqual(['applied', 'EXPIRED/EXPIRED']);
  });

  it('keeps its signed end waiting for a cancel that has begun when the end is to be written', async () => {
    payments.provider.next.push('delays it');
    // The second read is that of the write, which comes after the cancel has begun.
    const before = { read_payment_for_operation: (nth: number) => nth === 2 && cancel() };
    const racing = { ...deps, database: interleave(payments.database, { before }) };
    const signed = { outcome: EXPIRED, minorUnits: 10_000n, currency: 'USD' };
    const connection = { ...ended, lookUp: undefined };
    expect(await applySigned(racing, connection, requested.idOf(payment), signed)).toBe('waiting');
    payments.provider.settleDelayed();
    await payments.makeDue();
    await recoverDue(deps);
    expect(await applySigned(deps, connection, requested.idOf(payment), signed)).toBe('unchanged');
    expect(await state()).toBe('CANCELED/CANCELED');
  });

  it('tells nothing to webhooks if a part was captured, since the record stays as it was', async () => {
    await wantEveryEvent(payments.tables);
    await capture('30');
    const changes = () =>
      payments.tables.query('SELECT record, event_sequence, (SELECT count(*)::int FROM event) FROM payment');
    const before = await changes();
    expect(before).toMatchObject([{ event_sequence: 2, count: 1 }]);
    expect(await followUpNow(deps, ended, requested.idOf(payment), { hint: {} })).toBe('applied');
    expect(await changes()).toEqual(before);
  });

  it('does not hold up a stop: a database that is down is not asked to write it again', async () => {
    const failures: unknown[] = [];
    const finishFailed = (_id: string, error: unknown) => {
      failures.push(error);
      if (failures.length > 1) throw new Error('it was tried again');
    };
    const down = {
      ...deps,
      database: { ...payments.database, query: refusing('finish_operation') },
      observer: { ...deps.observer, finishFailed },
    };
    const followed = followUpNow(down, ended, requested.idOf(payment), { stop: AbortSignal.abort() });
    await expect(followed).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(failures).toHaveLength(1);
  });

  it('is left to a cancel that has begun meanwhile, which may be what ended it', async () => {
    payments.provider.next.push('delays it');
    const racing: ProviderConnection = {
      ...ended,
      async lookUp() {
        await cancel();
        return EXPIRED;
      },
    };
    expect(await followUpNow(deps, racing, requested.idOf(payment), { hint: {} })).toBe('unchanged');
    payments.provider.settleDelayed();
    await payments.makeDue();
    await recoverDue(deps);
    expect(await state()).toBe('CANCELED/CANCELED');
  });
});
