import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { fromRefund } from '#src/connectors/stripe/from-provider.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, lookUpOf, lookUpOfOperation, operationOn } from '../attempts.ts';
import { describeConformance } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { answer, changed, row } from '../conforming-answers.ts';
import { declineAnswer, INTENT_ID, intentAnswer, refundAnswer, refusal, unconfirmed } from './answers.ts';
import { codePreparation, LOCAL_METHODS, WALLET_TOKENS } from './conforming-codes.ts';

const secrets = { api_key: new Secret('sk_test_conformance') };
const paid = cardAttempt();
const operation = operationOn(paid, INTENT_ID, { reason: 'REQUESTED_BY_CUSTOMER' });
const amount = Number(operation.money.minorUnits);
const ANOTHER = '00000000-0000-4000-8000-000000000000';

const CHALLENGED = {
  status: 'requires_action',
  amount_received: 0,
  next_action: { type: 'redirect_to_url', redirect_to_url: { url: 'https://hooks.stripe.com/3ds' } },
};

describeConformance({
  connector: stripeConnector,
  settings: (baseUrl, timeoutMs) => ({ base_url: baseUrl, timeout_ms: timeoutMs, apple_pay_tokens: true }),
  secrets,
  attempt: cardAttempt,
  preparation: (request, attempt) => {
    const { isCode, answer } = codePreparation(request, attempt);
    if (isCode || answer) return answer;
    if (request.startsWith('POST /v1/payment_methods ')) {
      return { status: 200, body: { id: 'pm_1', object: 'payment_method' } };
    }
    if (request.startsWith('POST /v1/payment_intents ')) {
      return { status: 200, body: unconfirmed(attempt) };
    }
    return undefined;
  },
  approval: (attempt) => ({ status: 200, body: intentAnswer(attempt) }),
  probeAnswer: { status: 200, body: { object: 'list', data: [], has_more: false } },
  accounts: [
    {
      ...{ name: 'the account', status: 200, body: { id: 'acct_1Fake', object: 'account' } },
      report: { result: 'ACCEPTED', account: 'acct_1Fake', environment: 'TEST' },
    },
    {
      ...{ name: 'a refusal of the key', status: 401, body: refusal() },
      report: { result: 'REFUSED', detail: 'the credentials are refused (HTTP 401)' },
    },
    {
      ...{ name: 'a refusal of everything', status: 403, body: refusal() },
      report: { result: 'REFUSED', detail: 'the credentials are refused (HTTP 403)' },
    },
    {
      ...{ name: 'a refusal of too many requests', status: 429, body: refusal() },
      report: { result: 'UNREACHABLE', detail: 'the response is not the expected one (HTTP 429)' },
    },
    {
      ...{ name: 'an error about the request', status: 400, body: refusal() },
      report: { result: 'NOT_TESTABLE', detail: 'the response is not the expected one (HTTP 400)' },
    },
  ],
  calls: [
    capture(),
    cancel(),
    refund(),
    lookUp('a payment', lookUpOf(paid, { reference: INTENT_ID }), intentAnswer(paid)),
    lookUp('a capture', lookUpOfOperation('capture', operation), captured()),
    lookUp('a cancel', lookUpOfOperation('cancel', operation), canceled()),
    lookUp('a refund', lookUpOfOperation('refund', operation), {
      object: 'list',
      has_more: false,
      data: [refundAnswer(operation.transactionId, amount)],
    }),
  ],
  closing: {
    query: lookUpOf(paid, { reference: INTENT_ID }),
    request: /^POST \/v1\/payment_intents\/\w+\/cancel /,
    answer: (_request, isClosed) =>
      intentAnswer(paid, isClosed ? { status: 'canceled', amount_received: 0 } : CHALLENGED),
  },
  localMethods: LOCAL_METHODS,
  walletTokens: WALLET_TOKENS,
  corrections: {
    refund: async (status) =>
      fromRefund(refundAnswer(operation.transactionId, amount, { status }), {
        ...{ intentId: INTENT_ID, shownAs: { providerId: 'STRIPE', accountId: undefined } },
        refund: { transactionId: operation.transactionId, money: operation.money },
      }),
  },
  secondCharge: {
    recorded: INTENT_ID,
    report: async (connection) =>
      connection.lookUp?.(lookUpOf(paid, { reference: INTENT_ID, hint: { providerPaymentId: 'pi_second' } })),
    answer: (request) => intentAnswer(paid, request.includes('pi_second') ? { id: 'pi_second' } : {}),
  },
  answers: [
    changed('approved', 'a charge', {}),
    decline('declined', 'a decline', { decline_code: 'insufficient_funds' }),
    decline('declined', 'a decline for an unknown code', { decline_code: 'succeeded' }),
    changed('awaits_payer', 'a challenge', CHALLENGED),
    changed('pending', 'a payment in process', { status: 'processing', amount_received: 0 }),
    changed('declined', 'a failure reported as a success', {
      status: 'requires_payment_method',
      amount_received: 0,
      last_payment_error: { code: 'card_declined', decline_code: 'lost_card' },
    }),
    ...[400, 401, 403, 404, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, refusal(), status),
    ),
    row('not_sent', 'a 402 that is not a decline', refusal(), 402),
    ...[409, 424].map((status) => row('unknown', `a refusal with ${status}`, refusal(), status)),
    row(
      'unknown',
      'a 400 for an unexpected state',
      refusal({ code: 'payment_intent_unexpected_state' }),
      400,
    ),
    row('unknown', 'a 400 for a key used with another request', refusal({ type: 'idempotency_error' }), 400),
    row('unknown', 'a 429 for a lock', refusal({ code: 'lock_timeout' }), 429),
    row('unknown', 'an error without a type', { error: { message: 'no' } }, 403),
    row('unknown', 'a refusal that is not in the provider’s form', { message: 'no' }, 403),
    changed('unknown', 'an approval with 402', {}, 402),
    ...Object.entries({
      'another amount': { amount: 1 },
      'another currency': { currency: 'eur' },
      'another reference': { metadata: { transaction_id: ANOTHER } },
      'no reference': { metadata: {} },
      'another id': { id: 'pi_another' },
      'another object': { object: 'charge' },
    }).flatMap(([name, change]) => [
      changed('unknown', `an approval with ${name}`, change),
      decline('unknown', `a decline with ${name}`, {}, change),
    ]),
    changed('unknown', 'an approval of a smaller received amount', { amount_received: 1 }),
    changed('unknown', 'an authorization instead of a charge', { capture_method: 'manual' }),
    changed('unknown', 'the status of an authorization', { status: 'requires_capture' }),
    changed('unknown', 'an unknown status', { status: 'approved' }),
    changed('unknown', 'a challenge without a URL', { status: 'requires_action' }),
    changed('unknown', 'a challenge whose URL is not a web URL', {
      status: 'requires_action',
      next_action: { type: 'redirect_to_url', redirect_to_url: { url: 'javascript:alert(1)' } },
    }),
    row('unknown', 'a payment that is still unconfirmed', (attempt) => unconfirmed(attempt)),
    decline('unknown', 'a decline of a payment that succeeded', {}, { status: 'succeeded' }),
    decline('unknown', 'a decline of a payment that is authorized', {}, { status: 'requires_capture' }),
    row(
      'unknown',
      'a decline that names no payment',
      refusal({ type: 'card_error', code: 'card_declined' }),
      402,
    ),
  ],
});

