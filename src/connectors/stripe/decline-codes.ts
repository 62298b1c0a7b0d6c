import { type DeclineMeaning, declineTable, meaningOfIso } from '#src/connectors/decline.ts';

/**
 * Stripe's codes by their equivalent in ISO 8583 (field 39): decline codes, and the error codes that appear where there
 * is no decline code. https://docs.stripe.com/declines/codes, as of July 2026; the mapping is ours.
 */
const CODES_BY_ISO_8583: Readonly<Record<string, string>> = {
  '05':
    'approve_with_id call_issuer card_declined do_not_honor generic_decline incorrect_address incorrect_zip ' +
    'no_action_taken payment_method_provider_decline testmode_decline',
  '13': 'amount_too_small invalid_amount',
  '14': 'incorrect_number invalid_account invalid_number',
  '1A':
    'authentication_not_handled authentication_required mobile_device_authentication_required ' +
    'payment_intent_authentication_failure',
  '41': 'lost_card',
  '43': 'pickup_card stolen_card',
  '51': 'insufficient_funds',
  '54': 'expired_card invalid_expiry_month invalid_expiry_year new_account_information_available',
  '55': 'incorrect_pin invalid_pin offline_pin_required online_or_offline_pin_required',
  '57':
    'card_not_supported country_unsupported currency_not_supported do_not_try_again not_permitted ' +
    'revocation_of_all_authorizations revocation_of_authorization service_not_allowed stop_payment_order ' +
    'transaction_not_allowed',
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
};

const SUSPECTED_FRAUD = '59';
const BY_CODE = declineTable(CODES_BY_ISO_8583);

/**
 * Translates a code of Stripe's; a code that the table lacks is a soft decline.
 *
 * @param code `decline_code`, else `code`.
 * @param isBlocked true if Radar, Stripe's fraud detection, blocked the charge; the code does not matter then.
 */
export function meaningOf(code: string, isBlocked = false): DeclineMeaning {
  return isBlocked ? meaningOfIso(SUSPECTED_FRAUD) : BY_CODE(code);
}
