import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { cardAttempt, lookUpOf, lookUpOfOperation, operationOn } from '../attempts.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { answer, changed, row } from '../conforming-answers.ts';
import { PAYMENT_ID, paymentAnswer, refusal, searchAnswer } from './answers.ts';
import { methodsByBin } from './fake-cards.ts';
import { MONEY } from './mercado-pago-under-test.ts';

const ANOTHER = '00000000-0000-4000-8000-000000000000';
const reference = `/${PAYMENT_ID}`;

/** An attempt by card in pesos. */
export function cardInPesos(over: Partial<PaymentAttempt> = {}, options = {}): PaymentAttempt {
  return cardAttempt('4509953566233704', { money: MONEY, country: 'AR', ...over }, options);
}

/** The responses to the requests of an attempt that contain no id of ours: for the card's token, and for its method. */
export function cardPreparation(request: string): { status: number; body: JsonObject } | undefined {
  if (request.startsWith('POST /v1/card_tokens '))
    return { status: 201, body: { id: 'a1b2c3', status: 'active' } };
  const bin = /^GET \/v1\/payment_methods\/search\?bin=(\d+) /.exec(request)?.[1];
  return bin === undefined ? undefined : { status: 200, body: methodsByBin(bin) };
}

const authorized = cardInPesos({}, { capture: false });
const operation = operationOn(authorized, reference);

/** The payment of an authorization after an operation. */
const after = (over: JsonObject) => paymentAnswer(authorized, over);

/** The calls on authorizations, and the look-ups of cards. */
export const CARD_CALLS: readonly ConformingCall[] = [
  operate('capture', { status: 'approved' }, [
    answer('approved', 'another amount', after({ transaction_amount: 1000 })),
    answer('unknown', 'an authorization that is canceled', after({ status: 'cancelled' })),
    answer('declined', 'a rejection', after({ status: 'rejected' })),
    answer('pending', 'a payment in process', after({ status: 'in_process' })),
  ]),
  operate('cancel', { status: 'cancelled' }, [
    answer('unknown', 'an authorization that is captured', after({ status: 'approved' })),
  ]),
  lookUp('an authorization', lookUpOf(authorized, { reference }), { status: 'authorized' }, [
    found('approved', 'a capture of a part', { status: 'approved', transaction_amount: 1 }),
    found('expired', 'a canceled authorization', { status: 'cancelled' }),
    found('declined', 'a rejection', { status: 'rejected', status_detail: 'cc_rejected_high_risk' }),
    found('pending', 'a payment in review', { status: 'in_process' }),
    found('unknown', 'another amount', { status: 'authorized', transaction_amount: 1 }),
    found('unknown', 'a larger amount', { status: 'approved', transaction_amount: 9999 }),
  ]),
  lookUp('a capture', lookUpOfOperation('capture', operation), { status: 'approved' }, [
    found('not_sent', 'a canceled authorization', { status: 'cancelled' }),
    found('approved', 'another amount', { status: 'approved', transaction_amount: 1000 }),
    found('unknown', 'another payment', { external_reference: ANOTHER }),
  ]),
  lookUp('a cancel', lookUpOfOperation('cancel', operation), { status: 'cancelled' }, [
    found('not_sent', 'a captured authorization', { status: 'approved' }),
  ]),
  {
    ...lookUp('a card by our reference', lookUpOf(authorized), { status: 'authorized' }, []),
    key: authorized.transactionId,
    approval: { status: 200, body: searchAnswer(after({ status: 'authorized' })) },
    answers: [
      answer('unknown', 'nothing', searchAnswer()),
      answer('expired', 'a canceled authorization', searchAnswer(after({ status: 'cancelled' }))),
    ],
  },
];

function found(outcome: Outcome['kind'], name: string, over: JsonObject) {
  return answer(outcome, name, after(over));
}

function operate(
  kind: 'capture' | 'cancel',
  done: JsonObject,
  answers: ConformingCall['answers'],
): ConformingCall {
  return {
    name: kind,
    make: (connection) => connection[kind]?.(operation),
    key: `x-idempotency-key: ${operation.transactionId}`,
    approval: { status: 200, body: after(done) },
    answers: [
      ...answers,
      ...[400, 401, 403, 404, 422].map((status) =>
        answer('not_sent', `a refusal with ${status}`, refusal(status), status),
      ),
      ...[409, 423, 429].map((status) =>
        answer('unknown', `a refusal with ${status}`, refusal(status), status),
      ),
      answer('unknown', "a proxy's 403", { message: 'no' }, 403),
      answer('unknown', 'an authorization that is still open', after({ status: 'authorized' })),
      answer('unknown', 'an unknown status', after({ status: 'done' })),
      answer('unknown', 'another payment', after({ ...done, external_reference: ANOTHER })),
      answer('unknown', 'another currency of the payment', after({ ...done, currency_id: 'USD' })),
    ],
  };
}

function lookUp(
  of: string,
  query: ReturnType<typeof lookUpOf>,
  done: JsonObject,
  answers: ConformingCall['answers'],
): ConformingCall {
  return {
    name: 'lookUp',
    of,
    make: (connection) => connection.lookUp?.(query),
    key: `GET /v1/payments/${PAYMENT_ID}`,
    approval: { status: 200, body: after(done) },
    answers: [
      ...answers,
      answer('unknown', 'a refusal', refusal(401), 401),
      answer('unknown', 'no such payment', refusal(404), 404),
      answer('unknown', 'another account', after({ ...done, collector_id: 1 })),
    ],
  };
}

/** The responses to a purchase by card. */
export const CARD_ANSWERS = [
  changed('approved', 'a charge', {}),
  changed('declined', 'a rejection', {
    status: 'rejected',
    status_detail: 'cc_rejected_insufficient_amount',
  }),
  changed('declined', 'a rejection for an unknown reason', {
    status: 'rejected',
    status_detail: 'accredited',
  }),
  changed('declined', 'a cancellation', { status: 'cancelled', status_detail: 'by_collector' }),
  changed('pending', 'a payment in review', { status: 'in_process', status_detail: 'pending_review_manual' }),
  changed('pending', 'a challenge that was not requested', {
    status: 'pending',
    status_detail: 'pending_challenge',
  }),
  changed('pending', 'an authorization that was not requested', { status: 'authorized' }),
  ...[400, 401, 403, 404, 422].map((status) =>
    row('not_sent', `a refusal with ${status}`, refusal(status), status),
  ),
  ...[409, 423, 424, 429, 500].map((status) =>
    row('unknown', `a refusal with ${status}`, refusal(status), status),
  ),
  row('unknown', 'a refusal that is not in the provider’s form', { message: 'proxy says no' }, 403),
  ...Object.entries({
    'another reference': { external_reference: ANOTHER },
    'another account': { collector_id: 987654321 },
    'another amount': { transaction_amount: 1 },
    'another currency': { currency_id: 'USD' },
    'no id': { id: null },
  }).flatMap(([name, change]) => [
    changed('unknown', `an approval with ${name}`, change),
    changed('unknown', `a rejection with ${name}`, { ...change, status: 'rejected' }),
  ]),
  changed('unknown', 'an unknown status', { status: 'accredited' }),
];
