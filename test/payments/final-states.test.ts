import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { isAlarm } from '#src/payments/model/contradiction.ts';
import { forgetNews, notified, payerDid, signed } from '../support/news.ts';
import { wantEveryEvent } from '../support/tables.ts';
import type { OperatedPayments } from './open-operated-payments.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const DAY_MS = 86_400_000;

onOperatedPayments({ empties: 'payment, transaction, notification' });

const statusOf = async (id: string) =>
  (await payments.tables.query('SELECT status FROM transaction WHERE id = $1', [id]))[0]?.status;

const providerData = create(ProviderDataSchema);
const DECLINED = { kind: 'declined', iso8583Code: '05', advice: 'NONE', providerData } as const;
const APPROVED = {
  kind: 'approved',
  providerData,
  authorizationCode: '',
  retrievalReferenceNumber: '',
} as const;
const ended = {
  EXPIRED: async () => {
    payments.setAhead(DAY_MS + 120_000);
    await payments.makeDue();
    await checkDue(payments.deps);
  },
  DECLINED: (id: string) => newsOf(payments.deps, telling(DECLINED), id),
  SUCCEEDED: (id: string) => newsOf(payments.deps, telling(APPROVED), id),
};
/** Delivers a notification that prompts a look-up. */
const newsOf = (deps: OperatedPayments['deps'], connection: ProviderConnection, transactionId: string) =>
  notified(at(deps, connection), 'ledger', { transactionId });
const at = (deps: OperatedPayments['deps'], connection: ProviderConnection): typeof deps => ({
  ...deps,
  connections: () => new Map([['ledger', connection]]),
});
const telling = (outcome: Outcome): ProviderConnection => ({
  ...payments.provider.connection,
  lookUp: async () => outcome,
});
/** Dependencies that collect the alarms for operators. */
function observed() {
  const results: unknown[] = [];
  const learned = (_about: unknown, result: Outcome | string) => {
    if (typeof result === 'string' ? result !== 'lapsed' : isAlarm(result)) results.push(result);
  };
  return { deps: { ...payments.deps, checked: { ...payments.deps.checked, learned } }, results };
}

