import { equals } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import {
  Payment_Status,
  PaymentSchema,
  type Transaction,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { apply, type Report } from '#src/payments/model/apply.ts';
import { attemptChange } from '#src/payments/model/attempt.ts';
import {
  isClosing,
  isOpen,
  isOperation,
  type PaymentState,
  type TransactionRow,
} from '#src/payments/model/state.ts';
import { runs } from '#test/support/fixed-seed.ts';
import { AMOUNT, BASE_ID, claimed, FINGERPRINT, learned, sumOf, timeOf } from './kept-payment.ts';
import { AWAITING, holds, OUTCOMES } from './payment-steps.ts';

const STAYS_OPEN: readonly Outcome['kind'][] = ['unknown', 'pending', 'awaits_payer', 'to_complete'];

/** A state without its times and its number of writes. */
function withoutTimes({ payment, record, transactions }: PaymentState): unknown {
  const plain = JSON.parse(
    JSON.stringify(record, (name, value) => {
      if (name === 'updatedAt') return undefined;
      return typeof value === 'bigint' ? String(value) : value;
    }),
  );
  return { payment: { ...payment, version: 0 }, record: plain, transactions };
}

it('a report that is applied twice changes nothing the second time', () => {
  holds((_before, after, report) => {
    // A payment that was paid while it was being closed takes two changes: the attempt ends, then the cancel.
    if (after.transactions.some((one) => isClosing(one) && isOpen(one))) return;
    const again = learned(after, report);
    const isOver = 'outcome' in report && !STAYS_OPEN.includes(report.outcome.kind);
    if (isOver) expect(again.change).toBeTypeOf('string');
    expect(withoutTimes(again.state)).toEqual(withoutTimes(after));
  });
});

it('a record shows the fingerprint of its card once the provider has approved the payment, and not before', () => {
  const shown = new Set<string>();
  holds((before, after) => {
    for (const transaction of after.record.transactionsHistory) {
      const { id, type, status } = transaction;
      if (type !== Transaction_Type.PURCHASE && type !== Transaction_Type.AUTHORIZE) continue;
      const fingerprint = fingerprintOf(transaction);
      if (fingerprint === undefined) continue;
      if (status === Transaction_Status.PENDING) expect(fingerprint).toBe('');
      // A payment that its provider denies after its approval was approved once.
      const earlier = before.record.transactionsHistory.find((one) => one.id === id);
      if (status === Transaction_Status.DECLINED) expect(fingerprint).toBe(fingerprintOf(earlier));
      if (status === Transaction_Status.SUCCEEDED) expect(fingerprint).toBe(FINGERPRINT);
      shown.add(fingerprint ?? '');
    }
  }, runs(500));
  expect([...shown].sort()).toEqual(['', FINGERPRINT]);
});

function fingerprintOf(transaction: Transaction | undefined): string | undefined {
  const card = transaction?.paymentMethod?.detail?.kind;
  return card?.case === 'card' ? card.value.cardData?.fingerprint : undefined;
}

/** The only transitions from a final state to another, by report. */
function mayLeave({ type, status }: TransactionRow, next: string, report: Report): boolean {
  const outcome = 'outcome' in report ? report.outcome : undefined;
  const corrects = outcome && 'corrects' in outcome && outcome.corrects !== undefined;
  const isApproved = outcome?.kind === 'approved';
  if (type === 'CHARGEBACK') {
    if (report.kind !== 'dispute') return false;
    const { reference, moves = 1 } = report.dispute;
    const isGivenBack = reference !== undefined && moves % 2 === 0;
    return status === 'DECLINED' ? next === 'SUCCEEDED' : next === 'DECLINED' && isGivenBack;
  }
  if (isOperation(type)) {
    const mayFail = status === 'SUCCEEDED' && next === 'DECLINED' && outcome?.kind === 'declined';
    const maySucceed = status === 'DECLINED' && next === 'SUCCEEDED' && isApproved;
    return type !== 'CANCEL' && (mayFail || maySucceed) && corrects === true;
  }
  if (status === 'SUCCEEDED') {
    const isLapse = next === 'EXPIRED' && report.kind === 'lapsed' && type === 'AUTHORIZE';
    return isLapse || (next === 'DECLINED' && outcome?.kind === 'declined' && corrects === true);
  }
  if (next !== 'SUCCEEDED' || !isApproved) return false;
  return status === 'EXPIRED' || (status === 'DECLINED' && corrects === true);
}

it('a final state changes only through a correction, late money, a lapse, a won dispute that is lost, or a lost one whose money is given back', () => {
  const left = new Set<string>();
  holds((before, after, report) => {
    for (const one of before.transactions) {
      const next = after.transactions.find(({ id }) => id === one.id);
      if (isOpen(one) || next?.status === one.status) continue;
      expect([one, next, mayLeave(one, next?.status ?? '', report)]).toEqual([one, next, true]);
      left.add(`${one.type} ${one.status} ${next?.status}`);
    }
  }, runs(2_000));
  // Every transition occurred, so none is allowed needlessly.
  expect([...left].sort()).toEqual([
    'AUTHORIZE DECLINED SUCCEEDED',
    'AUTHORIZE EXPIRED SUCCEEDED',
    'AUTHORIZE SUCCEEDED DECLINED',
    'AUTHORIZE SUCCEEDED EXPIRED',
    'CAPTURE DECLINED SUCCEEDED',
    'CAPTURE SUCCEEDED DECLINED',
    'CHARGEBACK DECLINED SUCCEEDED',
    'CHARGEBACK SUCCEEDED DECLINED',
    'PURCHASE DECLINED SUCCEEDED',
    'PURCHASE EXPIRED SUCCEEDED',
    'PURCHASE SUCCEEDED DECLINED',
    'REFUND DECLINED SUCCEEDED',
    'REFUND SUCCEEDED DECLINED',
  ]);
});

it('a payment that was canceled before its payer acted becomes paid through late money, and in no other way', () => {
  let revived = 0;
  holds((before, after, report, change) => {
    const { CANCELED, SUCCEEDED } = Payment_Status;
    const wasClosed = before.record.status === CANCELED && !before.payment.isReleased;
    if (!wasClosed || before.payment.openOperation || after.record.status !== SUCCEEDED) return;
    expect(report.kind === 'outcome' && report.outcome.kind).toBe('approved');
    if (before.transactions[0]?.status === 'EXPIRED') expect(change.moneyAlarms).toContain('late_payment');
    revived += 1;
  }, runs(1_500));
  expect(revived).toBeGreaterThan(0);
});

it('a cancel that closes a payment ends together with the attempt, or is declined because the attempt was paid', () => {
  const seen = new Set<string>();
  holds(
    (_before, after) => {
      for (const one of after.transactions.filter(isClosing)) {
        const attempt = after.transactions.find(({ id }) => id === one.parentId);
        seen.add(`${one.status}: ${attempt && isOpen(attempt) ? 'open' : attempt?.status}`);
      }
    },
    runs(1_500),
    AWAITING,
  );
  expect([...seen].sort()).toEqual([
    'DECLINED: DECLINED',
    'DECLINED: EXPIRED',
    'DECLINED: SUCCEEDED',
    'PENDING: SUCCEEDED',
    'PENDING: open',
    'SUCCEEDED: DECLINED',
    'SUCCEEDED: EXPIRED',
    'SUCCEEDED: SUCCEEDED',
  ]);
});

it('refunds never exceed captures, captures never exceed the authorization, and the books are their sums', () => {
  holds((_before, after) => {
    const { capturedMinorUnits: captured, refundedMinorUnits: refunded } = after.payment;
    expect([captured, refunded]).toEqual([sumOf(after, 'CAPTURE'), sumOf(after, 'REFUND')]);
    const isPurchase = after.transactions.some(({ type }) => type === 'PURCHASE');
    expect(refunded).toBeLessThanOrEqual(isPurchase ? AMOUNT : captured);
    expect(captured).toBeLessThanOrEqual(AMOUNT);
    expect(refunded).toBeGreaterThanOrEqual(0n);
  });
});
it('a change has an event if and only if the record changed', () => {
  let silent = 0;
  holds((before, _after, _report, { record, event }) => {
    expect(event === undefined).toBe(equals(PaymentSchema, before.record, record));
    if (event === undefined) silent++;
  });
  expect(silent).toBeGreaterThan(0);
});

it('a dispute leaves the books unchanged', () => {
  holds((before, after, report) => {
    if (report.kind === 'dispute') expect(amountsOf(after)).toEqual(amountsOf(before));
  });
});

function amountsOf({ payment }: PaymentState) {
  const { version: _, ...amounts } = payment;
  return amounts;
}

it.each(OUTCOMES)(
  'a reported outcome changes an attempt as attemptChange does, on a copy of its record: $kind',
  (outcome) => {
    const [state, at] = [claimed(false), timeOf(claimed(false))];
    const report = { kind: 'outcome', transactionId: BASE_ID, outcome, pauseS: 5 } as const;
    const attempt = {
      id: BASE_ID,
      vaultedToken: undefined,
      cardFingerprint: FINGERPRINT,
      ...{ capture: false, methodKind: 'CARD' as const, awaitsPayer: false },
    };
    const decided = attemptChange(claimed(false).record, attempt, outcome, 5, at);
    const books = { currency: 'USD', amount: AMOUNT, captured: 0n, refunded: 0n };
    expect(apply(state, report, at)).toEqual({
      ...decided,
      books: { ...books, isAuthorization: true, isReleased: false },
    });
    expect(state).toEqual(claimed(false));
  },
);
