import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { ConformingLocalMethod } from '../conformance-local.ts';
import type { ConformingWalletToken } from '../conformance-wallet-tokens.ts';
import { codeAttempt, walletAttempt } from './adyen-under-test.ts';
import { codeRulesOf } from './fake-codes.ts';

const PSP = 'NC6HT9CRT65ZGN82';

/** An error as Adyen writes it. */
export function errorOf(status: number, errorCode: string, message = 'no'): JsonObject {
  return { status, errorCode, message, errorType: 'validation' };
}

function amountOf({ money }: PaymentAttempt) {
  return { currency: money.currency, value: Number(money.minorUnits) };
}

const REDIRECT = {
  resultCode: 'RedirectShopper',
  action: { type: 'redirect', method: 'GET', url: 'https://bank.example/pse', paymentMethodType: 'pse' },
};

/** Adyen's answer to the creation of a code. */
function created(type: string, attempt: PaymentAttempt): JsonObject {
  const amount = amountOf(attempt);
  const { transactionId: reference } = attempt;
  const answer = codeRulesOf(type)?.answer({ reference, deliverAt: '2030-01-10T23:59:59.000Z' }, amount);
  return { pspReference: PSP, merchantReference: reference, amount, ...(answer ?? REDIRECT) };
}

/** Adyen's local methods. */
export const LOCAL_METHODS = [
  ['PIX', 'pix', 'instructions'],
  ['BOLETO', 'boletobancario', 'instructions'],
  ['OXXO', 'oxxo', 'instructions'],
  ['PSE', 'pse_payulatam', 'page'],
].map(
  ([type = '', adyen = '', shows]): ConformingLocalMethod => ({
    type,
    attempt: () => codeAttempt(type, {}, { bankId: '1022' }),
    shows: shows === 'page' ? 'page' : 'instructions',
    created: (attempt) => ({ status: 200, body: created(adyen, attempt) }),
    refusal: { status: 422, body: errorOf(422, '130') },
    otherMoney: [
      (body) => ({ ...body, amount: { currency: 'USD', value: 300_000 } }),
      (body) => ({ ...body, amount: { ...Object(body.amount), value: 1 } }),
      // A voucher names its amount itself.
      ({ amount, ...body }) => ({
        ...body,
        action: { ...Object(body.action), initialAmount: { ...Object(amount), value: 1 } },
      }),
    ],
  }),
);

const CARD = { cardSummary: '1111', expiryDate: '3/2030', paymentMethod: 'visa', fundingSource: 'CREDIT' };

/** The wallets whose tokens Adyen charges. */
export const WALLET_TOKENS = (['APPLE_PAY', 'GOOGLE_PAY'] as const).map((type): ConformingWalletToken => {
  const answered = (attempt: PaymentAttempt, more: JsonObject) => ({
    status: 200,
    body: {
      ...{ pspReference: PSP, merchantReference: attempt.transactionId, amount: amountOf(attempt) },
      ...more,
    },
  });
  return {
    type,
    attempt: () => walletAttempt(type),
    approval: (attempt) => answered(attempt, { resultCode: 'Authorised', additionalData: CARD }),
    card: { brand: 'VISA', lastFour: '1111', expirationMonth: 3, expirationYear: 30, type: 'CREDIT' },
    decline: (attempt) => answered(attempt, { resultCode: 'Refused', refusalReasonCode: '2' }),
    refusal: (token) => ({ status: 422, body: errorOf(422, '000', `cannot read ${token}`) }),
  };
});
