import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { OperationType } from '#src/payments/model/books.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { APPROVED, approved, BASE_ID, begun, claimed, learned } from './kept-payment.ts';

const providerData = create(ProviderDataSchema);
const FAILED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE', corrects: true };

const of = (transactionId: string, outcome: Outcome) =>
  ({ kind: 'outcome', transactionId, outcome, pauseS: 5 }) as const;

/** The payment after an operation succeeded. */
function operated(state: PaymentState, type: OperationType, minorUnits: bigint, id: string): PaymentState {
  return learned(begun(state, type, minorUnits, id), of(id, APPROVED)).state;
}

const CAPTURED = operated(approved(false), 'CAPTURE', 60n, 'first');

it.each<[string, PaymentState, string, string]>([
  ['fails a capture', CAPTURED, 'first', 'applied'],
  ['fails a refund', operated(approved(true), 'REFUND', 60n, 'first'), 'first', 'applied'],
  ['never fails a purchase', approved(true), BASE_ID, 'contradiction'],
  ['never fails a cancel', operated(approved(false), 'CANCEL', 1n, 'first'), 'first', 'contradiction'],
  ['waits for another operation', begun(CAPTURED, 'CAPTURE', 10n, 'second'), 'first', 'waiting'],
  [
    'does not fail a capture whose money was refunded',
    operated(CAPTURED, 'REFUND', 1n, 'second'),
    'first',
    'contradiction',
  ],
  [
    'fails a capture if the other captures cover the refunds',
    operated(operated(CAPTURED, 'CAPTURE', 40n, 'second'), 'REFUND', 40n, 'r'),
    'first',
    'applied',
  ],
])('a correction of a success %s', (_what, state, transactionId, result) => {
  const { change: made } = learned(state, of(transactionId, FAILED));
  expect(typeof made === 'string' ? made : 'applied').toBe(result);
});

/** An attempt that was declined, along with another attempt in this status. */
function declinedBeside(status?: string): PaymentState {
  const outcome: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
  const { state } = learned(claimed(true), of(BASE_ID, outcome));
  const [base] = state.transactions;
  if (!base || status === undefined) return state;
  return { ...state, transactions: [base, { ...base, id: 'other', status }] };
}

const CORRECTED: Outcome = { ...APPROVED, providerPaymentId: 'base-id', corrects: true };
it.each<[string, PaymentState, Outcome, string]>([
  ['of the declined charge is accepted', declinedBeside(), CORRECTED, 'applied'],
  ['beside another declined attempt is accepted', declinedBeside('DECLINED'), CORRECTED, 'applied'],
  [
    'that is not a correction is a contradiction',
    declinedBeside(),
    { ...APPROVED, providerPaymentId: 'base-id' },
    'contradiction',
  ],
  [
    'of another charge is a contradiction',
    declinedBeside(),
    { ...CORRECTED, providerPaymentId: 'other' },
    'contradiction',
  ],
  ['without an id is a contradiction', declinedBeside(), { ...APPROVED, corrects: true }, 'contradiction'],
  [
    'after another attempt has charged is a contradiction',
    declinedBeside('SUCCEEDED'),
    CORRECTED,
    'contradiction',
  ],
  ['waits while another attempt is open', declinedBeside('PENDING'), CORRECTED, 'waiting'],
])('an approval after a decline %s', (_what, state, outcome, result) => {
  const { change: made } = learned(state, of(BASE_ID, outcome));
  expect(typeof made === 'string' ? made : 'applied').toBe(result);
});

it('an approval corrects neither an attempt that was not sent nor an operation', () => {
  const notSent: Outcome = { kind: 'not_sent', because: 'unreachable', detail: '' };
  const { state } = learned(claimed(true), of(BASE_ID, notSent));
  expect(learned(state, of(BASE_ID, CORRECTED)).change).toBe('contradiction');
  const declined: Outcome = {
    kind: 'declined',
    providerData,
    iso8583Code: '05',
    advice: 'NONE',
    providerPaymentId: 'theirs',
  };
  const refused = learned(begun(approved(true), 'REFUND', 60n, 'first'), of('first', declined)).state;
  expect(learned(refused, of('first', { ...CORRECTED, providerPaymentId: 'theirs' })).change).toBe(
    'contradiction',
  );
});

it('an approval without the provider’s id does not correct a decline without one', () => {
  const state = declinedBeside();
  const transactions = state.transactions.map((one) => ({ ...one, providerPaymentId: undefined }));
  const { change: made } = learned({ ...state, transactions }, of(BASE_ID, { ...APPROVED, corrects: true }));
  expect(made).toBe('contradiction');
});

it('an approval after a decline is a contradiction once its payment has been released', () => {
  const state = declinedBeside();
  const released = { ...state, payment: { ...state.payment, isReleased: true } };
  expect(learned(released, of(BASE_ID, CORRECTED)).change).toBe('contradiction');
});
