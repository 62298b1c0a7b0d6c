import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { lookUpOf, tokenAttempt } from '../attempts.ts';
import type { ConformingLocalMethod, LookedUpCode } from '../conformance-local.ts';
import type { ConformingWalletToken } from '../conformance-wallet-tokens.ts';
import { declineAnswer, INTENT_ID, intentAnswer, refusal } from './answers.ts';
import { codeAttempt, type LocalType } from './stripe-under-test.ts';

const PAGE = 'https://payments.stripe.com/1';
const END_S = Date.UTC(2030, 0, 1) / 1_000;
const CUSTOMER_ID = 'cus_9s6XKzkNRiz8i3';
const RAN_OUT = { type: 'invalid_request_error', code: 'payment_intent_payment_attempt_expired' };

/** The next action of an intent whose code is open, by method. */
const ACTIONS: Readonly<Record<LocalType, JsonObject>> = {
  PIX: {
    type: 'pix_display_qr_code',
    pix_display_qr_code: {
      ...{ data: '00020126360014br.gov.bcb.pix', image_url_png: `${PAGE}.png`, image_url_svg: `${PAGE}.svg` },
      ...{ hosted_instructions_url: PAGE, expires_at: END_S },
    },
  },
  BOLETO: {
    type: 'boleto_display_details',
    boleto_display_details: {
      ...{ number: '03399333845293749345103201015660199700000300000', pdf: `${PAGE}/pdf` },
      ...{ hosted_voucher_url: PAGE, expires_at: END_S },
    },
  },
  OXXO: {
    type: 'oxxo_display_details',
    oxxo_display_details: {
      ...{ number: '98000000012345678901234567890123', hosted_voucher_url: PAGE, expires_after: END_S },
    },
  },
  SPEI: transfer(15_000),
};

function transfer(remaining: number): JsonObject {
  const spei = { clabe: '002180650612345670', bank_name: 'BANAMEX', bank_code: '002' };
  const details = {
    ...{ amount_remaining: remaining, currency: 'mxn', reference: 'ABC123', hosted_instructions_url: PAGE },
    ...{ type: 'mx_bank_transfer', financial_addresses: [{ type: 'spei', spei }] },
  };
  return { type: 'display_bank_transfer_instructions', display_bank_transfer_instructions: details };
}

/** The intent of a code that nobody has paid. */
function openIntent(type: LocalType, attempt: PaymentAttempt, over: JsonObject = {}): JsonObject {
  return intentAnswer(attempt, {
    ...{
      status: 'requires_action',
      amount_received: 0,
      latest_charge: null,
      next_action: ACTIONS[type] ?? null,
    },
    customer: type === 'SPEI' ? CUSTOMER_ID : null,
    ...over,
  });
}

const ok = (body: JsonObject) => ({ status: 200, body });

/** Responds about the intent, and about the money on its customer's balance. */
function found(body: (attempt: PaymentAttempt) => JsonObject, balance = 0): LookedUpCode['answer'] {
  return (request, attempt) =>
    request.includes('/cash_balance')
      ? ok({ object: 'cash_balance', available: { mxn: balance } })
      : ok(body(attempt));
}

function lookUpsOf(type: LocalType): readonly LookedUpCode[] {
  const intent = (over: JsonObject, balance?: number) =>
    found((attempt) => openIntent(type, attempt, over), balance);
  const paid = { status: 'succeeded', amount_received: 15_000, next_action: null };
  const ended = { status: 'canceled', next_action: null };
  const ofTransfers: readonly LookedUpCode[] = [
    {
      ...{ name: 'a part of the money', outcome: 'awaits_payer', received: 5_000n },
      answer: intent({ next_action: transfer(10_000) }),
    },
    { name: 'too much money', outcome: 'approved', received: 22_500n, answer: intent(paid, 7_500) },
    { name: 'the end after a part', outcome: 'expired', received: 5_000n, answer: intent(ended, 5_000) },
  ];
  return [
    { name: 'an open code', outcome: 'awaits_payer', answer: intent({}) },
    {
      name: 'a code whose money is on its way',
      outcome: 'pending',
      answer: intent({ status: 'processing' }),
    },
    { name: 'a paid code', outcome: 'approved', answer: intent(paid) },
    { name: 'a canceled code', outcome: 'expired', answer: intent(ended) },
    {
      ...{ name: 'a canceled code that had run out', outcome: 'expired' },
      answer: intent({ ...ended, payment_method: null, last_payment_error: RAN_OUT }),
    },
    {
      ...{ name: 'a code that ran out and cannot be canceled', outcome: 'unknown' },
      answer: intent({ status: 'requires_payment_method', next_action: null, last_payment_error: RAN_OUT }),
    },
    { name: 'no code', outcome: 'unknown', answer: intent({ next_action: null }) },
    { name: 'other money', outcome: 'unknown', answer: intent({ ...paid, amount: 1 }) },
    { name: 'another amount received', outcome: 'unknown', answer: intent({ ...paid, amount_received: 1 }) },
    ...(type === 'SPEI' ? ofTransfers : []),
  ];
}

