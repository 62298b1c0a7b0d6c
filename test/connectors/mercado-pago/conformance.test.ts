import type { JsonObject } from '@bufbuild/protobuf';
import type { Outcome } from '#src/connectors/connector.ts';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { lookUpOf, lookUpOfOperation } from '../attempts.ts';
import { type ConformingAnswer, describeConformance } from '../conformance.ts';
import type { ConformingCall } from '../conformance-calls.ts';
import {
  PAYMENT_ID,
  PREFERENCE_ID,
  paymentAnswer,
  preferenceAnswer,
  refusal,
  searchAnswer,
} from './answers.ts';
import { attemptInPesos, refundOf, SECRETS } from './mercado-pago-under-test.ts';

const ANOTHER = '00000000-0000-4000-8000-000000000000';
const attempt = attemptInPesos();
const reference = `${PREFERENCE_ID}/${PAYMENT_ID}`;
const operation = refundOf(attempt, reference, 100_000n);
const refunded = { id: 77, payment_id: PAYMENT_ID, amount: 1000, status: 'approved' };

describeConformance({
  connector: mercadoPagoConnector,
  settings: (baseUrl, timeoutMs) => ({
    base_url: baseUrl,
    timeout_ms: timeoutMs,
    country: 'AR',
    account_id: '123456789',
  }),
  secrets: SECRETS,
  paid: 'redirect',
  lost: 'not_sent',
  attempt: attemptInPesos,
  approval: (asked) => ({ status: 201, body: preferenceAnswer(asked) }),
  probeAnswer: { status: 200, body: searchAnswer() },
  calls: [
    refund('refund', (connection) => connection.refund?.(operation), [
      ...[400, 401, 403, 404, 422].map((status) => ({
        name: `a refusal with ${status}`,
        outcome: 'not_sent' as const,
        answer: refusal(status),
      })),
    ]),
    refund('lookUp', (connection) => connection.lookUp?.(lookUpOfOperation('refund', operation)), [
      { name: 'a refusal with 400', outcome: 'unknown', answer: refusal(400) },
    ]),
    lookUp(),
  ],
  answers: [
    row('redirect', 'a preference', (_, approval) => ({ status: 201, body: approval })),
    ...[400, 401, 403, 404, 409, 422, 423, 424, 429, 500].map((status) =>
      row('not_sent', `a refusal with ${status}`, () => refusal(status)),
    ),
    row('not_sent', 'a refusal not in its own form', () => ({
      status: 403,
      body: { message: 'proxy says no' },
    })),
    row('not_sent', 'an address that is none', (_, approval) =>
      changed(approval, { init_point: 'javascript:alert(1)' }),
    ),
    row('not_sent', 'an id that is none', (_, approval) => changed(approval, { id: '../payments' })),
    ...Object.entries({
      external_reference: ANOTHER,
      collector_id: 987654321,
      items: [{ title: 'x', quantity: 2, unit_price: 3000.5, currency_id: 'ARS' }],
    }).map(([field, value]) =>
      row('unknown', `a preference whose ${field} is another's`, (_, approval) =>
        changed(approval, { [field]: value }),
      ),
    ),
    row('unknown', 'a preference in another currency', (_, approval) =>
      changed(approval, { items: [{ title: 'x', quantity: 1, unit_price: 3000.5, currency_id: 'USD' }] }),
    ),
  ],
});

function refund(
  name: 'refund' | 'lookUp',
  make: ConformingCall['make'],
  refusals: ConformingCall['answers'],
): ConformingCall {
  const answer = (outcome: Outcome['kind'], of: string, over: JsonObject) => ({
    name: of,
    outcome,
    answer: { status: 201, body: { ...refunded, ...over } },
  });
  return {
    name,
    of: 'a refund',
    make,
    key: `x-idempotency-key: ${operation.transactionId}`,
    approval: { status: 201, body: refunded },
    answers: [
      ...refusals,
      ...[409, 423, 424, 429].map((status) => ({
        name: `a refusal with ${status}`,
        outcome: 'unknown' as const,
        answer: refusal(status),
      })),
      { name: "a proxy's 403", outcome: 'unknown', answer: { status: 403, body: { message: 'no' } } },
      answer('pending', 'one in process', { status: 'in_process' }),
      answer('declined', 'a rejection', { status: 'rejected' }),
      answer('declined', 'a cancellation', { status: 'cancelled' }),
      answer('unknown', 'a status that is not known', { status: 'received' }),
      answer('unknown', 'another amount', { amount: 1000.01 }),
      answer('unknown', 'an amount as a text with more digits', { amount: '1000.001' }),
      answer('unknown', 'another payment', { payment_id: 1 }),
      answer('unknown', 'no id', { id: null }),
    ],
  };
}

function lookUp(): ConformingCall {
  const found = (outcome: Outcome['kind'], name: string, ...results: JsonObject[]) => ({
    name,
    outcome,
    answer: { status: 200, body: searchAnswer(...results) },
  });
  const payment = (over: JsonObject) => paymentAnswer(attempt, over);
  return {
    name: 'lookUp',
    of: 'a payment',
    make: (connection) => connection.lookUp?.(lookUpOf(attempt, { reference })),
    key: attempt.transactionId,
    approval: { status: 200, body: searchAnswer(payment({})) },
    answers: [
      found('approved', 'an id as a text', payment({ id: String(PAYMENT_ID) })),
      found('pending', 'a payment in process', payment({ status: 'in_process' })),
      found('unknown', 'another amount', payment({ transaction_amount: 3000.49 })),
      found('unknown', 'another currency', payment({ currency_id: 'USD' })),
      found('unknown', 'another reference', payment({ external_reference: ANOTHER })),
      found('unknown', 'another account', payment({ collector_id: 1 })),
      found('unknown', 'no id', payment({ id: null })),
      found('unknown', 'a status that is not known', payment({ status: 'accredited' })),
      found('unknown', "another's beside ours", payment({}), payment({ external_reference: ANOTHER })),
      {
        name: 'less than all',
        outcome: 'unknown',
        answer: { status: 200, body: { paging: { total: 60 }, results: [payment({})] } },
      },
      { name: 'a refusal', outcome: 'unknown', answer: refusal(401) },
      { name: 'a 404', outcome: 'unknown', answer: refusal(404) },
    ],
  };
}

function changed(approval: JsonObject, over: JsonObject) {
  return { status: 201, body: { ...approval, ...over } };
}

function row(outcome: Outcome['kind'], name: string, answer: ConformingAnswer['answer']): ConformingAnswer {
  return { outcome, name, answer };
}
