import type { JsonObject } from '@bufbuild/protobuf';
import { readOrder, readTransaction } from '#src/connectors/paypal/answers.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import { fromOrder, fromRefund } from '#src/connectors/paypal/from-provider.ts';
import { lookUpOf, lookUpOfOperation, operationOn, redirectAttempt } from '../attempts.ts';
import { describeConformance } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { answer, changed, row } from '../conforming-answers.ts';
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

const order = redirectAttempt();
const operation = operationOn(order, `${ORDER_ID}/${CAPTURE_ID}`);
const SHOWN_AS = { providerId: 'PAYPAL', accountId: undefined };
const SECOND_ID = '4D779367HI019004G';
const OTHER = '00000000-0000-4000-8000-000000000000';
const TINY = { currency_code: 'USD', value: '0.01' };
const EUROS = { currency_code: 'EUR', value: '3000.00' };

type Units = [JsonObject & { payments: { captures: JsonObject[] } }];
const unitsOf = (answered: JsonObject) => answered.purchase_units as Units;

/** A captured order with a change to its unit, and with further captures before its own. */
function withUnit(change: object, ...others: JsonObject[]): object {
  const answered = capturedAnswer(order);
  const [unit] = unitsOf(answered);
  const [capture] = unit.payments.captures;
  const captures = [...others.map((other) => ({ ...capture, ...other })), ...unit.payments.captures];
  return { ...answered, purchase_units: [{ ...unit, ...change, payments: { captures } }] };
}

/** Errors that only resemble PayPal's: a proxy's, for example. */
const PROXY_ERRORS = [
  { name: 'FORBIDDEN' },
  { message: 'no' },
  { error: 'forbidden' },
  { error_description: 'no' },
].map((body) => answer('unknown', `a refusal with only ${Object.keys(body)}`, body, 403));