function localMethod(type: LocalType): ConformingLocalMethod {
  const queried = codeAttempt(type);
  const ended = { status: 'canceled', next_action: null };
  return {
    type,
    attempt: () => codeAttempt(type),
    shows: 'instructions',
    created: (attempt) => ok(openIntent(type, attempt)),
    refusal: { status: 400, body: refusal({ param: 'amount', code: 'amount_too_large' }) },
    otherMoney: [(body) => ({ ...body, amount: 1 }), (body) => ({ ...body, currency: 'eur' })],
    lookUps: { over: { reference: INTENT_ID }, answers: lookUpsOf(type) },
    ...(type !== 'OXXO' && {
      closing: {
        query: lookUpOf(queried, { reference: INTENT_ID }),
        request: /^POST \/v1\/payment_intents\/\w+\/cancel /,
        answer: (request, isClosed) =>
          found((attempt) => openIntent(type, attempt, isClosed ? ended : {}))(request, queried).body,
      },
    }),
  };
}

/** Every local method of Stripe. */
export const LOCAL_METHODS: readonly ConformingLocalMethod[] = (
  ['PIX', 'BOLETO', 'OXXO', 'SPEI'] as const
).map(localMethod);

/** The response to a request that precedes the charge; undefined for a code, whose one request creates it. */
export function codePreparation(
  request: string,
  { method }: PaymentAttempt,
): { readonly isCode: boolean; readonly answer?: { status: number; body: JsonObject } } {
  if (request.startsWith('POST /v1/customers ')) {
    return { isCode: true, answer: ok({ id: CUSTOMER_ID, object: 'customer' }) };
  }
  if (request.startsWith('POST /v1/tokens '))
    return { isCode: false, answer: ok({ id: 'tok_1', object: 'token' }) };
  return { isCode: method.by === 'payer' };
}

const CARD = { brand: 'visa', last4: '4242', exp_month: 12, exp_year: 2030, funding: 'credit' };
const TOKENS: Readonly<Record<string, JsonObject>> = {
  GOOGLE_PAY: {
    paymentMethodData: {
      tokenizationData: { token: '{"id":"tok_1NqA1x2eZvKYlo2CgYzD8fQz","object":"token"}' },
    },
  },
  APPLE_PAY: {
    paymentData: { data: 'wmQ1MwFqkYgqLvUeVbA5lJ0eFKcg', signature: 'MIAGCSqGSIb3DQEHAqCAMIACAQExDTAL' },
    paymentMethod: { displayName: 'Visa 4242', network: 'Visa' },
    transactionIdentifier: '31323334353637383930313233343536',
  },
};

function walletToken(type: string): ConformingWalletToken {
  const wallet = { ...CARD, wallet: { type: type.toLowerCase(), dynamic_last4: '1881' } };
  const charge = { id: 'ch_3NqA1x2eZvKYlo2C', payment_method_details: { type: 'card', card: wallet } };
  const approval = (attempt: PaymentAttempt) => ok(intentAnswer(attempt, { latest_charge: charge }));
  return {
    type,
    attempt: () => tokenAttempt(type, JSON.stringify(TOKENS[type])),
    approval,
    card: { brand: 'VISA', lastFour: '4242', expirationMonth: 12, expirationYear: 30, type: 'CREDIT' },
    decline: (attempt) => ({
      status: 402,
      body: declineAnswer(attempt, { code: 'card_declined', decline_code: 'insufficient_funds' }),
    }),
    refusal: (token) => ({
      status: 400,
      body: refusal({ code: 'token_already_used', message: token, param: token }),
    }),
    lookUp: { over: { reference: INTENT_ID }, answer: (_request, attempt) => approval(attempt) },
  };
}

/** The wallets whose tokens Stripe takes. */
export const WALLET_TOKENS: readonly ConformingWalletToken[] = Object.keys(TOKENS).map(walletToken);
