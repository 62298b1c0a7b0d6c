import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Operation } from '#src/connectors/port/connector.ts';

export const ORDER_ID = '5O190127TN364715T';
export const CAPTURE_ID = '3C679366HH908993F';
export const REFUND_ID = '1JU08902781691411';
export const CHECKOUT_URL = `https://www.sandbox.paypal.com/checkoutnow?token=${ORDER_ID}`;

/** 3000 dollars, the amount of every attempt here. */
const AMOUNT = { currency_code: 'USD', value: '3000.00' };

/** PayPal's response to a token request. */
export function tokenAnswer(request: string): { status: number; body: JsonObject } | undefined {
  if (!request.startsWith('POST /v1/oauth2/token ')) return undefined;
  return { status: 200, body: { access_token: 'A21AAtoken', token_type: 'Bearer', expires_in: 32_400 } };
}

/** An order that is waiting for its payer. */
export function orderAnswer(
  { transactionId }: Pick<PaymentAttempt, 'transactionId'>,
  over: JsonObject = {},
): JsonObject {
  return {
    id: ORDER_ID,
    intent: 'CAPTURE',
    status: 'PAYER_ACTION_REQUIRED',
    purchase_units: [
      { reference_id: transactionId, custom_id: transactionId, invoice_id: transactionId, amount: AMOUNT },
    ],
    links: [{ href: CHECKOUT_URL, rel: 'payer-action', method: 'GET' }],
    ...over,
  };
}

/** A captured order; `over` changes the capture. */
export function capturedAnswer(
  attempt: Pick<PaymentAttempt, 'transactionId'>,
  over: JsonObject = {},
): JsonObject {
  const { transactionId } = attempt;
  const capture = {
    id: CAPTURE_ID,
    status: 'COMPLETED',
    amount: AMOUNT,
    custom_id: transactionId,
    invoice_id: transactionId,
    ...over,
  };
  const unit = { reference_id: transactionId, payments: { captures: [capture] } };
  return orderAnswer(attempt, { status: 'COMPLETED', purchase_units: [unit], links: [] });
}

export function refundAnswer(
  { transactionId }: Pick<Operation, 'transactionId'>,
  over: JsonObject = {},
): JsonObject {
  return {
    id: REFUND_ID,
    status: 'COMPLETED',
    amount: AMOUNT,
    custom_id: transactionId,
    invoice_id: transactionId,
    ...over,
  };
}

/** An error in PayPal's form. */
export function errorAnswer(issue: string, links: JsonObject[] = []): JsonObject {
  return {
    name: 'UNPROCESSABLE_ENTITY',
    message: 'The requested action could not be performed.',
    debug_id: 'f7a2b1c3d4e5f',
    details: [{ issue, description: `About ${issue}.` }],
    links,
  };
}
