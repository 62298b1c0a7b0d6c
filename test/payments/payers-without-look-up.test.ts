import { create } from '@bufbuild/protobuf';
import { beforeEach, describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { followUpNow } from '#src/payments/check/follow-up.ts';
import { recoverDue } from '#src/payments/check/recover-payments.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const NO_CODES = { authorizationCode: '', retrievalReferenceNumber: '' };
const fail = () => {
  throw new Error('nothing more was expected');
};

onOperatedPayments({ empties: 'payment, transaction' });
beforeEach(() => payments.setAhead(0));

describe('a redirect at a provider without look-up', () => {
  const mute = (over: Partial<ProviderConnection> = {}): ProviderConnection => ({
    ...payments.provider.connection,
    lookUp: undefined,
    ...over,
  });

  it('is completed with what the payer brought back, and only with that', async () => {
    const payment = await payments.pay({ wallet: true });
    const brought: unknown[] = [];
    const connection = mute({
      complete: async ({ hint }) => {
        brought.push(hint);
        return { kind: 'approved', providerData: create(ProviderDataSchema), ...NO_CODES };
      },
    });
    const id = payment.transactions?.id ?? '';
    expect(await followUpNow(payments.deps, connection, id)).toBe('unchanged');
    expect(await followUpNow(payments.deps, connection, id, { hint: { returnQuery: 'r=1' } })).toBe(
      'applied',
    );
    expect(brought).toEqual([{ returnQuery: 'r=1' }]);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it.each([
    ['a wallet', 'READY_TO_PAY/CREATED'],
    ['a challenge', 'PENDING/WAITING_ADDITIONAL_STEP'],
  ])(
    'whose payer came back to a lost answer is not said to be EXPIRED: they may have paid (%s)',
    async (method, before) => {
      const wallet = method === 'a wallet';
      if (!wallet) payments.provider.next.push('sends the payer away');
      const payment = await payments.pay({ wallet });
      const id = payment.transactions?.id ?? '';
      const bringing = (outcome: Outcome) =>
        followUpNow(payments.deps, mute({ complete: async () => outcome }), id, {
          hint: { returnQuery: 'r=1' },
        });
      const refused = { kind: 'not_sent', because: 'turned_away', detail: 'forged' } as const;
      expect([await bringing(refused), await payments.stateOf(payment)]).toEqual(['unchanged', before]);
      const lost = { kind: 'unknown', detail: 'reset', providerData: undefined } as const;
      expect([await bringing(lost), await payments.stateOf(payment)]).toEqual([
        'applied',
        'PENDING/IN_PROCESS',
      ]);
      expect(await bringing(lost)).toBe('unchanged');
      payments.setAhead(DAY_MS + 2 * MINUTE_MS);
      expect(await followUpNow(payments.deps, mute(), id)).toBe('unchanged');
      expect(await bringing(lost)).toBe('unchanged');
      expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
      const open = 'SELECT 1 FROM transaction WHERE follow_up_at IS NOT NULL';
      expect(await payments.tables.query(open)).toHaveLength(1);
      const told = { kind: 'approved', providerData: create(ProviderDataSchema), ...NO_CODES } as const;
      expect(await bringing(told)).toBe('applied');
      expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    },
  );

  it('is completed once more after a lost answer, and a refusal of that says nothing about the first', async () => {
    const lost = { kind: 'unknown', detail: 'reset', providerData: undefined } as const;
    const refused = { kind: 'not_sent', because: 'turned_away', detail: 'used' } as const;
    const told = { kind: 'approved', providerData: create(ProviderDataSchema), ...NO_CODES } as const;
    for (const [answers, state] of [
      [[lost, told], 'SUCCEEDED/APPROVED'],
      [[lost, refused], 'PENDING/IN_PROCESS'],
      [[lost, lost], 'PENDING/IN_PROCESS'],
    ] as const) {
      const payment = await payments.pay({ wallet: true });
      const left: Outcome[] = [...answers];
      const connection = mute({ complete: async () => left.shift() ?? fail() });
      const hint = { returnQuery: 'r=1' };
      expect(await followUpNow(payments.deps, connection, payment.transactions?.id ?? '', { hint })).toBe(
        'applied',
      );
      expect([left, await payments.stateOf(payment)]).toEqual([[], state]);
    }
  });

  it("is nobody else's to ask about while what its payer brought is sent for the second time", async () => {
    const payment = await payments.pay({ wallet: true });
    const lost = { kind: 'unknown', detail: 'timeout', providerData: undefined } as const;
    const connection = mute({
      complete: async () => {
        // Every call may take as long as its deadline.
        const passed = 'UPDATE transaction SET follow_up_at = follow_up_at - make_interval(secs => $1)';
        await payments.tables.query(passed, [connection.deadlineMs / 1000]);
        await recoverDue({ ...payments.deps, connections: () => new Map([['ledger', connection]]) });
        return lost;
      },
      deadlineMs: 2 * payments.deps.schedule.leaseMarginMs,
    });
    const hint = { returnQuery: 'r=1' };
    expect(await followUpNow(payments.deps, connection, payment.transactions?.id ?? '', { hint })).toBe(
      'applied',
    );
    expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
  });

  it('whose payer never came back is EXPIRED once its term is over', async () => {
    const payment = await payments.pay({ wallet: true });
    const id = payment.transactions?.id ?? '';
    payments.setAhead(DAY_MS - MINUTE_MS);
    expect(await followUpNow(payments.deps, mute(), id)).toBe('unchanged');
    payments.setAhead(DAY_MS + 2 * MINUTE_MS);
    expect(await followUpNow(payments.deps, mute(), id)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });
});
