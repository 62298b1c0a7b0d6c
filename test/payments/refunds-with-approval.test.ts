import { describe, expect, it } from 'vitest';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { writeReport } from '#src/payments/write-change.ts';
import { APPROVED, UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { alarms, idOf, news, onOperatedPayments, others, payments } from './operated-payments.ts';

onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });

describe('a refund made at the provider itself', () => {
  it('a refund at the provider is recorded along with a payment whose approval is learned later', async () => {
    payments.provider.next.push('does it, unanswered');
    const payment = await payments.pay();
    payments.provider.elsewhere(idOf(payment), { refunded: 10_000n });
    expect(await news(payment)).toBe('applied');
    expect(await payments.stateOf(payment)).toBe('REFUNDED/REFUNDED');
  });

  it('a refund at the provider is recorded after the approval; without refunds, one look-up is made', async () => {
    let asked = 0;
    const telling = (refunded: bigint): ProviderConnection => ({
      ...payments.provider.connection,
      async lookUp() {
        asked++;
        return { ...APPROVED, reference: 'theirs', totals: { captured: 10_000n, refunded } };
      },
    });
    const [refunded, kept] = [await payments.pay({ wallet: true }), await payments.pay({ wallet: true })];
    expect([await news(refunded, telling(1_000n)), await payments.stateOf(refunded), alarms]).toEqual([
      'applied',
      'SUCCEEDED/PARTIALLY_REFUNDED',
      [],
    ]);
    // The payment's reference continues to name only the payment.
    const referring = "SELECT type FROM transaction WHERE reference = 'theirs'";
    expect(await payments.tables.query(referring)).toEqual([{ type: 'PURCHASE' }]);
    asked = 0;
    expect([await news(kept, telling(0n)), asked]).toEqual(['applied', 1]);
    payments.provider.next.push('does it, unanswered');
    expect(await news(await payments.pay(), telling(0n))).toBe('applied');
    expect(asked).toBe(2);
  });

  it.each(['is unknown', 'was open'])(
    'a refund with the approval of a payment that %s is recorded even if only one look-up answers',
    async (what) => {
      const { connection } = payments.provider;
      const told = { ...APPROVED, totals: { captured: 10_000n, refunded: 2_500n } } as Outcome;
      let asked = 0;
      const lookUp = async () => (++asked === 2 ? UNKNOWN : told);
      if (what === 'is unknown') payments.provider.next.push('does it, unanswered');
      const payment = await payments.pay({ wallet: what === 'was open' });
      const connections = () => new Map([['ledger', { ...connection, lookUp }]]);
      const scheduled = {
        ...payments.deps,
        connections,
        checked: { ...payments.deps.checked, failed: () => {} },
      };
      await payments.makeDue();
      expect([await checkDue(scheduled), await payments.stateOf(payment), asked]).toEqual([
        1,
        'SUCCEEDED/APPROVED',
        2,
      ]);
      await payments.makeDue();
      expect([await checkDue(scheduled), await payments.stateOf(payment)]).toEqual([
        1,
        'SUCCEEDED/PARTIALLY_REFUNDED',
      ]);
      // No look-up is left to make.
      await payments.makeDue();
      expect([await checkDue(scheduled), await others(payment)]).toEqual([0, ['REFUND SUCCEEDED 2500']]);
    },
  );

  it('a refund is recorded even if a worker that has claimed the payment learns only of the approval', async () => {
    const payment = await payments.pay({ wallet: true });
    const told = { ...APPROVED, totals: { captured: 10_000n, refunded: 2_500n } } as Outcome;
    const lookUp = async () => {
      const transactionId = idOf(payment);
      const leased = { accountId: ACCOUNT_ONE, paymentId: payment.id, transactionId, fence: 0 };
      await writeReport(payments.deps, leased, { kind: 'outcome', transactionId, outcome: told, pauseS: 60 });
      return APPROVED;
    };
    const { connection } = payments.provider;
    expect(await news(payment, { ...connection, lookUp })).toBe('unchanged');
    const connections = () => new Map([['ledger', { ...connection, lookUp: async () => told }]]);
    await payments.makeDue();
    expect([await checkDue({ ...payments.deps, connections }), await others(payment)]).toEqual([
      1,
      ['REFUND SUCCEEDED 2500'],
    ]);
  });

  it('a refund that exceeds the payment and comes with the approval raises one alarm', async () => {
    const payment = await payments.pay({ wallet: true });
    const totals = { captured: 10_000n, refunded: 10_001n };
    const lookUp = async () => ({ ...APPROVED, totals }) as Outcome;
    expect(await news(payment, { ...payments.provider.connection, lookUp })).toBe('applied');
    expect([await payments.stateOf(payment), alarms]).toEqual(['SUCCEEDED/APPROVED', ['mismatch']]);
    // No schedule repeats it: it needs manual review.
    await payments.makeDue();
    expect([await checkDue(payments.deps), alarms]).toEqual([0, ['mismatch']]);
  });
});
