import type { JsonObject } from '@bufbuild/protobuf';
import {
  cardAttempt,
  enrollmentAttempt,
  lookUpOf,
  lookUpOfOperation,
  operationOn,
  redirectAttempt,
} from '../attempts.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { answer } from '../conforming-answers.ts';
import { chargeAnswer, declinedAnswer, enrollmentAnswer, ID, orderAnswer, refusal } from './answers.ts';

const charge = cardAttempt();
const authorization = cardAttempt(undefined, {}, { capture: false });
const order = redirectAttempt();
const enrollment = enrollmentAttempt();
/** An operation on an authorization. */
export const operation = operationOn(charge, `ch_${ID}`);

/** The provider's response to an operation. */
export function answerTo(object: string, idempotencyKey: string): JsonObject {
  return {
    object,
    id: `xx_${ID}`,
    payment: `ch_${ID}`,
    idempotency_key: idempotencyKey,
    account: 'acct_sandbox',
    acquirer: 'ONE',
    status: 'succeeded',
    response_code: '00',
    failure_code: null,
    amount: Number(operation.money.minorUnits),
    currency: operation.money.currency,
    created_at: '2026-11-21T10:00:00.000Z',
  };
}

/**
 * The provider's responses to an operation, except the approval.
 *
 * @param withOtherMoney the outcome of a success with another amount or currency.
 */
function operationAnswers(
  approval: JsonObject,
  withOtherMoney: 'approved' | 'unknown',
): ConformingCall['answers'] {
  const failed = { ...approval, status: 'failed', response_code: '05', failure_code: 'declined' };
  return [
    answer('declined', 'a failure', failed, 402),
    answer('declined', 'a failure with 201', failed, 201),
    answer('unknown', 'a failure with the code of a success', { ...failed, response_code: '00' }, 201),
    answer('pending', 'a pending result', { ...approval, status: 'pending' }, 201),
    answer(withOtherMoney, 'another amount', { ...approval, amount: 1 }, 201),
    answer(withOtherMoney, 'another currency', { ...approval, currency: 'EUR' }, 201),
    answer('unknown', 'another key', { ...approval, idempotency_key: 'another' }, 201),
    answer('unknown', 'another kind', { ...approval, object: 'charge' }, 201),
    answer('unknown', 'an unknown status', { ...approval, status: 'received' }, 201),
    answer('unknown', 'a success that reports a failure', { ...approval, response_code: '05' }, 201),
    answer('unknown', 'a success with 402', approval, 402),
    answer('not_sent', 'a refusal', refusal('not_found'), 404),
    answer('unknown', 'a conflict', refusal('idempotency_conflict'), 409),
  ];
}

const made = (['capture', 'cancel', 'refund'] as const).map((name): ConformingCall => {
  const object = name === 'cancel' ? 'cancellation' : name;
  const approval = answerTo(object, operation.transactionId);
  const failedOnNothing = { ...approval, amount: 0, status: 'failed', response_code: '57' };
  return {
    name,
    make: (connection) => connection[name]?.(operation),
    key: operation.transactionId,
    approval: { status: 201, body: approval },
    answers: [
      ...operationAnswers(approval, 'approved'),
      answer('declined', 'a failure of another amount', failedOnNothing, 402),
    ],
  };
});

const completionKey = `${order.transactionId}-complete`;
const completed = answerTo('completion', completionKey);
const completion: ConformingCall = {
  name: 'complete',
  make: (connection) => connection.complete?.(lookUpOf(order, { reference: `wo_${ID}` })),
  key: completionKey,
  approval: { status: 201, body: completed },
  answers: [
    ...operationAnswers(completed, 'unknown'),
    answer(
      'unknown',
      'the reason why the order cannot be completed',
      { ...completed, status: 'failed', response_code: '57', failure_code: 'not_completable' },
      402,
    ),
  ],
};

function lookUp(
  of: string,
  query: ReturnType<typeof lookUpOf>,
  approval: JsonObject,
  answers: ConformingCall['answers'],
): ConformingCall {
  const key = query.transactionId;
  return {
    name: 'lookUp',
    of,
    make: (connection) => connection.lookUp?.(query),
    key,
    approval: { status: 200, body: approval },
    answers: [
      ...answers,
      answer('unknown', 'a 404: it has not received the request yet', refusal('not_found'), 404),
      answer('unknown', 'a refusal', refusal('authentication'), 401),
      answer('unknown', 'confirmation that another request never happened and never will', {
        object: 'closed',
        id: `cl_${ID}`,
        idempotency_key: 'another',
      }),
      answer('not_sent', 'confirmation that it never happened and never will', {
        object: 'closed',
        id: `cl_${ID}`,
        idempotency_key: key,
      }),
    ],
  };
}

const approvedCharge = chargeAnswer(charge);
const authorized = { ...chargeAnswer(authorization), captured: false };
const paid = { ...orderAnswer(order), status: 'paid' };
const refunded = answerTo('refund', operation.transactionId);

/** The sandbox connector's calls other than `pay`. */
export const CALLS: readonly ConformingCall[] = [
  ...made,
  completion,
  lookUp('of a charge', lookUpOf(charge), approvedCharge, [
    answer('declined', 'a decline', declinedAnswer(charge, '51')),
    answer('expired', 'an expired challenge', { ...approvedCharge, status: 'expired', response_code: null }),
    answer('pending', 'a pending charge', { ...approvedCharge, status: 'pending' }),
    answer('unknown', 'a charge that was only authorized', { ...approvedCharge, captured: false }),
  ]),
  lookUp('of an authorization', lookUpOf(authorization), authorized, [
    answer('approved', 'an authorization captured since', { ...authorized, captured: true }),
    answer('approved', 'an authorization canceled since', { ...authorized, status: 'canceled' }),
    answer('expired', 'an authorization that lapsed', { ...authorized, status: 'expired' }),
  ]),
  lookUp('of a redirect', lookUpOf(order), paid, [
    answer('awaits_payer', 'an order that nobody has paid yet', orderAnswer(order)),
    answer('to_complete', 'an order that is ready for completion', { ...paid, status: 'payer_approved' }),
    answer('declined', 'an order that was declined', { ...paid, status: 'declined' }),
    answer('declined', 'an order that its payer canceled', { ...paid, status: 'canceled' }),
    answer('expired', 'an order that expired', { ...paid, status: 'expired' }),
    answer('unknown', 'an order in an unknown state', { ...paid, status: 'processing' }),
  ]),
  lookUp('of an enrollment', lookUpOf(enrollment), { ...enrollmentAnswer(enrollment), status: 'paid' }, [
    answer('pending', 'a pending result', enrollmentAnswer(enrollment)),
    answer('declined', 'a decline', { ...enrollmentAnswer(enrollment), status: 'declined' }),
  ]),
  lookUp('of a refund', lookUpOfOperation('refund', operation), refunded, [
    answer('pending', 'a pending result', { ...refunded, status: 'pending' }),
    answer('declined', 'a failed refund', { ...refunded, status: 'failed', response_code: '05' }),
    answer('unknown', 'a capture', { ...refunded, object: 'capture' }),
  ]),
];
