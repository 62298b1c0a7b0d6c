import type { Outcome } from '#src/connectors/connector.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, enrollmentAttempt, redirectAttempt, verificationAttempt } from '../attempts.ts';
import { type ConformingAnswer, describeConformance } from '../conformance.ts';
import {
  challenged,
  chargeAnswer,
  declinedAnswer,
  enrollmentAnswer,
  orderAnswer,
  verificationAnswer,
} from './answers.ts';
import { CALLS } from './conforming-calls.ts';

const secrets = { api_key: new Secret('sandbox_test_key') };

describeConformance({
  connector: sandboxConnector,
  settings: (baseUrl, timeoutMs) => ({ base_url: baseUrl, timeout_ms: timeoutMs }),
  secrets,
  attempt: cardAttempt,
  approval: (attempt) => ({ status: 201, body: chargeAnswer(attempt) }),
  probeAnswer: { status: 404, body: { error: { type: 'not_found', message: 'nothing was recorded' } } },
  calls: CALLS,
  answers: [
    row('approved', 'a charge', (_, approval) => ({ status: 201, body: approval })),
    row('approved', 'a repeated charge', (_, approval) => ({ status: 200, body: approval })),
    row('declined', 'a decline with 402', (attempt) => ({
      status: 402,
      body: declinedAnswer(attempt, '51'),
    })),
    row('declined', 'a decline with 201', (attempt) => ({
      status: 201,
      body: declinedAnswer(attempt, '05'),
    })),
    {
      ...row('redirect', 'a wallet order', (a) => ({ status: 201, body: orderAnswer(a) })),
      attempt: redirectAttempt,
    },
    {
      ...row('pending', 'a wallet enrollment', (a) => ({ status: 201, body: enrollmentAnswer(a) })),
      attempt: enrollmentAttempt,
    },
    ...[400, 401, 403, 404, 422, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, () => ({
        status,
        body: { error: { type: 'invalid_request', message: 'no' } },
      })),
    ),
    row('unknown', 'a refusal with 409', () => ({
      status: 409,
      body: { error: { type: 'x', message: 'y' } },
    })),
    row('unknown', 'a refusal not in its own form', () => ({
      status: 403,
      body: { message: 'proxy says no' },
    })),
    row('unknown', 'an approval with 402', (_, approval) => ({ status: 402, body: approval })),
    row('redirect', 'a challenge', (_, approval) => ({ status: 201, body: challenged(approval) })),
    row('unknown', 'a challenge without an address', (_, approval) => ({
      status: 201,
      body: { ...challenged(approval), challenge_url: null },
    })),
    row('pending', 'a charge that is decided later', (_, approval) => ({
      status: 201,
      body: { ...approval, status: 'pending' },
    })),
    {
      ...row('approved', 'a verification', (a) => ({ status: 201, body: verificationAnswer(a) })),
      attempt: verificationAttempt,
    },
    {
      ...row('unknown', 'a charge where a verification was asked for', (a) => ({
        status: 201,
        body: { ...verificationAnswer(a), object: 'charge' },
      })),
      attempt: verificationAttempt,
    },
    {
      ...row('unknown', 'an order that is paid before its payer was sent there', (a) => ({
        status: 201,
        body: { ...orderAnswer(a), status: 'paid' },
      })),
      attempt: redirectAttempt,
    },
    ...Object.entries({
      amount: 1,
      currency: 'EUR',
      idempotency_key: '00000000-0000-4000-8000-000000000000',
      object: 'refund',
      id: '',
      status: 'processing',
      response_code: '51',
      authorization_code: null,
      retrieval_reference_number: '12',
      captured: false,
    }).map(([field, value]) =>
      row('unknown', `an approval whose ${field} is not right`, (_, approval) => ({
        status: 201,
        body: { ...approval, [field]: value },
      })),
    ),
    {
      ...row('unknown', 'a wallet order whose address is no web address', (a) => ({
        status: 201,
        body: { ...orderAnswer(a), checkout_url: 'javascript:alert(1)' },
      })),
      attempt: redirectAttempt,
    },
  ],
});

function row(outcome: Outcome['kind'], name: string, answer: ConformingAnswer['answer']): ConformingAnswer {
  return { outcome, name, answer };
}
