import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';

/** The text after the prefix of every identifier here. */
export const ID = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';

/** The sandbox provider's approval of a card attempt. */
export function chargeAnswer(attempt: PaymentAttempt): JsonObject {
  return {
    ...answerTo(attempt, 'charge', `ch_${ID}`),
    status: 'approved',
    response_code: '00',
    response_message: 'Approved',
    authorization_code: 'A1B2C3',
    retrieval_reference_number: '612345678901',
    captured: true,
    installments: 1,
    card_iin: '41111111',
    card_last_four: '1111',
  };
}

/** The sandbox provider's decline of a card attempt. */
export function declinedAnswer(attempt: PaymentAttempt, responseCode: string): JsonObject {
  return {
    ...chargeAnswer(attempt),
    status: 'declined',
    response_code: responseCode,
    response_message: 'Declined',
    authorization_code: null,
    captured: false,
  };
}

/** The sandbox provider's response to a charge that first requires a challenge for the payer. */
export function challenged(approval: JsonObject): JsonObject {
  return {
    ...approval,
    status: 'challenge_required',
    response_code: null,
    authorization_code: null,
    captured: false,
    challenge_url: `https://provider.example/challenge/ch_${ID}`,
  };
}

/** The sandbox provider's approval of a card verification. */
export function verificationAnswer(attempt: PaymentAttempt): JsonObject {
  const { captured, ...approval } = chargeAnswer(attempt);
  return { ...approval, object: 'verification', id: `vf_${ID}` };
}

export function orderAnswer(attempt: PaymentAttempt): JsonObject {
  return {
    ...answerTo(attempt, 'wallet_order', `wo_${ID}`),
    status: 'created',
    wallet: 'WALLET_B',
    checkout_url: `https://provider.example/checkout/wo_${ID}`,
  };
}

export function enrollmentAnswer(attempt: PaymentAttempt): JsonObject {
  return {
    ...answerTo(attempt, 'wallet_enrollment', `we_${ID}`),
    status: 'pending',
    wallet: 'WALLET_C_ENROLLMENT',
  };
}

/** The sandbox provider's response to the creation of a code. */
export function codeAnswer(attempt: PaymentAttempt): JsonObject {
  const { type } = attempt.method;
  const page = `https://provider.example/codes/cd_${ID}`;
  return {
    ...answerTo(attempt, 'code', `cd_${ID}`),
    status: 'created',
    method: type,
    response_code: null,
    amount_received: 0,
    instructions: type === 'PSE' ? null : (INSTRUCTIONS[type] ?? null),
    bank_url: type === 'PSE' ? page : null,
    page_url: type === 'PSE' ? null : page,
    captured: false,
    expires_at: '2029-12-30T12:00:00.000Z',
  };
}

const INSTRUCTIONS: Readonly<Record<string, JsonObject>> = {
  PIX: { text: '00020101021226360014br.gov.bcb.pix2514pix.example/v2520400005303986540552.005802BR6304ABCD' },
  BOLETO: { number: '9'.repeat(47), barcode: '9'.repeat(44) },
  OXXO: { number: '99123456789012', barcode: '99123456789012' },
  SPEI: { account: '999180000000000001', bank_name: 'Banco', beneficiary: 'Tienda', reference: '9912345' },
  EFECTY: { number: '9912345678' },
};

/** The card behind the wallet, as the sandbox provider reports it. */
export const WALLET_CARD = {
  brand: 'VISA',
  lastFour: '1111',
  expirationMonth: 12,
  expirationYear: 30,
  type: 'CREDIT',
};

/** The sandbox provider's approval of a wallet's token. */
export function tokenAnswer(attempt: PaymentAttempt): JsonObject {
  return {
    ...chargeAnswer(attempt),
    wallet: attempt.method.type,
    ...{ card_brand: 'VISA', card_exp_month: 12, card_exp_year: 30, card_funding: 'CREDIT' },
  };
}

/** An error in the provider's own form. */
export function refusal(type: string): JsonObject {
  return { error: { type, message: 'no' } };
}

function answerTo(attempt: PaymentAttempt, object: string, id: string): JsonObject {
  return {
    object,
    id,
    idempotency_key: attempt.transactionId,
    account: 'acct_sandbox',
    acquirer: 'ONE',
    amount: Number(attempt.money.minorUnits),
    currency: attempt.money.currency,
    created_at: '2026-11-21T10:00:00.000Z',
  };
}
