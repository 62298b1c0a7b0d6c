import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  ProviderDataSchema,
} from '#gen/payments/v1/payment_pb.js';
import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { ProviderConnection, SignedOutcome } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { isAlarm } from '#src/payments/model/contradiction.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { interleave } from '../support/interleave.ts';
import { checkOperations, forgetNews, notified, signed } from '../support/news.ts';
import { wantEveryEvent } from '../support/tables.ts';
import type { OperatedPayments } from './open-operated-payments.ts';
import * as requested from './operated-payments.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

let payment: Payment;
let deps: OperatedPayments['deps'];
/** The payment's connection, after the provider has ended the authorization. */
let ended: ProviderConnection;

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });
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

/** Delivers a notification that prompts a look-up. */
const news = (connection: ProviderConnection = ended, over: Partial<typeof deps> = {}) =>
  notified({ ...deps, ...over, connections: () => new Map([['ledger', connection]]) }, 'ledger', {
    transactionId: requested.idOf(payment),
  });

/** Delivers the provider's signed report that the authorization has expired. */
async function signEnd(over: Partial<SignedOutcome> = {}, on = deps) {
  await forgetNews();
  const end = { outcome: EXPIRED, minorUnits: 10_000n, currency: 'USD', ...over };
  return signed(on, 'ledger', ended, requested.idOf(payment), end);
}

/** Collects the alarms for operators. */
function observed() {
  const results: unknown[] = [];
  const learned = (_about: unknown, result: Outcome | string) => {
    if (typeof result === 'string' ? result !== 'lapsed' : isAlarm(result)) results.push(result);
  };
  return { results, checked: { ...payments.deps.checked, learned } };
}

/** Runs all statements except this one, for which the database is down. */
const refusing =
  (name: string): Database['query'] =>
  async (statement, values) => {
    if (statement.name === name) throw new DatabaseUnavailableError(new Error('refused'));
    return payments.database.query(statement, values);
  };

