import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';

export const INTENT_ID = 'pi_3NqA1x2eZvKYlo2C1abcdefg';
export const REFUND_ID = 're_3NqA1x2eZvKYlo2C1abcdefg';

/** A PaymentIntent for a card attempt; successful by default. */
export function intentAnswer(attempt: PaymentAttempt, over: JsonObject = {}): JsonObject {
  const amount = Number(attempt.money.minorUnits);
  return {
    id: INTENT_ID,
    object: 'payment_intent',
    status: 'succeeded',
    amount,
    amount_received: amount,
    amount_capturable: 0,
    currency: attempt.money.currency.toLowerCase(),
    capture_method: 'automatic',
    client_secret: `${INTENT_ID}_secret_xyz`,
    metadata: { transaction_id: attempt.transactionId },
    payment_method: 'pm_1NqA1x2eZvKYlo2C',
    last_payment_error: null,
    next_action: null,
    latest_charge: {
      id: 'ch_3NqA1x2eZvKYlo2C',
      object: 'charge',
      outcome: { type: 'authorized', network_status: 'approved_by_network', seller_message: 'Complete.' },
      payment_method_details: { type: 'card', card: { brand: 'visa', last4: '1111' } },
    },
    livemode: false,
    ...over,
  };
}

/** The unconfirmed intent. */
export function unconfirmed(attempt: PaymentAttempt, over: JsonObject = {}): JsonObject {
  const status = 'requires_payment_method';
  return intentAnswer(attempt, {
    status,
    amount_received: 0,
    payment_method: null,
    latest_charge: null,
    ...over,
  });
}

/** A decline, which Stripe returns with 402. */
export function declineAnswer(
  attempt: PaymentAttempt,
  error: JsonObject,
  intent: JsonObject = {},
): JsonObject {
  return {
    error: {
      type: 'card_error',
      message: 'Your card was declined.',
      charge: 'ch_3NqA1x2eZvKYlo2C',
      payment_intent: unconfirmed(attempt, intent),
      ...error,
    },
  };
}

/** An error that refuses a request. */
export function refusal(more: JsonObject = {}): JsonObject {
  return { error: { type: 'invalid_request_error', message: 'no', ...more } };
}

/** A successful refund. */
export function refundAnswer(transactionId: string, amount: number, over: JsonObject = {}): JsonObject {
  return {
    id: REFUND_ID,
    object: 'refund',
    amount,
    currency: 'usd',
    payment_intent: INTENT_ID,
    metadata: { transaction_id: transactionId },
    status: 'succeeded',
    ...over,
  };
}
