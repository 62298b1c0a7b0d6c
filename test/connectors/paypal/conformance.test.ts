import type { JsonObject } from '@bufbuild/protobuf';
import type { Outcome } from '#src/connectors/connector.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import { lookUpOf, lookUpOfOperation, operationOn, redirectAttempt } from '../attempts.ts';
import { type ConformingAnswer, describeConformance } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import {
  CAPTURE_ID,
  CHECKOUT_URL,
  capturedAnswer,
  errorAnswer,
  ORDER_ID,
  orderAnswer,
  REFUND_ID,
  refundAnswer,
  tokenAnswer,
} from './answers.ts';
import { SECRETS } from './paypal-under-test.ts';

type Kind = Outcome['kind'];
const order = redirectAttempt();
const operation = operationOn(order, `${ORDER_ID}/${CAPTURE_ID}`);
const OTHER = '00000000-0000-4000-8000-000000000000';
const TINY = { currency_code: 'USD', value: '0.01' };
const EUROS = { currency_code: 'EUR', value: '3000.00' };

const answer = (name: string, outcome: Kind, body: JsonObject, status = 201) => ({
  name,
  outcome,
  answer: { status, body },
});

/** Expectation of an order that was captured, whether its capture or a look-up tells it. */
const capturedAnswers = [
  answer('a pending capture', 'pending', capturedAnswer(order, { status: 'PENDING' })),
  answer('a declined capture', 'declined', capturedAnswer(order, { status: 'DECLINED' })),
  answer('a capture given back since', 'approved', capturedAnswer(order, { status: 'REFUNDED' })),
  answer('a capture in a state that there is not', 'unknown', capturedAnswer(order, { status: 'DONE' })),
  answer('a capture of another amount', 'unknown', capturedAnswer(order, { amount: TINY })),
  answer('a capture in another currency', 'unknown', capturedAnswer(order, { amount: EUROS })),
  answer('a capture of no amount', 'unknown', capturedAnswer(order, { amount: null })),
  answer("somebody else's capture", 'unknown', capturedAnswer(order, { custom_id: OTHER })),
  answer('a capture without an id', 'unknown', capturedAnswer(order, { id: '' })),
  answer("somebody else's order", 'unknown', { ...capturedAnswer(order), id: REFUND_ID }),
  answer('an order to authorize', 'unknown', { ...capturedAnswer(order), intent: 'AUTHORIZE' }),
  answer('two captures', 'unknown', {
    ...capturedAnswer(order),
    purchase_units: ((unit) => [
      { ...unit, payments: { captures: [...unit.payments.captures, ...unit.payments.captures] } },
    ])((capturedAnswer(order).purchase_units as [{ payments: { captures: JsonObject[] } }])[0]),
  }),
  answer('an order without a unit', 'unknown', { ...capturedAnswer(order), purchase_units: [] }),
  answer(
    'an order that is complete without a capture',
    'unknown',
    orderAnswer(order, { status: 'COMPLETED' }),
  ),
];

const CALLS: readonly ConformingCall[] = [
  {
    name: 'complete',
    make: (connection) => connection.complete?.(lookUpOf(order, { reference: ORDER_ID })),
    key: `${order.transactionId}:capture`,
    approval: { status: 201, body: capturedAnswer(order) },
    answers: [
      ...capturedAnswers,
      answer('the same capture again', 'approved', capturedAnswer(order), 200),
      answer('no capture', 'unknown', orderAnswer(order, { status: 'APPROVED' })),
      answer('a decline', 'declined', errorAnswer('INSTRUMENT_DECLINED'), 422),
      answer('that it is captured already', 'unknown', errorAnswer('ORDER_ALREADY_CAPTURED'), 422),
      answer('that the payer has yet to agree', 'pending', errorAnswer('ORDER_NOT_APPROVED'), 422),
      answer('that its invoice is paid', 'unknown', errorAnswer('DUPLICATE_INVOICE_ID'), 422),
      answer('a refusal that it has no name for', 'not_sent', errorAnswer('SOMETHING_NEW'), 422),
      answer('a decline with 500', 'unknown', errorAnswer('INSTRUMENT_DECLINED'), 500),
      answer('a conflict', 'unknown', errorAnswer('CONFLICT'), 409),
      answer('too many requests', 'not_sent', errorAnswer('RATE_LIMIT_REACHED'), 429),
      answer(
        'a word that the payer has to act',
        'redirect',
        {
          ...errorAnswer('PAYER_ACTION_REQUIRED'),
          links: [{ rel: 'payer-action', href: CHECKOUT_URL }],
        },
        422,
      ),
      answer(
        'a word that the payer has to act, not where',
        'unknown',
        errorAnswer('PAYER_ACTION_REQUIRED'),
        422,
      ),
    ],
  },
  {
    name: 'refund',
    make: (connection) => connection.refund?.(operation),
    key: operation.transactionId,
    approval: { status: 201, body: refundAnswer(operation) },
    answers: refundAnswers(),
  },
  {
    name: 'lookUp',
    of: 'of an order',
    make: (connection) => connection.lookUp?.(lookUpOf(order, { reference: ORDER_ID })),
    key: ORDER_ID,
    approval: { status: 200, body: capturedAnswer(order) },
    answers: [
      ...capturedAnswers,
      answer('an order that waits', 'redirect', orderAnswer(order)),
      answer('an older kind of order that waits', 'redirect', {
        ...orderAnswer(order, { status: 'CREATED' }),
        links: [{ rel: 'approve', href: CHECKOUT_URL }],
      }),
      answer('an order that is approved', 'to_complete', orderAnswer(order, { status: 'APPROVED' })),
      answer('an order that is void', 'expired', orderAnswer(order, { status: 'VOIDED' })),
      answer('an order in a state that there is not', 'unknown', orderAnswer(order, { status: 'DONE' })),
      answer('a 404 while the order may live', 'unknown', errorAnswer('INVALID_RESOURCE_ID'), 404),
      answer('a refusal', 'unknown', errorAnswer('PERMISSION_DENIED'), 403),
    ],
  },
  {
    name: 'lookUp',
    of: 'of a refund',
    make: (connection) =>
      connection.lookUp?.(lookUpOfOperation('refund', operation, { reference: REFUND_ID })),
    key: REFUND_ID,
    approval: { status: 200, body: refundAnswer(operation) },
    answers: refundAnswers().filter(({ outcome }) => outcome !== 'not_sent'),
  },
];

