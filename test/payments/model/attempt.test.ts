import { create } from '@bufbuild/protobuf';
import { timestampFromMs } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import {
  CheckoutSchema,
  Payment_Status,
  Transaction_Category,
  Transaction_Status,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { attemptChange } from '#src/payments/model/attempt.ts';
import { attemptToClaim } from '../../support/claimed-rows.ts';
import { APPROVED, declined, PENDING, UNKNOWN } from '../../support/outcomes.ts';
import { NOT_SENT } from '../attempt-outcomes.ts';

const REDIRECT = { ...PENDING, kind: 'awaits_payer', show: { page: 'https://wallet.example' } } as Outcome;
const TO_COMPLETE = { ...PENDING, kind: 'to_complete' } as Outcome;
/** The pause before the next check of an attempt that stays open. */
const PAUSE_S = 4;
const [NEVER, DAY_S] = [undefined, 86_400];

type Options = { capture?: boolean; wallet?: boolean; plain?: boolean; awaitsPayer?: boolean };

/** The outcome of a claimed attempt that stores its card, and the claim. */
function changed(outcome: Outcome, { capture = true, wallet, plain, awaitsPayer = false }: Options = {}) {
  const { attempt } = attemptToClaim({ vault: !plain });
  const { record, vaultedToken, transactionId } = attempt;
  for (const one of record.transactionsHistory) {
    if (wallet) one.category = Transaction_Category.WALLET;
  }
  const methodKind = wallet ? 'PAYER_PAGE' : 'CARD';
  const own = {
    ...{ id: transactionId, vaultedToken, cardFingerprint: undefined, capture, awaitsPayer },
    methodKind,
  } as const;
  return { attempt, change: attemptChange(record, own, outcome, PAUSE_S, timestampFromMs(1_000)) };
}

it.each<[string, Outcome, Options, unknown[]]>([
  ['approved', APPROVED, {}, ['SUCCEEDED', 'SUCCEEDED', false, NEVER, 'keep']],
  [
    'approved, to be captured',
    APPROVED,
    { capture: false },
    ['SUCCEEDED', 'SUCCEEDED', false, DAY_S, 'keep'],
  ],
  ['declined', declined('51'), { capture: false }, ['DECLINED', 'DECLINED', false, NEVER, 'drop']],
  ['not sent', NOT_SENT, {}, ['ERROR', 'ERROR', false, NEVER, 'drop']],
  ['unknown', UNKNOWN, {}, ['PENDING', 'PENDING', false, PAUSE_S, undefined]],
  ['pending', PENDING, {}, ['PENDING', 'PENDING', false, PAUSE_S, undefined]],
  ['pending at a wallet', PENDING, { wallet: true }, ['PENDING', 'PENDING', true, PAUSE_S, undefined]],
  ['to be completed', TO_COMPLETE, {}, ['PENDING', 'PENDING', false, PAUSE_S, undefined]],
  ['a challenge', REDIRECT, {}, ['PENDING', 'PENDING', true, 60, undefined]],
  ['a redirect', REDIRECT, { wallet: true, plain: true }, ['READY_TO_PAY', 'CREATED', true, 60, undefined]],
  [
    'a redirect of a stored method',
    REDIRECT,
    { wallet: true },
    ['READY_TO_PAY', 'CREATED', true, 60, undefined],
  ],
  [
    'unknown after its payer was away',
    UNKNOWN,
    { awaitsPayer: true },
    ['PENDING', 'PENDING', true, PAUSE_S, undefined],
  ],
  [
    'approved after its payer was away',
    APPROVED,
    { awaitsPayer: true },
    ['SUCCEEDED', 'SUCCEEDED', false, NEVER, 'keep'],
  ],
])('an attempt gets its state and the time of its next check: %s', (_what, outcome, over, expected) => {
  const { record, transaction, method } = changed(outcome, over).change;
  const told = [Payment_Status[record.status], Transaction_Status[transaction?.status ?? 0]];
  expect([...told, transaction?.awaitsPayer, transaction?.checkInS, method?.fate]).toEqual(expected);
});

it('only the worker that holds an attempt may write that it is still open', () => {
  const openOf = (outcome: Outcome) => changed(outcome).change.transaction?.isFenced;
  expect([UNKNOWN, PENDING, TO_COMPLETE].map(openOf)).toEqual([true, true, true]);
  expect([APPROVED, declined('51'), NOT_SENT, REDIRECT].map(openOf)).toEqual([false, false, false, false]);
});

it('the change of an attempt names the attempt, the reference, the stored card and the event', () => {
  const { attempt, change } = changed({ ...APPROVED, reference: 'theirs' } as Outcome);
  expect(change).toMatchObject({
    ...{ record: attempt.record, event: 'payment.purchase', reopens: undefined, retakes: undefined },
    transaction: { id: attempt.transactionId, reference: 'theirs' },
    method: { token: attempt.vaultedToken, fate: 'keep' },
  });
  expect(changed(NOT_SENT).change.transaction).toMatchObject({ reference: undefined });
});

it('an attempt without a stored card neither keeps nor drops a card', () => {
  expect(
    [APPROVED, declined('51')].map((outcome) => changed(outcome, { plain: true }).change.method),
  ).toEqual([...[undefined, undefined]]);
});

it('a checkout session may be paid again once its payment failed', () => {
  const reopenedBy = (outcome: Outcome, session: string) => {
    const { attempt } = attemptToClaim({ vault: false });
    const { record, transactionId } = attempt;
    const own = {
      id: transactionId,
      vaultedToken: undefined,
      cardFingerprint: undefined,
      ...{ capture: true, methodKind: 'CARD' as const, awaitsPayer: false },
    } as const;
    record.checkout = create(CheckoutSchema, { session });
    return attemptChange(record, own, outcome, PAUSE_S, timestampFromMs(1_000)).reopens;
  };
  const expired = { ...PENDING, kind: 'expired' } as Outcome;
  const failures = [declined('51'), NOT_SENT, expired];
  expect(failures.map((outcome) => reopenedBy(outcome, 's'))).toEqual(['s', 's', 's']);
  expect([APPROVED, PENDING, UNKNOWN].map((outcome) => reopenedBy(outcome, 's'))).toEqual(
    Array(3).fill(undefined),
  );
  expect(reopenedBy(declined('51'), '')).toBeUndefined();
});
