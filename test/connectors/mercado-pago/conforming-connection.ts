import type { JsonObject } from '@bufbuild/protobuf';
import { readPayment, readRefund } from '#src/connectors/mercado-pago/answers.ts';
import { fromRefund } from '#src/connectors/mercado-pago/from-provider.ts';
import { fromPayments } from '#src/connectors/mercado-pago/payments.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { lookUpOf, lookUpOfOperation } from '../attempts.ts';
import type { ConformingConnector } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { answer } from '../conforming-answers.ts';
import {
  PAYMENT_ID,
  PREFERENCE_ID,
  paymentAnswer,
  preferenceAnswer,
  refusal,
  searchAnswer,
} from './answers.ts';
import { CARD_CALLS } from './conforming-cards.ts';
import { CODES, METHODS } from './conforming-codes.ts';
import { attemptInPesos, refundOf, SECRETS } from './mercado-pago-under-test.ts';

const ANOTHER = '00000000-0000-4000-8000-000000000000';
const attempt = attemptInPesos();
const reference = `${PREFERENCE_ID}/${PAYMENT_ID}`;
const operation = refundOf(attempt, reference, 100_000n);
const refunded = { id: 77, payment_id: PAYMENT_ID, amount: 1000, status: 'approved' };

/** The times of a preference that is open this long. */
const endingAfter = (openMs: number) => ({
  expires: true,
  date_created: new Date(0).toISOString(),
  expiration_date_to: new Date(openMs).toISOString(),
});

/** The part that the suites of redirected payers and of cards share: the connection, and its calls other than `pay`. */
export const SHARED: Omit<
  ConformingConnector,
  'connector' | 'attempt' | 'approval' | 'secondCharge' | 'answers'
> = {
  settings: (baseUrl, timeoutMs) => ({
    base_url: baseUrl,
    timeout_ms: timeoutMs,
    country: 'AR',
    account_id: '123456789',
    methods: METHODS,
  }),
  secrets: SECRETS,
  corrections: {
    payment: async (status) =>
      fromPayments([readPayment(paymentAnswer(attempt, { status }))], PREFERENCE_ID, {
        ...attempt,
        shownAs: { providerId: 'MERCADO_PAGO', accountId: undefined },
      }) as Outcome,
    refund: async (status) =>
      fromRefund(readRefund({ ...refunded, status }), String(PAYMENT_ID), {
        ...operation,
        shownAs: { providerId: 'MERCADO_PAGO', accountId: undefined },
      }),
  },
  probeAnswer: { status: 200, body: searchAnswer() },
  accounts: [
    {
      ...{ name: 'the account', status: 200, body: { id: 123456789, tags: ['normal', 'test_user'] } },
      report: { result: 'ACCEPTED', account: '123456789', environment: 'TEST' },
    },
    {
      ...{ name: 'a refusal of the credentials', status: 401, body: refusal(401) },
      report: { result: 'REFUSED', detail: 'the credentials are refused (HTTP 401)' },
    },
    {
      ...{ name: 'an error about the request', status: 404, body: refusal(404) },
      report: { result: 'NOT_TESTABLE', detail: 'the response is not the expected one (HTTP 404)' },
    },
    {
      ...{ name: 'another account', status: 200, body: { id: 7, tags: [] } },
      report: {
        result: 'REFUSED',
        detail: 'the credentials belong to the account 7, and account_id is 123456789',
      },
    },
  ],
  calls: [
    refund('refund', (connection) => connection.refund?.(operation), [
      ...[400, 401, 403, 404, 422].map((status) =>
        answer('not_sent', `a refusal with ${status}`, refusal(status), status),
      ),
    ]),
    refund('lookUp', (connection) => connection.lookUp?.(lookUpOfOperation('refund', operation)), [
      answer('unknown', 'a refusal with 400', refusal(400), 400),
    ]),
    lookUp(),
    ...CARD_CALLS,
  ],
  closing: {
    query: lookUpOf(attempt, { reference: PREFERENCE_ID }),
    request: /^PUT \/checkout\/preferences\//,
    answer: (request, isClosed) =>
      request.startsWith('GET /v1/payments/search')
        ? searchAnswer()
        : { ...preferenceAnswer(attempt), ...endingAfter(isClosed ? 60_000 : 86_400_000) },
    later: { ageMs: 12 * 3_600_000 },
  },
  localMethods: CODES,
};