function refundAnswers(): ConformingCall['answers'] {
  return [
    answer('a pending refund', 'pending', refundAnswer(operation, { status: 'PENDING' })),
    answer('a failed refund', 'declined', refundAnswer(operation, { status: 'FAILED' })),
    answer('a refund in a state that there is not', 'unknown', refundAnswer(operation, { status: 'DONE' })),
    answer('a refund of another amount', 'unknown', refundAnswer(operation, { amount: TINY })),
    answer('a refund in another currency', 'unknown', refundAnswer(operation, { amount: EUROS })),
    answer("somebody else's refund", 'unknown', refundAnswer(operation, { custom_id: OTHER })),
    answer('a refund without an id', 'unknown', refundAnswer(operation, { id: null })),
    answer('that it is more than was paid', 'not_sent', errorAnswer('REFUND_AMOUNT_EXCEEDED'), 422),
  ];
}

describeConformance({
  connector: paypalConnector,
  settings: (baseUrl, timeoutMs) => ({ base_url: baseUrl, timeout_ms: timeoutMs }),
  secrets: SECRETS,
  attempt: redirectAttempt,
  approval: (attempt) => ({ status: 201, body: orderAnswer(attempt) }),
  accessToken: tokenAnswer,
  paid: 'redirect',
  lost: 'not_sent',
  probeAnswer: { status: 404, body: errorAnswer('INVALID_RESOURCE_ID') },
  calls: CALLS,
  answers: [
    row('redirect', 'a new order', (_, approval) => ({ status: 201, body: approval })),
    row('redirect', 'the same order again', (_, approval) => ({ status: 200, body: approval })),
    ...[400, 403, 404, 422, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, () => ({ status, body: errorAnswer('NO') })),
    ),
    row('declined', 'a decline', () => ({ status: 422, body: errorAnswer('PAYER_CANNOT_PAY') })),
    row('unknown', 'an order that is approved before anybody was sent there', (_, approval) => ({
      status: 201,
      body: { ...approval, status: 'APPROVED' },
    })),
    row('unknown', 'an order that is paid before anybody was sent there', (attempt) => ({
      status: 201,
      body: capturedAnswer(attempt),
    })),
    ...['javascript:alert(1)', ''].map((href) =>
      row('unknown', `an order whose address is no web address: "${href}"`, (_, approval) => ({
        status: 201,
        body: { ...approval, links: [{ rel: 'payer-action', href }] },
      })),
    ),
    ...Object.entries({ amount: TINY, custom_id: OTHER, invoice_id: OTHER, reference_id: OTHER }).map(
      ([field, value]) =>
        row('unknown', `an order whose ${field} is another`, (_, approval) => ({
          status: 201,
          body: {
            ...approval,
            purchase_units: [{ ...(approval.purchase_units as [JsonObject])[0], [field]: value }],
          },
        })),
    ),
    row('unknown', 'an order without an id', (_, approval) => ({
      status: 201,
      body: { ...approval, id: '' },
    })),
  ],
});

function row(outcome: Kind, name: string, made: ConformingAnswer['answer']): ConformingAnswer {
  return { outcome, name, answer: made };
}
