import type { JsonObject } from '@bufbuild/protobuf';
import type { Outcome } from '#src/connectors/connector.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, lookUpOf, lookUpOfOperation, operationOn } from '../attempts.ts';
import { type ConformingAnswer, describeConformance } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import { declineAnswer, INTENT_ID, intentAnswer, refundAnswer, refusal, unconfirmed } from './answers.ts';

const secrets = { api_key: new Secret('sk_test_conformance') };
const paid = cardAttempt();
const operation = operationOn(paid, INTENT_ID, { reason: 'REQUESTED_BY_CUSTOMER' });
const amount = Number(operation.money.minorUnits);
const ANOTHER = '00000000-0000-4000-8000-000000000000';

describeConformance({
  connector: stripeConnector,
  settings: (baseUrl, timeoutMs) => ({ base_url: baseUrl, timeout_ms: timeoutMs }),
  secrets,
  attempt: cardAttempt,
  preparation: (request, attempt) => {
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
  answers: [
    row('approved', 'a charge', (_, approval) => ({ status: 200, body: approval })),
    row('declined', 'a decline', (attempt) => ({
      status: 402,
      body: declineAnswer(attempt, { code: 'card_declined', decline_code: 'insufficient_funds' }),
    })),
    row('declined', 'a decline for a code that nobody knows', (attempt) => ({
      status: 402,
      body: declineAnswer(attempt, { code: 'card_declined', decline_code: 'succeeded' }),
    })),
    changed('redirect', 'a challenge', {
      status: 'requires_action',
      amount_received: 0,
      next_action: { type: 'redirect_to_url', redirect_to_url: { url: 'https://hooks.stripe.com/3ds' } },
    }),
    changed('pending', 'a payment in process', { status: 'processing', amount_received: 0 }),
    changed('declined', 'a failure told as a success', {
      status: 'requires_payment_method',
      amount_received: 0,
      last_payment_error: { code: 'card_declined', decline_code: 'lost_card' },
    }),
    ...[400, 401, 403, 404, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, () => ({ status, body: refusal() })),
    ),
    row('not_sent', 'a 402 that is no decline', () => ({ status: 402, body: refusal() })),
    ...[409, 424].map((status) =>
      row('unknown', `a refusal with ${status}`, () => ({ status, body: refusal() })),
    ),
    row('unknown', 'a 400 for an unexpected state', () => ({
      status: 400,
      body: refusal({ code: 'payment_intent_unexpected_state' }),
    })),
    row('unknown', 'a 400 for a key used otherwise', () => ({
      status: 400,
      body: refusal({ type: 'idempotency_error' }),
    })),
    row('unknown', 'a 429 for a lock', () => ({ status: 429, body: refusal({ code: 'lock_timeout' }) })),
    row('unknown', 'a refusal not in its own form', () => ({ status: 403, body: { message: 'no' } })),
    row('unknown', 'an approval with 402', (_, approval) => ({ status: 402, body: approval })),
    ...Object.entries({
      'another amount': { amount: 1 },
      'another currency': { currency: 'eur' },
      'another reference': { metadata: { transaction_id: ANOTHER } },
      'no reference': { metadata: {} },
      'another id': { id: 'pi_another' },
      'another object': { object: 'charge' },
    }).flatMap(([name, change]) => [
      changed('unknown', `an approval with ${name}`, change),
      row('unknown', `a decline with ${name}`, (attempt) => ({
        status: 402,
        body: declineAnswer(attempt, { code: 'card_declined' }, change),
      })),
    ]),
    changed('unknown', 'an approval that received less', { amount_received: 1 }),
    changed('unknown', 'an authorization instead of a charge', { capture_method: 'manual' }),
    changed('unknown', 'an authorization by its status', { status: 'requires_capture' }),
    changed('unknown', 'a status that there is not', { status: 'approved' }),
    changed('unknown', 'a challenge without an address', { status: 'requires_action' }),
    changed('unknown', 'a challenge whose address is no web address', {
      status: 'requires_action',
      next_action: { type: 'redirect_to_url', redirect_to_url: { url: 'javascript:alert(1)' } },
    }),
    row('unknown', 'a payment that is still unconfirmed', (a) => ({ status: 200, body: unconfirmed(a) })),
    row('unknown', 'a decline of a payment that succeeded', (attempt) => ({
      status: 402,
      body: declineAnswer(attempt, { code: 'card_declined' }, { status: 'succeeded' }),
    })),
    row('unknown', 'a decline that names no payment', () => ({
      status: 402,
      body: { error: { type: 'card_error', code: 'card_declined', message: 'no' } },
    })),
  ],
});

function captured(over: JsonObject = {}): JsonObject {
  const metadata = {
    transaction_id: paid.transactionId,
    capture_transaction_id: operation.transactionId,
  };
  return intentAnswer(paid, { capture_method: 'manual', metadata, ...over });
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
      answer('unknown', 'another amount captured', captured({ amount_received: 1 })),
      answer('unknown', 'another currency', captured({ currency: 'eur' })),
      answer('unknown', 'another payment', captured({ id: 'pi_another' })),
      answer('unknown', 'an authorization that is still open', captured({ status: 'requires_capture' })),
      {
        name: 'a decline',
        outcome: 'declined',
        answer: {
          status: 402,
          body: declineAnswer(paid, { code: 'card_declined' }, { status: 'requires_capture' }),
        },
      },
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
      answered('pending', 'a pending one', { status: 'pending' }),
      answered('pending', 'one that wants the payer', { status: 'requires_action' }),
      answered('declined', 'a failure', { status: 'failed', failure_reason: 'lost_or_stolen_card' }),
      answered('declined', 'a canceled one', { status: 'canceled' }),
      answered('unknown', 'another amount', { amount: 1 }),
      answered('unknown', 'another currency', { currency: 'eur' }),
      answered('unknown', 'another payment', { payment_intent: 'pi_another' }),
      answered('unknown', 'another reference', { metadata: { transaction_id: ANOTHER } }),
      answered('unknown', 'a status that there is not', { status: 'received' }),
      answered('unknown', 'another object', { object: 'charge' }),
    ],
  };
}

function refusedAlike(): ConformingCall['answers'] {
  return [
    { name: 'a refusal', outcome: 'not_sent', answer: { status: 404, body: refusal() } },
    { name: 'a conflict', outcome: 'unknown', answer: { status: 409, body: refusal() } },
    {
      name: 'a key used otherwise',
      outcome: 'unknown',
      answer: { status: 400, body: refusal({ type: 'idempotency_error' }) },
    },
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
      { name: 'a refusal', outcome: 'unknown', answer: { status: 401, body: refusal() } },
      { name: 'no such object', outcome: 'unknown', answer: { status: 404, body: refusal() } },
    ],
  };
}

function answer(outcome: Outcome['kind'], name: string, body: JsonObject): ConformingCall['answers'][number] {
  return { name, outcome, answer: { status: 200, body } };
}

function changed(outcome: Outcome['kind'], name: string, change: JsonObject): ConformingAnswer {
  return row(outcome, name, (_, approval) => ({ status: 200, body: { ...approval, ...change } }));
}

function row(outcome: Outcome['kind'], name: string, answer: ConformingAnswer['answer']): ConformingAnswer {
  return { outcome, name, answer };
}
