import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { bodyOf } from '#src/connectors/provider-answer.ts';
import {
  BY_STATUS,
  type DeclineMeaning,
  declineBy,
  declineOrSoft,
  declines,
  refusalTable,
  refusedOutcome,
} from '#src/connectors/refusal.ts';
import { errorOf, type Intent, type StripeError } from './answers.ts';

/**
 * Columns: a response's HTTP status and fields of its error; for a decline, its `reason` and its charge's `outcome`.
 */
type Column = 'status' | 'type' | 'code' | 'decline_code' | 'reason' | 'outcome';

/**
 * Stripe's refusals. A decline's reason is its decline code or, without one, the error code.
 * https://docs.stripe.com/declines/codes, as of July 2026; the ISO 8583 equivalents (field 39) are ours.
 */
const REFUSALS = refusalTable<Column, 'declined'>([
  // Radar, Stripe's fraud detection, blocked the charge; the reason is then irrelevant.
  { outcome: 'blocked', means: declineBy('59') },
  ...declines('reason', {
    '05': `approve_with_id call_issuer card_declined do_not_honor generic_decline incorrect_address incorrect_zip
      no_action_taken payment_method_provider_decline testmode_decline`,
    '13': 'amount_too_small invalid_amount',
    '14': 'incorrect_number invalid_account invalid_number',
    '1A': `authentication_not_handled authentication_required mobile_device_authentication_required
      payment_intent_authentication_failure`,
    '41': 'lost_card',
    '43': 'pickup_card stolen_card',
    '51': 'insufficient_funds',
    '54': 'expired_card invalid_expiry_month invalid_expiry_year new_account_information_available',
    '55': 'incorrect_pin invalid_pin offline_pin_required online_or_offline_pin_required',
    '57': `card_not_supported country_unsupported currency_not_supported do_not_try_again not_permitted
      revocation_of_all_authorizations revocation_of_authorization service_not_allowed stop_payment_order
      transaction_not_allowed`,
    '59': 'fraudulent merchant_blacklist',
    '61': 'amount_too_large',
    '62': 'restricted_card',
    '63': 'security_violation',
    '65': 'card_decline_rate_limit_exceeded card_velocity_exceeded withdrawal_count_limit_exceeded',
    '68': 'payment_intent_payment_attempt_expired payment_method_provider_timeout',
    '75': 'pin_try_exceeded',
    '91': 'issuer_not_available try_again_later',
    '94': 'duplicate_transaction',
    '96': 'processing_error reenter_transaction',
    N7: 'incorrect_cvc invalid_cvc',
  }),
  { status: '402', type: 'card_error', means: 'declined' },
  // An earlier or concurrent request may have done something.
  { type: 'idempotency_error', means: 'unknown' },
  { code: 'payment_intent_unexpected_state idempotency_key_in_use lock_timeout', means: 'unknown' },
  // The account's configuration is at fault: for example, the account is not allowed to send card numbers.
  { status: '402', type: 'invalid_request_error', decline_code: '', means: 'turned_away' },
  ...BY_STATUS,
]);

/** Returns the meaning of a decline; an unlisted reason is a soft decline. */
export function meaningOf(reason: string, outcome = ''): DeclineMeaning {
  return declineOrSoft(REFUSALS(outcome === 'blocked' ? { outcome } : { reason }));
}

/** Returns the outcome of a response with an error status, given its error; `declined` for a card's decline. */
export function fromRefusal(status: number, error: StripeError | undefined): Outcome | 'declined' {
  if (!error) return refusedOutcome('unknown', { status });
  const { type, code, decline_code, param } = error;
  const meaning = REFUSALS({ status, type, code, decline_code });
  if (meaning === undefined) return refusedOutcome('unknown', { status });
  if (meaning === 'declined') return 'declined';
  return refusedOutcome(meaning, {
    status,
    said: ` ${[code, param].join(' ').trim()}`,
    refused: param || code,
  });
}

/** Builds a decline from its error: a response's error, or the last error of an intent. */
export function declined(
  { decline_code, code, message }: StripeError,
  intent: Intent | undefined,
  providerData: ProviderData,
): Outcome {
  const reason = decline_code || code;
  const meaning = meaningOf(reason, intent?.latest_charge.outcome.type);
  providerData.iso8583ResponseCode = meaning.iso8583Code;
  providerData.responseCode = reason;
  providerData.responseMessage = message;
  return { kind: 'declined', providerData, ...meaning };
}

/** Returns true if a response says that the idempotency key was used by a request with other fields. */
export function isKeyUsed(result: HttpResult): boolean {
  return errorOf(bodyOf(result, 400))?.type === 'idempotency_error';
}