/** A decline of an attempt with a card error. */
function decline(outcome: Outcome['kind'], name: string, error: JsonObject, intent: JsonObject = {}) {
  const body = (attempt: PaymentAttempt) =>
    declineAnswer(attempt, { code: 'card_declined', ...error }, intent);
  return row(outcome, name, body, 402);
}

function captured(over: JsonObject = {}): JsonObject {
  return intentAnswer(paid, {
    capture_method: 'manual',
    metadata: markedBy(operation.transactionId),
    ...over,
  });
}

/** Metadata of an intent that was marked by a transaction's capture. */
function markedBy(captureId: string | undefined): JsonObject {
  return {
    transaction_id: paid.transactionId,
    ...(captureId !== undefined && { capture_transaction_id: captureId }),
  };
}

function canceled(over: JsonObject = {}): JsonObject {
  return intentAnswer(paid, { status: 'canceled', amount_received: 0, capture_method: 'manual', ...over });
}

function capture(): ConformingCall {
  return {
    name: 'capture',
    make: (connection) => connection.capture?.(operation),
    key: operation.transactionId,
    approval: { status: 200, body: captured() },
    answers: [
      ...refusedAlike(),
      answer('unknown', 'another amount', captured({ amount: 1 })),
      answer('approved', 'another amount captured', captured({ amount_received: 1 })),
      answer('unknown', 'another currency', captured({ currency: 'eur' })),
      answer('unknown', 'another payment', captured({ id: 'pi_another' })),
      answer('unknown', 'an authorization that is still open', captured({ status: 'requires_capture' })),
      answer('unknown', 'an authorization that is canceled', captured({ status: 'canceled' })),
      answer('unknown', 'a payment in process', captured({ status: 'processing' })),
      answer('unknown', "another capture's mark", captured({ metadata: markedBy(ANOTHER) })),
      answer('approved', 'no mark', captured({ metadata: markedBy(undefined) })),
      answer(
        'declined',
        'a decline',
        declineAnswer(paid, { code: 'card_declined' }, { status: 'requires_capture' }),
        402,
      ),
    ],
  };
}