describe('a payment in a final state', () => {
  it.each([
    ['EXPIRED', 'look-up'],
    ['EXPIRED', 'none'],
    ['DECLINED', 'look-up'],
    ['DECLINED', 'none'],
  ] as const)(
    'a final payment is not completed by us if its payer agrees too late (%s, %s)',
    async (end, lookUp) => {
      const payment = await payments.pay({ wallet: true });
      const id = payment.transactions?.id ?? '';
      await ended[end](id);
      expect(await statusOf(id)).toBe(end);
      let completed = 0;
      const connection: ProviderConnection = {
        ...payments.provider.connection,
        lookUp: lookUp === 'look-up' ? async () => ({ kind: 'to_complete', providerData }) : undefined,
        async complete() {
          completed += 1;
          return { kind: 'unknown', detail: 'silence', providerData: undefined };
        },
      };
      const returned = await payerDid(at(payments.deps, connection), 'ledger', id, { query: 'agreed=yes' });
      expect(returned).toBe('unchanged');
      expect([completed, await statusOf(id)]).toEqual([0, end]);
    },
  );

  it.each([
    ['DECLINED', APPROVED],
    ['SUCCEEDED', DECLINED],
  ] as const)(
    'a final payment, %s, is not changed by the opposite report, which raises an alarm',
    async (end, told) => {
      const payment = await payments.pay({ wallet: true });
      const id = payment.transactions?.id ?? '';
      await ended[end](id);
      expect(await statusOf(id)).toBe(end);
      const { deps, results } = observed();
      expect(await newsOf(deps, telling(told), id)).toBe('unchanged');
      const report = { outcome: told, minorUnits: 10_000n, currency: 'USD' };
      expect(await signed(deps, 'ledger', payments.provider.connection, id, report)).toBe('unchanged');
      expect([results, await statusOf(id)]).toEqual([['contradiction', 'contradiction'], end]);
    },
  );

  it.each([
    ['the declined try', 'try-1'],
    ['another try', 'try-2'],
  ])(
    'a declined payment is SUCCEEDED, late and with one event, if a look-up finds that %s was paid',
    async (_what, paidId) => {
      await wantEveryEvent(payments.tables);
      const payment = await payments.pay({ wallet: true });
      const id = payment.transactions?.id ?? '';
      const rejected = create(ProviderDataSchema, { status: 'rejected' });
      const declined = { ...DECLINED, providerData: rejected, providerPaymentId: 'try-1' };
      await newsOf(payments.deps, telling(declined), id);
      expect(await statusOf(id)).toBe('DECLINED');
      const late: string[] = [];
      const { deps, results } = observed();
      const observer = {
        ...deps.observer,
        moneyAlarmed: (_: unknown, paid: Payment) => void late.push(paid.id),
      };
      const paid: Outcome = {
        ...{ ...APPROVED, providerPaymentId: paidId, corrects: ['rejected'], isAnyTry: true },
        providerData: create(ProviderDataSchema, { status: 'approved' }),
      };
      const found = { ...deps, observer };
      expect(await newsOf(found, telling(paid), id)).toBe('applied');
      await forgetNews();
      expect(await newsOf(found, telling(paid), id)).toBe('unchanged');
      expect([await statusOf(id), late, results]).toEqual(['SUCCEEDED', [payment.id], []]);
      const events = 'SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence';
      expect((await payments.tables.query(events, [payment.id])).length).toBe(3);
    },
  );

  it('a late report of an undone charge raises no alarm if its undoing was reported before', async () => {
    const outcomeOf = (told: Outcome, status: string, reference: string) => ({
      outcome: {
        ...{ ...told, reference, providerPaymentId: reference },
        providerData: create(ProviderDataSchema, { status }),
      } as Outcome,
      ...{ minorUnits: 10_000n, currency: 'USD' },
    });
    const payment = await payments.pay({ wallet: true });
    const id = payment.transactions?.id ?? '';
    const { deps, results } = observed();
    const apply = (told: Outcome, status: string, day: number) =>
      signed(deps, 'ledger', payments.provider.connection, id, {
        ...outcomeOf(told, status, 'psp-1'),
        at: new Date(day * 86_400_000),
      });
    expect(await apply(DECLINED, 'UNDOING', 2)).toBe('applied');
    expect(await apply(APPROVED, 'DOING', 1)).toBe('unchanged');
    expect([results, await statusOf(id)]).toEqual([[], 'DECLINED']);
    // A charge that was made after the undoing is missing from the record.
    await apply(APPROVED, 'DOING', 3);
    await apply(APPROVED, 'DOING', 4);
    expect(results).toEqual(['contradiction', 'contradiction']);
  });

  it.each([
    ['a purchase', true, 'does it'],
    ['an authorization', false, 'does it'],
    ['an open purchase', true, 'does it, unanswered'],
    ['an open authorization', false, 'does it, unanswered'],
  ] as const)(
    'a payment is not changed by a signed report that only raises an alarm: %s',
    async (_what, capture, behaviour) => {
      payments.provider.next.push(behaviour);
      const payment = await payments.pay({ capture });
      const id = payment.transactions?.id ?? '';
      const before = await statusOf(id);
      const { deps, results } = observed();
      const outcome = alarmingOutcome('its capture failed');
      const report = { outcome, minorUnits: 10_000n, currency: 'USD', ofPurchase: true as const };
      expect(await signed(deps, 'ledger', payments.provider.connection, id, report)).toBe('unchanged');
      expect([results, await statusOf(id)]).toEqual([capture ? [outcome] : [], before]);
    },
  );

  it('a look-up’s outcome that raises an alarm is passed on as it is, even if the payment is final', async () => {
    const payment = await payments.pay({ wallet: true });
    const id = payment.transactions?.id ?? '';
    await ended.DECLINED(id);
    const { deps, results } = observed();
    const paidTwice = { ...APPROVED, alarm: true as const };
    await newsOf(deps, telling(paidTwice), id);
    expect(results).toEqual([paidTwice]);
  });
});
