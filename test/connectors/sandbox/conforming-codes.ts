import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { localAttempt, lookUpOf, tokenAttempt } from '../attempts.ts';
import type { ConformingLocalMethod, LookedUpCode } from '../conformance-local.ts';
import type { ConformingWalletToken } from '../conformance-wallet-tokens.ts';
import { codeAnswer, declinedAnswer, ID, refusal, tokenAnswer, WALLET_CARD } from './answers.ts';

const METHODS = [
  { type: 'PIX', isClosable: true, currency: 'BRL' },
  { type: 'BOLETO', category: 'TICKET', isClosable: true, currency: 'BRL' },
  { type: 'OXXO', category: 'TICKET', currency: 'MXN' },
  { type: 'SPEI', isClosable: true, currency: 'MXN' },
  { type: 'PSE', bankId: '1901', currency: 'COP' },
  { type: 'EFECTY', category: 'TICKET', currency: 'COP' },
] as const;

function found(outcome: Outcome['kind'], name: string, change: JsonObject, received?: bigint): LookedUpCode {
  const answer = (_request: string, attempt: PaymentAttempt) => ({
    status: 200,
    body: { ...codeAnswer(attempt), ...change },
  });
  return { outcome, name, answer, ...(received !== undefined && { received }) };
}

const LOOK_UPS: readonly LookedUpCode[] = [
  found('awaits_payer', 'an open code', {}),
  found('awaits_payer', 'a code of which a part is paid', { amount_received: 2_600 }, 2_600n),
  found('unknown', 'an open code that is paid', { amount_received: 5_201 }),
  found('pending', 'a paid code that is yet to be confirmed', {
    status: 'confirming',
    amount_received: 5_201,
  }),
  found('approved', 'a paid code', { status: 'paid', amount_received: 5_201 }),
  found('approved', 'a code that is paid with too much', { status: 'paid', amount_received: 7_801 }, 7_801n),
  found('unknown', 'a paid code without its money', { status: 'paid', amount_received: 5_200 }),
  found('expired', 'an expired code', { status: 'expired' }),
  found('expired', 'an expired code of which a part is paid', { status: 'expired', amount_received: 1 }, 1n),
  found('unknown', 'an expired code that is paid', { status: 'expired', amount_received: 5_201 }),
  found('expired', 'a canceled code', { status: 'canceled' }),
  found('declined', 'a code that the bank declined', { status: 'declined', response_code: '21' }),
  found('unknown', 'a declined code without a reason', { status: 'declined' }),
  found('unknown', 'a code in an unknown state', { status: 'processing' }),
  found('unknown', 'an open code without anything to pay it with', { instructions: {}, bank_url: null }),
  found('unknown', 'other money', { status: 'paid', amount: 5_200, amount_received: 5_200 }),
  found('unknown', 'another currency', { status: 'paid', currency: 'USD', amount_received: 5_201 }),
  found('unknown', 'another key', { idempotency_key: 'another' }),
  {
    outcome: 'unknown',
    name: 'nothing',
    answer: () => ({ status: 404, body: refusal('not_found') }),
  },
  {
    outcome: 'not_sent',
    name: 'that the key is closed',
    answer: (_request, { transactionId }) => ({
      status: 200,
      body: { object: 'closed', id: `cl_${ID}`, idempotency_key: transactionId },
    }),
  },
];

/** The sandbox's local methods. */
export const LOCAL_METHODS = METHODS.map((method): ConformingLocalMethod => {
  const attempt = () => localAttempt(method, { money: { minorUnits: 5_201n, currency: method.currency } });
  const open = attempt();
  return {
    type: method.type,
    attempt,
    shows: method.type === 'PSE' ? 'page' : 'instructions',
    created: (attempt) => ({ status: 201, body: codeAnswer(attempt) }),
    refusal: { status: 422, body: refusal('invalid_request') },
    otherMoney: [(body) => ({ ...body, amount: 5_202 }), (body) => ({ ...body, currency: 'USD' })],
    lookUps: { over: { reference: `cd_${ID}` }, answers: LOOK_UPS },
    ...('isClosable' in method && {
      closing: {
        query: lookUpOf(open, { reference: `cd_${ID}` }),
        request: /^POST \/v1\/by-idempotency-key\/[^/]+\/close /,
        answer: (_request, isClosed) => ({ ...codeAnswer(open), ...(isClosed && { status: 'canceled' }) }),
      },
    }),
  };
});

/** A wallet's token, as the sandbox takes it. */
const TOKEN = JSON.stringify({
  paymentData: { data: 'sandbox/3f0e5a520f394a5b9d7b5f5d1c9c2a11', version: 'EC_v1' },
});

/** The wallets whose tokens the sandbox charges. */
export const WALLET_TOKENS = ['APPLE_PAY', 'GOOGLE_PAY'].map(
  (type): ConformingWalletToken => ({
    type,
    attempt: () => tokenAttempt(type, TOKEN),
    approval: (attempt) => ({ status: 201, body: tokenAnswer(attempt) }),
    card: WALLET_CARD,
    decline: (attempt) => ({ status: 402, body: declinedAnswer(attempt, '05') }),
    refusal: (token) => ({ status: 422, body: { error: { type: 'invalid', message: token, param: token } } }),
    lookUp: { answer: (_request, attempt) => ({ status: 200, body: tokenAnswer(attempt) }) },
  }),
);
