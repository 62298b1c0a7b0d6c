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
import { chargeAnswer, declinedAnswer, enrollmentAnswer, ID, orderAnswer } from './answers.ts';

const charge = cardAttempt();
const authorization = cardAttempt();
const order = redirectAttempt();
const enrollment = enrollmentAttempt();
const operation = operationOn(charge, `ch_${ID}`);

function answerTo(object: string, idempotencyKey: string): JsonObject {
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

/** The provider's answers to an operation, but for the approval. */
function operationAnswers(approval: JsonObject): ConformingCall['answers'] {
  const failed = { ...approval, status: 'failed', response_code: '05', failure_code: 'declined' };
  const row = (name: string, outcome: ConformingCall['answers'][number]['outcome'], change: object) => ({
    name,
    outcome,
    answer: { status: 201, body: { ...approval, ...change } },
  });
  return [
    { name: 'a failure', outcome: 'declined', answer: { status: 402, body: failed } },
    row('a failure with 201', 'declined', failed),
    row('a pending one', 'pending', { status: 'pending' }),
    row('another amount', 'unknown', { amount: 1 }),
    row('another currency', 'unknown', { currency: 'EUR' }),
    row('another key', 'unknown', { idempotency_key: 'another' }),
    row('another kind', 'unknown', { object: 'charge' }),
    row('a status that there is not', 'unknown', { status: 'received' }),
    row('a success that tells a failure', 'unknown', { response_code: '05' }),
    { name: 'a success with 402', outcome: 'unknown', answer: { status: 402, body: approval } },
    {
      name: 'a refusal',
      outcome: 'not_sent',
      answer: { status: 404, body: { error: { type: 'not_found', message: 'no' } } },
    },
    {
      name: 'a conflict',
      outcome: 'unknown',
      answer: { status: 409, body: { error: { type: 'idempotency_conflict', message: 'no' } } },
    },
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
      ...operationAnswers(approval),
      {
        name: 'a failure of another amount',
        outcome: name === 'cancel' ? 'declined' : 'unknown',
        answer: { status: 402, body: failedOnNothing },
      },
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
    ...operationAnswers(completed),
    {
      name: 'the reason why it cannot be completed',
      outcome: 'unknown',
      answer: {
        status: 402,
        body: { ...completed, status: 'failed', response_code: '57', failure_code: 'not_completable' },
      },
    },
  ],
};

type LookUpAnswer = readonly [
  name: string,
  outcome: ConformingCall['answers'][number]['outcome'],
  body: JsonObject,
];

function lookUp(
  of: string,
  query: ReturnType<typeof lookUpOf>,
  approval: JsonObject,
  answers: readonly LookUpAnswer[],
): ConformingCall {
  const key = query.transactionId;
  return {
    name: 'lookUp',
    of,
    make: (connection) => connection.lookUp?.(query),
    key,
    approval: { status: 200, body: approval },
    answers: [
      ...answers.map(([name, outcome, body]) => ({ name, outcome, answer: { status: 200, body } })),
      {
        name: 'a 404: it has not heard of it yet',
        outcome: 'unknown',
        answer: { status: 404, body: { error: { type: 'not_found', message: 'no' } } },
      },
      {
        name: 'a refusal',
        outcome: 'unknown',
        answer: { status: 401, body: { error: { type: 'authentication', message: 'no' } } },
      },
      {
        name: 'its word that it never happened and never will',
        outcome: 'not_sent',
        answer: { status: 200, body: { object: 'closed', id: `cl_${ID}`, idempotency_key: key } },
      },
    ],
  };
}

const approvedCharge = chargeAnswer(charge);
const authorized = { ...chargeAnswer(authorization), captured: false };
const paid = { ...orderAnswer(order), status: 'paid' };
const refunded = answerTo('refund', operation.transactionId);

/** The calls beside `pay` that the sandbox connector makes. */
export const CALLS: readonly ConformingCall[] = [
  ...made,
  completion,
  lookUp('of a charge', lookUpOf(charge), approvedCharge, [
    ['a decline', 'declined', declinedAnswer(charge, '51')],
    ['an expired challenge', 'expired', { ...approvedCharge, status: 'expired', response_code: null }],
    ['a pending charge', 'pending', { ...approvedCharge, status: 'pending' }],
    ['a charge that was only authorized', 'unknown', { ...approvedCharge, captured: false }],
  ]),
  lookUp('of an authorization', lookUpOf(withoutCapture(authorization)), authorized, [
    ['an authorization captured since', 'approved', { ...authorized, captured: true }],
    ['an authorization canceled since', 'approved', { ...authorized, status: 'canceled' }],
    ['an authorization that lapsed', 'expired', { ...authorized, status: 'expired' }],
  ]),
  lookUp('of a redirect', lookUpOf(order), paid, [
    ['an order that nobody paid yet', 'redirect', orderAnswer(order)],
    ['an order that is to be completed', 'to_complete', { ...paid, status: 'payer_approved' }],
    ['an order that was declined', 'declined', { ...paid, status: 'declined' }],
    ['an order that its payer canceled', 'declined', { ...paid, status: 'canceled' }],
    ['an order that expired', 'expired', { ...paid, status: 'expired' }],
    ['an order in a state that there is not', 'unknown', { ...paid, status: 'processing' }],
  ]),
  lookUp('of an enrollment', lookUpOf(enrollment), { ...enrollmentAnswer(enrollment), status: 'paid' }, [
    ['a pending one', 'pending', enrollmentAnswer(enrollment)],
    ['a decline', 'declined', { ...enrollmentAnswer(enrollment), status: 'declined' }],
  ]),
  lookUp('of a refund', lookUpOfOperation('refund', operation), refunded, [
    ['a pending one', 'pending', { ...refunded, status: 'pending' }],
    ['one that failed', 'declined', { ...refunded, status: 'failed', response_code: '05' }],
    ['a capture', 'unknown', { ...refunded, object: 'capture' }],
  ]),
];

function withoutCapture(attempt: typeof charge): typeof charge {
  if (attempt.method.kind !== 'card') throw new Error('not a card');
  return { ...attempt, method: { ...attempt.method, capture: false } };
}
