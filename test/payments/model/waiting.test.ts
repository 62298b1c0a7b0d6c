import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { Payment_Status, Payment_SubStatus_Value, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { TransactionInState, TransactionRow } from '#src/payments/model/state.ts';
import { endOf, isNothingNew, NO_LOOK_UP, timeLeftMs, withoutLookUp } from '#src/payments/model/waiting.ts';
import { UNKNOWN } from '../../support/outcomes.ts';
import { APPROVED, claimed } from './kept-payment.ts';

const SHOWN = create(ProviderDataSchema, { id: 'shown' });
const OTHER = create(ProviderDataSchema, { id: 'other' });
const PENDING = { kind: 'pending', providerData: SHOWN } as const;
const REDIRECT = {
  kind: 'awaits_payer',
  providerData: OTHER,
  show: { page: 'https://wallet.example' },
} as const;
const TO_COMPLETE = { kind: 'to_complete', providerData: OTHER } as const;
const EXPIRED: Outcome = { kind: 'expired', providerData: OTHER };

type Shown = { readonly isPlain?: boolean; readonly subStatus?: Payment_SubStatus_Value };

/** A claimed attempt with these columns, as its record shows it. */
function found(over: Partial<TransactionRow> = {}, { isPlain, subStatus }: Shown = {}): TransactionInState {
  const state = claimed(true);
  const [own] = state.transactions;
  if (!own) throw new Error('there is no attempt');
  for (const one of state.record.transactionsHistory) one.providerData = isPlain ? undefined : SHOWN;
  const record = {
    ...state.record,
    ...(over.status === 'CREATED' && { status: Payment_Status.READY_TO_PAY }),
    subStatus: subStatus ?? state.record.subStatus,
  };
  return {
    ...state,
    record,
    transaction: { ...own, reference: undefined, providerPaymentId: undefined, ...over },
  };
}

const CHALLENGED = { subStatus: Payment_SubStatus_Value.WAITING_ADDITIONAL_STEP };
const AWAY = { awaitsPayer: true };

it.each<[string, Outcome, TransactionInState, boolean]>([
  ['an unknown outcome of an attempt without a response', UNKNOWN, found({ awaitsResponse: true }), true],
  ['an approval', APPROVED, found(), false],
  ['an approval with the data already shown', { ...APPROVED, providerData: SHOWN }, found(), false],
  ['a redirect of an attempt', REDIRECT, found(), false],
  ['a payer’s agreement to an attempt with a response', TO_COMPLETE, found(), true],
  [
    'a payer’s agreement to an attempt without a response',
    TO_COMPLETE,
    found({ awaitsResponse: true }),
    false,
  ],
  ['a decision still to come, with the data already shown', PENDING, found(), true],
  ['a decision still to come, with other data', { ...PENDING, providerData: OTHER }, found(), false],
  ['a decision still to come, when no data is shown', PENDING, found({}, { isPlain: true }), false],
  [
    'a decision still to come, of an attempt without a response',
    PENDING,
    found({ awaitsResponse: true }),
    false,
  ],
  ['an approval after a redirect', APPROVED, found({ ...AWAY, status: 'CREATED' }), false],
  ['a payer’s agreement after a redirect', TO_COMPLETE, found({ ...AWAY, status: 'CREATED' }), true],
  ['a repeated redirect', REDIRECT, found({ ...AWAY, status: 'CREATED' }), true],
  [
    'the first decision still to come after a redirect',
    PENDING,
    found({ ...AWAY, status: 'CREATED' }),
    false,
  ],
  ['the first decision still to come after a challenge', PENDING, found(AWAY, CHALLENGED), false],
  ['a repeated decision still to come', PENDING, found(AWAY), true],
  ['an approval after the payer came back', APPROVED, found(AWAY), false],
  ['a decision still to come on an expired payment', PENDING, found({ ...AWAY, status: 'EXPIRED' }), false],
  ['a first reference', { ...PENDING, reference: 'theirs' }, found(AWAY), false],
  [
    'a repeated reference',
    { ...PENDING, reference: 'theirs' },
    found({ ...AWAY, reference: 'theirs' }),
    true,
  ],
  [
    'a decision still to come on a refund',
    { ...PENDING, providerData: OTHER },
    found({ type: 'REFUND' }),
    true,
  ],
])('the result of a check that adds nothing is not written: %s', (_what, outcome, about, isNothing) => {
  expect(isNothingNew(outcome, about, false)).toBe(isNothing);
});

it('the last check in a payer’s time writes that the payer has yet to act', () => {
  expect(isNothingNew(REDIRECT, found({ ...AWAY, status: 'CREATED' }), true)).toBe(false);
});

it('only a payment’s own attempt has a limited time for its payer', () => {
  const left = (over: Partial<TransactionRow>) => timeLeftMs(found(over));
  expect(left({ payerTimeLeftMs: -1 })).toBe(-1);
  expect(left({ payerTimeLeftMs: undefined, type: 'REFUND' })).toBe(Number.POSITIVE_INFINITY);
});

const AT_WALLET = found({ ...AWAY, status: 'CREATED' });
const SILENT: Outcome = { ...UNKNOWN, providerData: OTHER };
it.each<[string, Outcome, TransactionInState, boolean, Outcome]>([
  ['keeps a known outcome', APPROVED, AT_WALLET, true, APPROVED],
  ['keeps an unknown outcome of an attempt without a payer', UNKNOWN, found(), true, UNKNOWN],
  ['waits while the payer has time', NO_LOOK_UP, AT_WALLET, false, NO_LOOK_UP],
  ['expires after the payer’s time', NO_LOOK_UP, AT_WALLET, true, { ...EXPIRED, providerData: SHOWN }],
  ['never expires once the payer came back', UNKNOWN, AT_WALLET, true, PENDING],
  ['shows the data of an inconclusive return', SILENT, AT_WALLET, true, { ...PENDING, providerData: OTHER }],
  [
    'shows no data when none is known',
    UNKNOWN,
    found({ ...AWAY, status: 'CREATED' }, { isPlain: true }),
    true,
    { ...PENDING, providerData: create(ProviderDataSchema) },
  ],
  ['waits for a challenged payer who came back', UNKNOWN, found(AWAY, CHALLENGED), false, PENDING],
])('a payment without a look-up %s', (_what, reported, about, isLast, outcome) => {
  expect(withoutLookUp(reported, about, isLast)).toEqual(outcome);
});

it('at the end of a payer’s time, only a redirect expires', () => {
  expect([REDIRECT, PENDING, APPROVED].map(endOf)).toEqual([EXPIRED, PENDING, APPROVED]);
});