function refund(
  name: 'refund' | 'lookUp',
  make: ConformingCall['make'],
  refusals: ConformingCall['answers'],
): ConformingCall {
  // A look-up reads the list of refunds first.
  const isListed = name === 'lookUp';
  const refundWith = (outcome: Outcome['kind'], of: string, change: object) => {
    const body = { ...refunded, ...change };
    return isListed ? answer(outcome, of, [body]) : answer(outcome, of, body, 201);
  };
  return {
    name,
    of: 'a refund',
    make,
    key: isListed
      ? `GET /v1/payments/${PAYMENT_ID}/refunds`
      : `x-idempotency-key: ${operation.transactionId}`,
    approval: refundWith('approved', 'a refund', {}).answer,
    answers: [
      ...refusals,
      ...[409, 423, 424, 429].map((status) =>
        answer('unknown', `a refusal with ${status}`, refusal(status), status),
      ),
      answer('unknown', "a proxy's 403", { message: 'no' }, 403),
      answer('unknown', "a proxy's 403 without a message", { status: 403 }, 403),
      refundWith('pending', 'a refund in process', { status: 'in_process' }),
      refundWith('declined', 'a rejection', { status: 'rejected' }),
      refundWith('declined', 'a cancellation', { status: 'cancelled' }),
      refundWith('unknown', 'an unknown status', { status: 'received' }),
      // A lost refund is found by its amount.
      refundWith(isListed ? 'unknown' : 'approved', 'another amount', { amount: 1000.01 }),
      refundWith('unknown', 'an amount as a string with more digits', { amount: '1000.001' }),
      refundWith('unknown', 'another payment', { payment_id: 1 }),
      refundWith('unknown', 'no id', { id: null }),
    ],
  };
}

function lookUp(): ConformingCall {
  const found = (outcome: Outcome['kind'], name: string, ...results: JsonObject[]) =>
    answer(outcome, name, searchAnswer(...results));
  const payment = (over: JsonObject) => paymentAnswer(attempt, over);
  const { collector_id: _, ...withoutAccount } = payment({});
  return {
    name: 'lookUp',
    of: 'a payment',
    make: (connection) => connection.lookUp?.(lookUpOf(attempt, { reference })),
    key: attempt.transactionId,
    approval: { status: 200, body: searchAnswer(payment({})) },
    answers: [
      found('approved', 'an id as a string', payment({ id: String(PAYMENT_ID) })),
      found('approved', 'no account', withoutAccount),
      found('pending', 'a payment in process', payment({ status: 'in_process' })),
      found('unknown', 'another amount', payment({ transaction_amount: 3000.49 })),
      found('unknown', 'another currency', payment({ currency_id: 'USD' })),
      found('unknown', 'another reference', payment({ external_reference: ANOTHER })),
      found('unknown', 'another account', payment({ collector_id: 1 })),
      found('unknown', 'no id', payment({ id: null })),
      found('unknown', 'an unknown status', payment({ status: 'accredited' })),
      found(
        'unknown',
        "another transaction's payment along with ours",
        payment({}),
        payment({ external_reference: ANOTHER }),
      ),
      answer('unknown', 'an incomplete list', { paging: { total: 60 }, results: [payment({})] }),
      answer('unknown', 'a list without its length', { results: [payment({})] }),
      answer('unknown', 'results that are not a list', { paging: { total: 0 }, results: {} }),
      answer('unknown', 'a refusal', refusal(401), 401),
      answer('unknown', 'a 404', refusal(404), 404),
    ],
  };
}