/** Expectations for a captured order, in the response to its capture or to a look-up. */
const capturedAnswers = [
  answer('pending', 'a pending capture', capturedAnswer(order, { status: 'PENDING' })),
  answer('declined', 'a declined capture', capturedAnswer(order, { status: 'DECLINED' })),
  answer('approved', 'a capture refunded since', capturedAnswer(order, { status: 'REFUNDED' })),
  answer('unknown', 'a capture in an unknown state', capturedAnswer(order, { status: 'DONE' })),
  answer('unknown', 'a capture of another amount', capturedAnswer(order, { amount: TINY })),
  answer('unknown', 'a capture in another currency', capturedAnswer(order, { amount: EUROS })),
  answer('unknown', 'a capture without an amount', capturedAnswer(order, { amount: null })),
  answer('unknown', "someone else's capture", capturedAnswer(order, { custom_id: OTHER })),
  answer('unknown', 'a capture without an id', capturedAnswer(order, { id: '' })),
  answer('unknown', "someone else's order", { ...capturedAnswer(order), id: REFUND_ID }),
  answer('approved', 'an order without an intent', { ...capturedAnswer(order), intent: undefined }),
  answer('approved', 'our ids in the capture alone', withUnit({ reference_id: undefined })),
  answer('unknown', "our capture in someone else's order", withUnit({ reference_id: OTHER })),
  answer(
    'unknown',
    "our capture next to someone else's decline",
    withUnit({ reference_id: undefined }, { status: 'DECLINED', custom_id: OTHER }),
  ),
  answer(
    'approved',
    'a capture after two that failed',
    withUnit({}, { status: 'FAILED' }, { status: 'DECLINED' }),
  ),
  answer('unknown', 'two units', {
    ...capturedAnswer(order),
    purchase_units: [...unitsOf(capturedAnswer(order)), ...unitsOf(capturedAnswer(order))],
  }),
  answer('unknown', 'an order to authorize', { ...capturedAnswer(order), intent: 'AUTHORIZE' }),
  answer('unknown', 'two captures', withUnit({}, {})),
  answer('unknown', 'an order without a unit', { ...capturedAnswer(order), purchase_units: [] }),
  answer(
    'unknown',
    'an order that is complete without a capture',
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
      answer('approved', 'the same capture again', capturedAnswer(order), 200),
      answer('unknown', 'no capture', orderAnswer(order, { status: 'APPROVED' })),
      answer('declined', 'a decline', errorAnswer('INSTRUMENT_DECLINED'), 422),
      answer(
        'unknown',
        'the error that the order is already captured',
        errorAnswer('ORDER_ALREADY_CAPTURED'),
        422,
      ),
      answer(
        'pending',
        'the error that the payer has not agreed yet',
        errorAnswer('ORDER_NOT_APPROVED'),
        422,
      ),
      answer(
        'unknown',
        'the error that the invoice is already paid',
        errorAnswer('DUPLICATE_INVOICE_ID'),
        422,
      ),
      answer('unknown', 'an unknown refusal, and no order', errorAnswer('SOMETHING_NEW'), 422),
      answer('unknown', 'a decline with 500', errorAnswer('INSTRUMENT_DECLINED'), 500),
      answer('unknown', 'a conflict', errorAnswer('CONFLICT'), 409),
      answer('not_sent', 'too many requests', errorAnswer('RATE_LIMIT_REACHED'), 429),
      ...PROXY_ERRORS,
      answer(
        'awaits_payer',
        'a request for the payer to act',
        {
          ...errorAnswer('PAYER_ACTION_REQUIRED'),
          links: [{ rel: 'payer-action', href: CHECKOUT_URL }],
        },
        422,
      ),
      answer(
        'unknown',
        'a request for the payer to act, without a URL',
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
      answer('awaits_payer', 'an order that waits', orderAnswer(order)),
      answer('awaits_payer', 'an order that was saved', orderAnswer(order, { status: 'SAVED' })),
      answer('awaits_payer', 'an older kind of order that waits', {
        ...orderAnswer(order, { status: 'CREATED' }),
        links: [{ rel: 'approve', href: CHECKOUT_URL }],
      }),
      answer('to_complete', 'an order that is approved', orderAnswer(order, { status: 'APPROVED' })),
      answer('unknown', 'an approved order without any of our ids', {
        ...orderAnswer(order, { status: 'APPROVED' }),
        purchase_units: unitsOf(orderAnswer(order)).map(({ amount }) => ({ amount })) as JsonObject[],
      }),
      answer('expired', 'an order that is void', orderAnswer(order, { status: 'VOIDED' })),
      answer('unknown', 'an order in an unknown state', orderAnswer(order, { status: 'DONE' })),
      answer('unknown', 'a 404 while the order may still exist', errorAnswer('INVALID_RESOURCE_ID'), 404),
      answer('unknown', 'a refusal', errorAnswer('PERMISSION_DENIED'), 403),
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
    answer('pending', 'a pending refund', refundAnswer(operation, { status: 'PENDING' })),
    answer('declined', 'a failed refund', refundAnswer(operation, { status: 'FAILED' })),
    answer('unknown', 'a refund in an unknown state', refundAnswer(operation, { status: 'DONE' })),
    answer('approved', 'a refund of another amount', refundAnswer(operation, { amount: TINY })),
    answer('approved', 'a refund in another currency', refundAnswer(operation, { amount: EUROS })),
    answer('unknown', "someone else's refund", refundAnswer(operation, { custom_id: OTHER })),
    answer('unknown', 'a refund without an id', refundAnswer(operation, { id: null })),
    answer(
      'not_sent',
      'the error that the refund exceeds the payment',
      errorAnswer('REFUND_AMOUNT_EXCEEDED'),
      422,
    ),
  ];
}

describeConformance({
  connector: paypalConnector,
  settings: (baseUrl, timeoutMs) => ({ base_url: baseUrl, timeout_ms: timeoutMs }),
  secrets: SECRETS,
  attempt: redirectAttempt,
  approval: (attempt) => ({ status: 201, body: orderAnswer(attempt) }),
  accessToken: tokenAnswer,
  closing: { query: lookUpOf(order, { reference: ORDER_ID }), answer: () => orderAnswer(order) },
  secondCharge: {
    recorded: CAPTURE_ID,
    report: async (connection) =>
      connection.lookUp?.(
        lookUpOf(order, { reference: `${ORDER_ID}/${CAPTURE_ID}`, hint: { providerPaymentId: SECOND_ID } }),
      ),
    answer: (request) =>
      request.includes(`/captures/${SECOND_ID}`)
        ? refundAnswer(order, { id: SECOND_ID })
        : capturedAnswer(order),
  },
  paid: 'awaits_payer',
  lost: 'not_sent',
  probeAnswer: { status: 404, body: errorAnswer('INVALID_RESOURCE_ID') },
  accounts: [
    {
      ...{ name: 'the account', status: 200, body: { payer_id: 'WDJJHEBZ4X2LY', name: 'Ana' } },
      report: { result: 'ACCEPTED', account: 'WDJJHEBZ4X2LY', environment: undefined },
    },
    {
      ...{ name: 'no permission to read the account', status: 403, body: errorAnswer('NOT_AUTHORIZED') },
      report: { result: 'ACCEPTED', account: undefined, environment: undefined },
    },
  ],
  calls: CALLS,
  corrections: {
    payment: async (status) =>
      fromOrder(readOrder(capturedAnswer(order, { status })), {
        ...order,
        orderId: ORDER_ID,
        shownAs: SHOWN_AS,
      }),
    refund: async (status) =>
      fromRefund(readTransaction(refundAnswer(operation, { status })), { ...operation, shownAs: SHOWN_AS }),
  },
  answers: [
    changed('awaits_payer', 'a new order', {}),
    changed('awaits_payer', 'the same order again', {}, 200),
    ...[400, 403, 404, 422, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, errorAnswer('NO'), status),
    ),
    row('declined', 'a decline', errorAnswer('PAYER_CANNOT_PAY'), 422),
    changed('unknown', 'an order that is approved before any payer was sent there', { status: 'APPROVED' }),
    row('unknown', 'an order that is paid before any payer was sent there', (attempt) =>
      capturedAnswer(attempt),
    ),
    ...['javascript:alert(1)', ''].map((href) =>
      changed('unknown', `an order whose URL is not a web URL: "${href}"`, {
        links: [{ rel: 'payer-action', href }],
      }),
    ),
    ...Object.entries({ amount: TINY, custom_id: OTHER, invoice_id: OTHER, reference_id: OTHER }).map(
      ([field, value]) =>
        row('unknown', `an order with another ${field}`, (_, approval) => ({
          ...approval,
          purchase_units: [{ ...(approval.purchase_units as [JsonObject])[0], [field]: value }],
        })),
    ),
    changed('unknown', 'an order without an id', { id: '' }),
  ],
});