function cancel(): ConformingCall {
  return {
    name: 'cancel',
    make: (connection) => connection.cancel?.(operation),
    key: operation.transactionId,
    approval: { status: 200, body: canceled() },
    answers: [
      ...refusedAlike(),
      answer('unknown', 'another payment', canceled({ id: 'pi_another' })),
      answer('unknown', 'an authorization that is still open', canceled({ status: 'requires_capture' })),
      answer('unknown', 'an authorization that is captured', canceled({ status: 'succeeded' })),
    ],
  };
}

function refund(): ConformingCall {
  const answered = (outcome: Outcome['kind'], name: string, over: JsonObject) =>
    answer(outcome, name, refundAnswer(operation.transactionId, amount, over));
  return {
    name: 'refund',
    make: (connection) => connection.refund?.(operation),
    key: operation.transactionId,
    approval: { status: 200, body: refundAnswer(operation.transactionId, amount) },
    answers: [
      ...refusedAlike(),
      answered('pending', 'a pending result', { status: 'pending' }),
      answered('pending', 'a refund that requires the payer', { status: 'requires_action' }),
      answered('declined', 'a failure', { status: 'failed', failure_reason: 'lost_or_stolen_card' }),
      answered('declined', 'a canceled refund', { status: 'canceled' }),
      answered('approved', 'another amount', { amount: 1 }),
      answered('approved', 'another currency', { currency: 'eur' }),
      answered('unknown', 'another payment', { payment_intent: 'pi_another' }),
      answered('unknown', 'another reference', { metadata: { transaction_id: ANOTHER } }),
      answered('unknown', 'an unknown status', { status: 'received' }),
      answered('unknown', 'another object', { object: 'charge' }),
      answered('unknown', 'no id', { id: null }),
      answer('unknown', "a payment's decline", declineAnswer(paid, { code: 'card_declined' }), 402),
    ],
  };
}

function refusedAlike(): ConformingCall['answers'] {
  return [
    answer('not_sent', 'a refusal', refusal(), 404),
    answer('unknown', 'a conflict', refusal(), 409),
    answer('unknown', 'a key used with another request', refusal({ type: 'idempotency_error' }), 400),
  ];
}

function lookUp(of: string, query: ReturnType<typeof lookUpOf>, body: JsonObject): ConformingCall {
  return {
    name: 'lookUp',
    of,
    make: (connection) => connection.lookUp?.(query),
    key: INTENT_ID,
    approval: { status: 200, body },
    answers: [
      answer('unknown', 'a refusal', refusal(), 401),
      answer('unknown', 'no such object', refusal(), 404),
    ],
  };
}