describe('authorizations that the provider ended early', () => {
  it('an authorization that ended early is EXPIRED once a notification prompts a look-up', async () => {
    expect(await news(payments.provider.connection)).toBe('unchanged');
    expect(await state()).toBe('SUCCEEDED/APPROVED');
    expect(await news()).toBe('applied');
    expect(await state()).toBe('EXPIRED/EXPIRED');
    await expect(cancel()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it.each([
    ['declined', 'capture', 'declines it', capture],
    ['declined', 'cancel', 'declines it', cancel],
    ['refused', 'capture', 'refuses it', capture],
    ['refused', 'cancel', 'refuses it', cancel],
  ] as const)(
    'an authorization that ended early is EXPIRED soon after the provider %s a %s of it',
    async (_how, _verb, behaviour, operate) => {
      payments.provider.next.push(behaviour);
      await operate();
      expect(await state()).toBe('SUCCEEDED/APPROVED');
      await checkDue(deps);
      expect(await state()).toBe('EXPIRED/EXPIRED');
    },
  );

  it('an authorization that ended early is EXPIRED soon after a capture was declined during a look-up', async () => {
    const lookUp = async (): Promise<Outcome> => {
      payments.provider.next.push('declines it');
      await capture();
      return APPROVED;
    };
    expect(await news({ ...ended, lookUp })).toBe('unchanged');
    await checkDue(deps);
    expect(await state()).toBe('EXPIRED/EXPIRED');
  });

  it.each(['does it', 'does it, unanswered'] as const)(
    'a partial capture does not make the look-up of its authorization due sooner (the provider %s)',
    async (behaviour) => {
      payments.provider.next.push(behaviour);
      await capture('30');
      await checkDue(deps);
      const due = "SELECT 1 FROM transaction WHERE id = $1 AND check_at > now() + interval '23 hours'";
      expect(await payments.tables.query(due, [requested.idOf(payment)])).toHaveLength(1);
    },
  );

  it('an authorization is not looked up sooner because of a capture that did not reach the provider', async () => {
    const { connection } = payments.provider;
    const unreached = async (): Promise<Outcome> => ({
      kind: 'not_sent',
      because: 'unreachable',
      detail: 'down',
    });
    deps = { ...deps, connections: () => new Map([['ledger', { ...connection, capture: unreached }]]) };
    await capture('30');
    const due = "SELECT 1 FROM transaction WHERE id = $1 AND check_at > now() + interval '23 hours'";
    expect(await payments.tables.query(due, [requested.idOf(payment)])).toHaveLength(1);
  });

  it.each<[string, Outcome]>([
    [
      'declined',
      { kind: 'declined', iso8583Code: '05', advice: 'NONE', providerData: create(ProviderDataSchema) },
    ],
    ['never made', { kind: 'not_sent', because: 'turned_away', detail: 'closed' }],
  ])(
    'an authorization that ended early is EXPIRED with an alarm if it is reported as %s',
    async (_what, told) => {
      const { results, checked } = observed();
      expect(await news({ ...ended, lookUp: async () => told }, { checked })).toBe('applied');
      expect([await state(), results]).toEqual(['EXPIRED/EXPIRED', ['contradiction']]);
      await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
    },
  );

  it('an unanswered look-up is repeated soon after a notification, otherwise within the hour', async () => {
    const silent: ProviderConnection = {
      ...ended,
      lookUp: async () => ({ kind: 'unknown', detail: 'silence', providerData: undefined }),
    };
    const within = (from: string, to: string) =>
      payments.tables.query(
        `SELECT 1 FROM transaction WHERE check_at BETWEEN now() + interval '${from}' AND now() + interval '${to}'`,
      );
    expect(await news(silent)).toBe('waiting');
    expect(await within('0 s', '3 s')).toHaveLength(1);
    await forgetNews();
    await payments.makeDue();
    await checkDue({ ...deps, connections: () => new Map([['ledger', silent]]) });
    expect(await within('50 min', '1 hour')).toHaveLength(1);
  });

  it.each<[string, Outcome]>([
    ['an approval', APPROVED],
    ['an alarm', alarmingOutcome('its capture failed')],
  ])(
    'an authorization whose look-ups were answered is looked up at the end of its term: %s',
    async (_what, told) => {
      const answering: ProviderConnection = { ...ended, lookUp: async () => told };
      const due = "SELECT 1 FROM transaction WHERE check_at > now() + interval '6 days 23 hours'";
      expect(await news(answering)).toBe('unchanged');
      expect(await payments.tables.query(due)).toHaveLength(1);
      await payments.makeDue();
      await checkDue({ ...deps, connections: () => new Map([['ledger', answering]]) });
      expect(await payments.tables.query(due)).toHaveLength(1);
    },
  );

  it('an authorization that ended early keeps its captured amount, and its rest cannot be captured', async () => {
    await capture('30');
    await news();
    expect(await state()).toBe('SUCCEEDED/PARTIALLY_CAPTURED');
    await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
  });

  it('an authorization is EXPIRED without an alarm if its provider signed that it has expired', async () => {
    const { results, checked } = observed();
    const apply = (minorUnits = 10_000n) => signEnd({ minorUnits }, { ...deps, checked });
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
    // The end of an authorization that is final here changes nothing, whatever the reported amount.
    expect([await apply(7_000n), results]).toEqual(['unchanged', []]);
    payment = await payments.pay({ capture: false });
    await capture();
    expect([await apply(), await state(), results]).toEqual(['unchanged', 'SUCCEEDED/CAPTURED', []]);
  });

  it('a signed report that another charge has ended raises an alarm and does not end the authorization', async () => {
    const { results, checked } = observed();
    await payments.tables.query("UPDATE transaction SET provider_payment_id = 'ours'");
    const apply = (paidReference: string) => signEnd({ paidReference }, { ...deps, checked });
    expect([await apply('theirs'), await state(), results]).toEqual([
      'unchanged',
      'SUCCEEDED/APPROVED',
      ['mismatch'],
    ]);
    expect([await apply('ours'), await state()]).toEqual(['applied', 'EXPIRED/EXPIRED']);
  });

  it('a signed report that an authorization has ended waits for a cancel that began just before the write', async () => {
    payments.provider.next.push('delays it');
    // The second read is part of the write, which comes after the cancel has begun.
    const before = { read_payment_state: (nth: number) => nth === 2 && cancel() };
    const racing = { ...deps, database: interleave(payments.database, { before }) };
    expect(await signEnd({}, racing)).toBe('waiting');
    payments.provider.settleDelayed();
    await checkOperations(deps);
    expect(await signEnd()).toBe('unchanged');
    expect(await state()).toBe('CANCELED/CANCELED');
  });

  it('the end of a partly captured authorization emits no event, since the record stays unchanged', async () => {
    await wantEveryEvent(payments.tables);
    await capture('30');
    const changes = () =>
      payments.tables.query('SELECT record, event_sequence, (SELECT count(*)::int FROM event) FROM payment');
    const before = await changes();
    expect(before).toMatchObject([{ event_sequence: 2, count: 1 }]);
    expect(await news()).toBe('applied');
    expect(await changes()).toEqual(before);
  });

  it('the end of an authorization is not retried while the database is down, so that it delays no shutdown', async () => {
    const failures: unknown[] = [];
    const finishFailed = (_id: string, error: unknown) => {
      failures.push(error);
      if (failures.length > 1) throw new Error('it was tried again');
    };
    const down = {
      ...deps,
      database: { ...payments.database, query: refusing('write_change') },
      observer: { ...deps.observer, finishFailed },
    };
    await payments.makeDue();
    await expect(checkDue(down, AbortSignal.abort())).rejects.toBeInstanceOf(DatabaseUnavailableError);
    expect(failures).toHaveLength(1);
  });

  it('an authorization reported as ended is left to a cancel that began meanwhile and may have ended it', async () => {
    payments.provider.next.push('delays it');
    const racing: ProviderConnection = {
      ...ended,
      async lookUp() {
        await cancel();
        return EXPIRED;
      },
    };
    expect(await news(racing)).toBe('waiting');
    payments.provider.settleDelayed();
    await checkOperations(deps);
    expect(await state()).toBe('CANCELED/CANCELED');
  });
});
