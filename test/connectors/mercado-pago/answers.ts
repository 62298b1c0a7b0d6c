import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';

export const PREFERENCE_ID = '123456789-0b2b5f0e-6b0e-4d0c-9a53-5a6f3b1f4c11';
export const PAYMENT_ID = 1_312_345_678;

/** A preference as the provider returns it. */
export function preferenceAnswer({ transactionId, money }: PaymentAttempt): JsonObject {
  return {
    id: PREFERENCE_ID,
    init_point: `https://www.mercadopago.com.ar/checkout/v1/redirect?pref_id=${PREFERENCE_ID}`,
    external_reference: transactionId,
    collector_id: 123456789,
    items: [
      { title: 'x', quantity: 1, unit_price: Number(money.minorUnits) / 100, currency_id: money.currency },
    ],
  };
}

/** A payment as the provider returns it. */
export function paymentAnswer({ transactionId, money }: PaymentAttempt, over: JsonObject = {}): JsonObject {
  return {
    id: PAYMENT_ID,
    status: 'approved',
    status_detail: 'accredited',
    transaction_amount: Number(money.minorUnits) / 100,
    currency_id: money.currency,
    external_reference: transactionId,
    collector_id: 123456789,
    authorization_code: '301299',
    ...over,
  };
}

/** A search result with these payments. */
export function searchAnswer(...results: JsonObject[]): JsonObject {
  return { paging: { total: results.length, limit: 50, offset: 0 }, results };
}

/** A refusal in the provider's own form. */
export function refusal(status: number): JsonObject {
  return { message: 'no', error: 'bad_request', status, cause: [] };
}
