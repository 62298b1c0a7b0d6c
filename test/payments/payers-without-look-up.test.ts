import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { payerDid } from '../support/news.ts';
import { earlier } from '../support/tables.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 24 * 60 * MINUTE_MS;

const NO_CODES = { authorizationCode: '', retrievalReferenceNumber: '' };
const fail = () => {
  throw new Error('nothing more was expected');
};

onOperatedPayments({ empties: 'payment, transaction, notification' });

const at = (connection: ProviderConnection) => ({
  ...payments.deps,
  connections: () => new Map([['ledger', connection]]),
});

/** Checks open outcomes as they fall due. */
async function check(connection: ProviderConnection): Promise<void> {
  await payments.makeDue();
  await checkDue(at(connection));
}

/** Brings the payer back with the provider's signed evidence. @returns the result of the return. */
const comeBack = ({ transactions }: Payment, connection: ProviderConnection) =>
  payerDid(at(connection), 'ledger', transactions?.id ?? '', { query: 'r=1' });

describe('a redirect at a provider without look-up', () => {
  const mute = (over: Partial<ProviderConnection> = {}): ProviderConnection => ({
    ...payments.provider.connection,
    lookUp: undefined,
    ...over,
  });

  it("a redirect without look-up is completed with the payer's evidence, and only with that evidence", async () => {
    const payment = await payments.pay({ wallet: true });
    const brought: unknown[] = [];
    const connection = mute({
      complete: async ({ hint }) => {
        brought.push(hint);
        return { kind: 'approved', providerData: create(ProviderDataSchema), ...NO_CODES };
      },
    });
    await check(connection);
    expect([brought, await payments.stateOf(payment)]).toEqual([[], 'READY_TO_PAY/CREATED']);
    expect(await comeBack(payment, connection)).toBe('applied');
    expect(brought).toEqual([{ returnQuery: 'r=1' }]);
    expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
  });

  it.each([
    ['a wallet', 'READY_TO_PAY/CREATED'],
    ['a challenge', 'PENDING/WAITING_ADDITIONAL_STEP'],
  ])(
    'a redirect without look-up is not EXPIRED after a return whose response was lost (%s)',
    async (method, before) => {
      const wallet = method === 'a wallet';
      if (!wallet) payments.provider.next.push('sends the payer away');
      const payment = await payments.pay({ wallet });
      const bringing = (outcome: Outcome) => comeBack(payment, mute({ complete: async () => outcome }));
      expect(await payments.stateOf(payment)).toBe(before);
      const lost = { kind: 'unknown', detail: 'reset', providerData: undefined } as const;
      expect([await bringing(lost), await payments.stateOf(payment)]).toEqual([
        'applied',
        'PENDING/IN_PROCESS',
      ]);
      // The evidence is kept and sent again.
      expect(await bringing(lost)).toBe('waiting');
      payments.setAhead(DAY_MS + 2 * MINUTE_MS);
      await check(mute());
      expect(await bringing(lost)).toBe('waiting');
      expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
      const open = 'SELECT 1 FROM transaction WHERE check_at IS NOT NULL';
      expect(await payments.tables.query(open)).toHaveLength(1);
      const told = { kind: 'approved', providerData: create(ProviderDataSchema), ...NO_CODES } as const;
      await check(mute({ complete: async () => told }));
      expect(await payments.stateOf(payment)).toBe('SUCCEEDED/APPROVED');
    },
  );

  it.each([true, false])(
    'a redirect whose evidence is refused stays unchanged, and the evidence is not sent again (wallet: %j)',
    async (wallet) => {
      if (!wallet) payments.provider.next.push('sends the payer away');
      const payment = await payments.pay({ wallet });
      const before = await payments.stateOf(payment);
      const refused = { kind: 'not_sent', because: 'turned_away', detail: 'forged' } as const;
      expect(await comeBack(payment, mute({ complete: async () => refused }))).toBe('unchanged');
      expect(await payments.stateOf(payment)).toBe(before);
      await check(mute({ complete: fail }));
    },
  );

  it('a completion without a response is sent once more, and a refusal then proves nothing', async () => {
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
      expect(await comeBack(payment, connection)).toBe('applied');
      expect([left, await payments.stateOf(payment)]).toEqual([[], state]);
    }
  });

  it('a redirect whose evidence is being sent again is not checked by another worker', async () => {
    const payment = await payments.pay({ wallet: true });
    const lost = { kind: 'unknown', detail: 'timeout', providerData: undefined } as const;
    const connection = mute({
      complete: async () => {
        // Every call may take its full deadline.
        const due = earlier('check_at', `${connection.deadlineMs} ms`);
        await payments.tables.query(`UPDATE transaction SET check_at = ${due}`);
        await checkDue(at(connection));
        return lost;
      },
      deadlineMs: 2 * payments.deps.schedule.leaseMarginMs,
    });
    expect(await comeBack(payment, connection)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('PENDING/IN_PROCESS');
  });

  it('a redirect without look-up whose payer never returned is EXPIRED at the end of its term', async () => {
    const payment = await payments.pay({ wallet: true });
    payments.setAhead(DAY_MS - MINUTE_MS);
    await check(mute());
    expect(await payments.stateOf(payment)).toBe('READY_TO_PAY/CREATED');
    payments.setAhead(DAY_MS + 2 * MINUTE_MS);
    await check(mute());
    expect(await payments.stateOf(payment)).toBe('EXPIRED/EXPIRED');
  });
});
