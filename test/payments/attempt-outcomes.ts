import fc from 'fast-check';
import { expect } from 'vitest';
import {
  type Payment,
  Payment_Status,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { statesOf } from '#src/payments/model/states.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { APPROVED, declined, PENDING, providerData, UNKNOWN } from '../support/outcomes.ts';
import type { Call, Script } from './scripted-payments.ts';

const REDIRECT: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://wallet.example/1' } };
export const NOT_SENT: Outcome = { kind: 'not_sent', detail: 'refused', because: 'unreachable' };
const TURNED_AWAY: Outcome = { kind: 'not_sent', detail: 'refused by its answer', because: 'turned_away' };
/** A decline that forbids every other try, or the same one, whatever its code. */
const advisedAgainst = (advice: 'NEVER' | 'REVOKED' | 'NEW_DATA' | 'AUTHENTICATE'): Outcome => ({
  kind: 'declined',
  providerData,
  iso8583Code: '05',
  advice,
});

const HARD_CODES = ['14', '33', '41', '43', '54', '57', '59', '68', '82', 'N7', 'n7'];
const SOFT_CODES = ['05', '22', '51', '61', '62', '65', '80', '90', '91', '92', '96'];

const arbOutcome = fc.oneof(
  { weight: 4, arbitrary: fc.constantFrom(NOT_SENT, TURNED_AWAY) },
  { weight: 4, arbitrary: fc.constantFrom(...SOFT_CODES).map(declined) },
  { weight: 1, arbitrary: fc.constantFrom(...HARD_CODES).map(declined) },
  {
    weight: 1,
    arbitrary: fc
      .constantFrom('NEVER', 'REVOKED', 'NEW_DATA', 'AUTHENTICATE')
      .map((advice) => advisedAgainst(advice as 'NEVER')),
  },
  { weight: 1, arbitrary: fc.stringMatching(/^[0-9A-Z]{2}$/).map(declined) },
  { weight: 3, arbitrary: fc.constantFrom(APPROVED, REDIRECT, PENDING, UNKNOWN, UNKNOWN) },
);
/** Any script without faults. */
export const arbScript = fc.record({
  outcomes: fc.array(arbOutcome, { minLength: 1, maxLength: 5 }),
  maxAttempts: fc.option(fc.integer({ min: 1, max: 6 }), { nil: undefined }),
  softDeclines: fc.boolean(),
  truth: fc.constantFrom(APPROVED, NOT_SENT, declined('51'), declined('41')),
});

const mayBeCharged = ({ kind }: Outcome) => ['approved', 'awaits_payer', 'pending', 'unknown'].includes(kind);
const isHard = (outcome: Outcome) =>
  outcome.kind === 'declined' &&
  (outcome.advice !== 'NONE' || HARD_CODES.includes(outcome.iso8583Code.toUpperCase()));

/** Returns the outcomes of the attempts that a script should make. */
export function expectedOutcomes({
  outcomes,
  maxAttempts = outcomes.length,
  softDeclines,
}: Script): Outcome[] {
  const reached = outcomes.slice(0, maxAttempts);
  const end = reached.findIndex(
    (outcome) =>
      outcome.kind !== 'not_sent' && !(softDeclines && outcome.kind === 'declined' && !isHard(outcome)),
  );
  return end < 0 ? reached : reached.slice(0, end + 1);
}

/** Returns the statuses that no sequence of outcomes and no fault may cause. */
export function expectNoSecondCharge(
  calls: readonly Call[],
  { maxAttempts = 5, softDeclines = false }: Script,
): void {
  for (const { outcome } of calls.slice(0, -1)) {
    expect(mayBeCharged(outcome)).toBe(false);
    expect(outcome.kind === 'declined' && (!softDeclines || isHard(outcome))).toBe(false);
  }
  expect(calls.length).toBeLessThanOrEqual(maxAttempts);
  for (const { connectionId, transactionId, stood } of calls) {
    const { record, ...row } = stood as Record<string, unknown> & { record: Uint8Array };
    const open = { status: 'PENDING', leased: true, payment_status: 'PENDING' };
    expect(row).toEqual({ ...open, connection_id: connectionId });
    expect(decodeRecord(record).transactions?.id).toBe(transactionId);
  }
}

/** Returns the attempts that a record shows. */
export const shownOf = ({ transactionsHistory }: Payment) =>
  transactionsHistory.map(({ id, providerId, status, responseCode }) => ({
    id,
    providerId,
    status: Transaction_Status[status],
    responseCode,
  }));

/** A card purchase without an earlier decline. */
export const TOLD = {
  type: Transaction_Type.PURCHASE,
  methodKind: 'CARD',
  isDeclinedBefore: false,
} as const;

/**
 * The states after a sequence of attempts, which depend on the last attempt and on whether a
 * provider declined an earlier one.
 */
export const endStates = (outcomes: readonly Outcome[]) =>
  statesOf(outcomes.at(-1) ?? NOT_SENT, {
    ...TOLD,
    isDeclinedBefore: outcomes.slice(0, -1).some(({ kind }) => kind === 'declined'),
  });

/**
 * The transaction that a payment must show: the last declined one if the payment was declined,
 * otherwise the last.
 */
export const reportedOf = ({ status, transactionsHistory }: Payment) =>
  status === Payment_Status.DECLINED
    ? transactionsHistory.findLast((one) => one.status === Transaction_Status.DECLINED)
    : transactionsHistory.at(-1);
