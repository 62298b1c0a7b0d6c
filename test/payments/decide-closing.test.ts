import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import {
  type CheckTerms,
  decide,
  decideSigned,
  type Found,
  isLastCheck,
  lookedUp,
  mustLookUp,
} from '#src/payments/check/decide.ts';
import type { TransactionRow } from '#src/payments/model/state.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { found } from './found-payment.ts';
import { AMOUNT, APPROVED, approved, awaitingPayer, BASE_ID } from './model/kept-payment.ts';

const PAUSE_S = 5;
const TERMS: CheckTerms = { hasLookUp: true, hasNews: false, pauseS: () => PAUSE_S };
const providerData = create(ProviderDataSchema);
const DECLINED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
const EXPIRED: Outcome = { kind: 'expired', providerData };
const NOT_SENT: Outcome = { kind: 'not_sent', because: 'turned_away', detail: 'never happened' };
const PENDING: Outcome = { kind: 'pending', providerData };

/** A payment whose payer has yet to act, and the merchant's cancel that closes it; seen from one of the two. */
function closing(
  seenFrom: 'attempt' | 'cancel',
  { cancel, attempt }: { cancel?: Partial<TransactionRow>; attempt?: Partial<TransactionRow> } = {},
): Found {
  const state = awaitingPayer(true);
  const [own] = state.transactions;
  if (!own) throw new Error('there is no attempt');
  const closer: TransactionRow = {
    ...{ ...own, id: 'cancel', type: 'CANCEL', status: 'PENDING', parentId: BASE_ID },
    ...{ isFinal: false, awaitsPayer: false, reference: undefined, providerPaymentId: undefined },
    ...cancel,
  };
  // An attempt that is no party to the cancel comes first.
  const earlier = { ...own, id: 'earlier', status: 'DECLINED', awaitsPayer: false };
  const transactions = [earlier, { ...own, ...attempt }, closer];
  return found({ ...state, transactions }, {}, seenFrom === 'attempt' ? BASE_ID : 'cancel');
}

describe('a cancel of a payment whose payer has yet to act', () => {
  it.each(['attempt', 'cancel'] as const)('the %s is checked by a look-up of the attempt', (seenFrom) => {
    expect(lookedUp(closing(seenFrom)).id).toBe(BASE_ID);
    expect(mustLookUp(closing(seenFrom), TERMS)).toBe(true);
    const ended = closing(seenFrom, { attempt: { status: 'EXPIRED', awaitsPayer: false } });
    expect(mustLookUp(ended, TERMS)).toBe(false);
  });

  it('a cancel that has closed its attempt has nothing of its own to look up', () => {
    const over = closing('cancel', { cancel: { status: 'SUCCEEDED', reference: 'r-1' } });
    expect(mustLookUp(over, { ...TERMS, hasNews: true })).toBe(false);
    expect(lookedUp(closing('attempt', { cancel: { status: 'SUCCEEDED' } })).id).toBe(BASE_ID);
  });

  it('a cancel without its attempt is a fault of the database', () => {
    expect(() => lookedUp(closing('cancel', { cancel: { parentId: 'gone' } }))).toThrow(
      'cancel cancel has no parent',
    );
  });

  it.each([
    ['approved', APPROVED],
    ['declined', DECLINED],
    ['expired', EXPIRED],
    ['not sent', NOT_SENT],
  ])('an attempt that is %s ends with its cancel', (_what, outcome) => {
    for (const seenFrom of ['attempt', 'cancel'] as const) {
      expect(decide(closing(seenFrom), { outcome }, TERMS)).toEqual({
        ...{ kind: 'close', learned: outcome },
        report: { kind: 'outcome', transactionId: 'cancel', outcome, pauseS: PAUSE_S },
      });
    }
  });

  it.each([
    ['answers that the payer may still pay', PENDING, 'unchanged'],
    ['does not answer', UNKNOWN, 'unanswered'],
  ])('a provider that %s is called again after the pause', (_what, outcome, result) => {
    const decision = { kind: 'nothing', result, checkInS: PAUSE_S, learned: outcome };
    expect(decide(closing('cancel'), { outcome }, TERMS)).toEqual(decision);
  });

  it('a cancel whose process died gets its response from its own check alone', () => {
    const died = { cancel: { awaitsResponse: true } };
    expect(decide(closing('cancel', died), { outcome: UNKNOWN }, TERMS)).toMatchObject({ kind: 'close' });
    expect(decide(closing('attempt', died), { outcome: UNKNOWN }, TERMS)).toMatchObject({ kind: 'nothing' });
  });
});

describe('decisions at the edges', () => {
  it('an authorization that waits for its capture has no last check, however old it is', () => {
    expect(isLastCheck(found(approved(false), { ageMs: 365 * 86_400_000 }), { hasLookUp: true })).toBe(false);
  });

  it.each([
    ['declined', DECLINED, 'contradiction'],
    ['not sent', NOT_SENT, 'contradiction'],
    ['expired', EXPIRED, EXPIRED],
  ])('an authorization past its term that is %s is over without a release', (_what, outcome, learned) => {
    for (const ageMs of [0, 30 * 86_400_000]) {
      const decision = decide(found(approved(false), { ageMs }), { outcome }, { ...TERMS, hasNews: true });
      expect(decision).toMatchObject({ kind: 'write', learned, report: { kind: 'lapsed' } });
    }
  });

  it('an attempt that can be looked up gets its response when its outcome is known', () => {
    const unanswered = found(awaitingPayer(true), { awaitsResponse: true });
    expect(decide(unanswered, { outcome: UNKNOWN }, TERMS)).toMatchObject({ kind: 'nothing' });
  });

  it('a signed report of a cancel may name any amount, since a cancel moves none', () => {
    const canceled = closing('cancel');
    const signed = { outcome: APPROVED, minorUnits: AMOUNT - 1n, currency: 'EUR' };
    expect(decideSigned(canceled, signed, PAUSE_S)).toMatchObject({ kind: 'write', isOther: false });
  });

  it('a signed report under the charge that was approved is no second charge', () => {
    const signed = { outcome: APPROVED, minorUnits: AMOUNT, currency: 'USD', paidReference: 'base-id' };
    expect(decideSigned(found(approved(true)), signed, PAUSE_S)).toMatchObject({ kind: 'write' });
  });

  it('a signed approval of an authorization does not end it', () => {
    const signed = { outcome: APPROVED, minorUnits: AMOUNT, currency: 'USD' };
    expect(decideSigned(found(approved(false)), signed, PAUSE_S)).toMatchObject({
      report: { kind: 'outcome' },
    });
  });

  it('a signed failure takes no amount from its report', () => {
    const signed = { outcome: DECLINED, minorUnits: AMOUNT, currency: 'USD' };
    const decision = decideSigned(found(awaitingPayer(true)), signed, PAUSE_S);
    expect(decision).toMatchObject({ kind: 'write', report: { outcome: { kind: 'declined' } } });
    expect(decision).not.toHaveProperty('report.outcome.money');
  });
});
