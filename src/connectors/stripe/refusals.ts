import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '../kit/http-client.ts';
import { readMerchantAdvice, withMerchantAdvice } from '../kit/merchant-advice.ts';
import { bodyOf } from '../kit/provider-answer.ts';
import {
  ANOTHER_DAY,
  BY_STATUS,
  declineBy,
  declineOrSoft,
  declines,
  refusalTable,
  refusedOutcome,
  SOON,
} from '../kit/refusal.ts';
import { type Advice, adviceOfScheme, type DeclineReason, withAdvice } from '../port/decline.ts';
import type { Outcome } from '../port/outcome.ts';
import { errorOf, type Intent, type StripeError } from './answers.ts';

/**
 * Columns: a response's HTTP status and fields of its error; for a decline, its `reason` and its charge's `outcome`.
 */
type Column = 'status' | 'type' | 'code' | 'decline_code' | 'reason' | 'outcome';

/**
 * Stripe's refusals. A decline's reason is its decline code or, without one, the error code.
 * https://docs.stripe.com/declines/codes, as of July 2026; the ISO 8583 equivalents (field 39) are ours.
 */
export const REFUSALS = refusalTable<Column, 'declined'>([
  // Radar, Stripe's fraud detection, blocked the charge; the reason is then irrelevant.
  { outcome: 'blocked', means: declineBy('59', 'NONE') },
  ...declines('reason', 'NONE', {
    '05': `approve_with_id call_issuer card_declined do_not_honor generic_decline no_action_taken
      payment_method_provider_decline testmode_decline`,
    '13': 'amount_too_small invalid_amount',
    '55': 'offline_pin_required online_or_offline_pin_required',
    '57': `card_not_supported country_unsupported currency_not_supported not_permitted service_not_allowed
      transaction_not_allowed`,
    '59': 'merchant_blacklist',
    '61': 'amount_too_large',
    '62': 'restricted_card',
    '63': 'security_violation',
    '94': 'duplicate_transaction',
  }),
  ...declines('reason', 'NEVER', {
    '41': 'lost_card',
    '43': 'pickup_card stolen_card',
    '57': 'do_not_try_again',
  }),
  ...declines('reason', 'REVOKED', {
    '57': 'revocation_of_all_authorizations revocation_of_authorization stop_payment_order',
  }),
  ...declines('reason', 'NEW_DATA', {
    '05': 'incorrect_address incorrect_zip',
    '14': 'incorrect_number invalid_account invalid_number',
    '54': 'expired_card invalid_expiry_month invalid_expiry_year new_account_information_available',
    '55': 'incorrect_pin invalid_pin',
    N7: 'incorrect_cvc invalid_cvc',
  }),
  ...declines('reason', 'AUTHENTICATE', {
    '1A': `authentication_not_handled authentication_required mobile_device_authentication_required
      payment_intent_authentication_failure`,
  }),
  ...declines('reason', SOON, {
    '68': 'payment_intent_payment_attempt_expired payment_method_provider_timeout',
    '91': 'issuer_not_available try_again_later',
    '96': 'processing_error reenter_transaction',
  }),
  ...declines('reason', ANOTHER_DAY, {
    '51': 'insufficient_funds',
    '59': 'fraudulent',
    '65': 'card_decline_rate_limit_exceeded card_velocity_exceeded withdrawal_count_limit_exceeded',
    '75': 'pin_try_exceeded',
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
export function meaningOf(reason: string, outcome = ''): DeclineReason {
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

/** Stripe's own advice about a decline. */
const ADVICE: Readonly<Record<string, Advice>> = {
  do_not_try_again: 'NEVER',
  confirm_card_data: 'NEW_DATA',
  try_again_later: ANOTHER_DAY,
};

/** Builds a decline from its error: a response's error, or the last error of an intent. */
export function declined(
  error: StripeError,
  intent: Intent | undefined,
  providerData: ProviderData,
): Outcome {
  const { decline_code, code, message } = error;
  const outcome = intent?.latest_charge.outcome;
  const reason = decline_code || code;
  const adviceCode = error.advice_code || outcome?.advice_code || '';
  const networkCode = error.network_decline_code || outcome?.network_decline_code || '';
  const merchantAdvice = readMerchantAdvice(error.network_advice_code || outcome?.network_advice_code || '');
  const byStripe = withAdvice(meaningOf(reason, outcome?.type), ADVICE[adviceCode] ?? 'NONE');
  const meaning = withMerchantAdvice(withAdvice(byStripe, finalAdviceOf(networkCode)), merchantAdvice);
  Object.assign(providerData, merchantAdvice);
  providerData.iso8583ResponseCode = meaning.iso8583Code;
  providerData.responseCode = reason;
  providerData.responseMessage = message;
  return { kind: 'declined', providerData, ...meaning };
}

/** Returns the scheme's advice if it forbids every other try; in all other cases, Stripe's reason is as precise. */
function finalAdviceOf(networkCode: string): Advice {
  const advice = adviceOfScheme(networkCode);
  return advice === 'NEVER' || advice === 'REVOKED' ? advice : 'NONE';
}

/** Returns true if a response says that the idempotency key was used by a request with other fields. */
export function isKeyUsed(result: HttpResult): boolean {
  return errorOf(bodyOf(result, 400))?.type === 'idempotency_error';
}
