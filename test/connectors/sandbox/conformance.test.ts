import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { fromOperation } from '#src/connectors/sandbox/from-provider.ts';
import { Secret } from '#src/secret.ts';
import {
  cardAttempt,
  enrollmentAttempt,
  lookUpOf,
  redirectAttempt,
  verificationAttempt,
} from '../attempts.ts';
import { describeConformance } from '../conformance.ts';
import { changed, row } from '../conforming-answers.ts';
import {
  challenged,
  chargeAnswer,
  declinedAnswer,
  enrollmentAnswer,
  ID,
  orderAnswer,
  refusal,
  verificationAnswer,
} from './answers.ts';
import { answerTo, CALLS, operation } from './conforming-calls.ts';
import { LOCAL_METHODS, WALLET_TOKENS } from './conforming-codes.ts';

const paid = cardAttempt();
const order = redirectAttempt();
const secrets = { api_key: new Secret('sandbox_test_key') };

const captured = (responseCode: string) => (attempt: PaymentAttempt) => ({
  ...declinedAnswer(attempt, responseCode),
  captured: true,
});

/** Reads the states of a capture or a refund. */
const corrected = (kind: 'capture' | 'refund') => async (status: string) => {
  const code = status === 'failed' ? '05' : '00';
  const answer = { ...answerTo(kind, operation.transactionId), status, response_code: code };
  const result = {
    kind: 'answer',
    status: 200,
    headers: {},
    body: Buffer.from(JSON.stringify(answer)),
  } as const;
  return fromOperation(result, kind, operation, 'SANDBOX_ONE');
};

describeConformance({
  connector: sandboxConnector,
  settings: (baseUrl, timeoutMs) => ({ base_url: baseUrl, timeout_ms: timeoutMs }),
  secrets,
  attempt: cardAttempt,
  approval: (attempt) => ({ status: 201, body: chargeAnswer(attempt) }),
  probeAnswer: { status: 404, body: refusal('not_found') },
  accounts: [
    {
      ...{ name: 'the account', status: 200, body: { object: 'account', id: 'acct_7' } },
      report: { result: 'ACCEPTED', account: 'acct_7', environment: 'TEST' },
    },
    {
      ...{ name: 'a refusal of the credentials', status: 401, body: refusal('authentication') },
      report: { result: 'REFUSED', detail: 'the credentials are refused (HTTP 401)' },
    },
    {
      ...{ name: 'an error about the request', status: 404, body: refusal('authentication') },
      report: { result: 'NOT_TESTABLE', detail: 'the response is not the expected one (HTTP 404)' },
    },
  ],
  calls: CALLS,
  closing: {
    query: lookUpOf(order, { reference: `wo_${ID}` }),
    request: /^POST \/v1\/by-idempotency-key\/[^/]+\/close /,
    answer: (_request, isClosed) => ({ ...orderAnswer(order), ...(isClosed && { status: 'expired' }) }),
  },
  localMethods: LOCAL_METHODS,
  walletTokens: WALLET_TOKENS,
  corrections: { capture: corrected('capture'), refund: corrected('refund') },
  secondCharge: {
    recorded: `ch_${ID}`,
    report: async (connection) => connection.lookUp?.(lookUpOf(paid)),
    answer: () => ({ ...chargeAnswer(paid), id: 'ch_5d1c9c2a-0f39-4a5b-9d7b-5f5d1c9c2a11' }),
  },
  answers: [
    changed('approved', 'a charge', {}),
    changed('approved', 'a repeated charge', {}, 200),
    row('declined', 'a decline with 402', (attempt) => declinedAnswer(attempt, '51'), 402),
    row('declined', 'a decline with 201', (attempt) => declinedAnswer(attempt, '05')),
    row('unknown', 'a decline of a captured charge', captured('51'), 402),
    row('unknown', 'a decline without a valid code', (attempt) => declinedAnswer(attempt, '5'), 402),
    row('unknown', 'a decline with the code of an approval', (attempt) => declinedAnswer(attempt, '00'), 402),
    { ...row('awaits_payer', 'a wallet order', orderAnswer), attempt: redirectAttempt },
    { ...row('unknown', 'a wallet order with 402', orderAnswer, 402), attempt: redirectAttempt },
    { ...row('pending', 'a wallet enrollment', enrollmentAnswer), attempt: enrollmentAttempt },
    ...[400, 401, 403, 404, 422, 429].map((status) =>
      row('not_sent', `a refusal with ${status}`, refusal('invalid_request'), status),
    ),
    row('unknown', 'a refusal with 409', refusal('x'), 409),
    row('unknown', 'a refusal without a message', { error: { type: 'invalid_request' } }, 403),
    row('unknown', 'a refusal without a type', { error: { message: 'no' } }, 403),
    row('unknown', 'a refusal that is not in the provider’s form', { message: 'proxy says no' }, 403),
    changed('unknown', 'an approval with 402', {}, 402),
    row('awaits_payer', 'a challenge', (_, approval) => challenged(approval)),
    row('unknown', 'a challenge without a URL', (_, approval) => ({
      ...challenged(approval),
      challenge_url: null,
    })),
    changed('pending', 'a charge that is decided later', { status: 'pending' }),
    { ...row('approved', 'a verification', verificationAnswer), attempt: verificationAttempt },
    {
      ...row('unknown', 'a charge instead of the requested verification', (attempt) => ({
        ...verificationAnswer(attempt),
        object: 'charge',
      })),
      attempt: verificationAttempt,
    },
    {
      ...row('unknown', 'an order that is paid before its payer was sent there', (attempt) => ({
        ...orderAnswer(attempt),
        status: 'paid',
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
    }).map(([field, value]) => changed('unknown', `an approval with a wrong ${field}`, { [field]: value })),
    {
      ...row('unknown', 'a wallet order whose URL is not a web URL', (attempt) => ({
        ...orderAnswer(attempt),
        checkout_url: 'javascript:alert(1)',
      })),
      attempt: redirectAttempt,
    },
  ],
});
