import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { declineOf } from '#src/connectors/decline.ts';
import { meaningOf } from '#src/connectors/stripe/refusals.ts';

/** Stripe's codes, each with its ISO 8583 code, our own code and whether it is hard, as the facts have them. */
const TABLE = `
  amount_too_large 61 LIMIT_EXCEEDED soft
  amount_too_small 13 DECLINED_BY_BANK soft
  approve_with_id 05 DO_NOT_HONOR soft
  authentication_not_handled 1A DECLINED_BY_BANK soft
  authentication_required 1A DECLINED_BY_BANK soft
  call_issuer 05 DO_NOT_HONOR soft
  card_decline_rate_limit_exceeded 65 LIMIT_EXCEEDED soft
  card_declined 05 DO_NOT_HONOR soft
  card_not_supported 57 USER_RESTRICTION hard
  card_velocity_exceeded 65 LIMIT_EXCEEDED soft
  country_unsupported 57 USER_RESTRICTION hard
  currency_not_supported 57 USER_RESTRICTION hard
  do_not_honor 05 DO_NOT_HONOR soft
  do_not_try_again 57 USER_RESTRICTION hard
  duplicate_transaction 94 DECLINED_BY_BANK soft nowhere-else
  expired_card 54 EXPIRED_CARD hard
  fraudulent 59 FRAUD_SUSPECTED hard
  generic_decline 05 DO_NOT_HONOR soft
  incorrect_address 05 DO_NOT_HONOR soft
  incorrect_cvc N7 INVALID_SECURITY_CODE hard
  incorrect_number 14 INVALID_CARD_NUMBER hard
  incorrect_pin 55 DECLINED_BY_BANK soft
  incorrect_zip 05 DO_NOT_HONOR soft
  insufficient_funds 51 INSUFFICIENT_FUNDS soft
  invalid_account 14 INVALID_CARD_NUMBER hard
  invalid_amount 13 DECLINED_BY_BANK soft
  invalid_cvc N7 INVALID_SECURITY_CODE hard
  invalid_expiry_month 54 EXPIRED_CARD hard
  invalid_expiry_year 54 EXPIRED_CARD hard
  invalid_number 14 INVALID_CARD_NUMBER hard
  invalid_pin 55 DECLINED_BY_BANK soft
  issuer_not_available 91 ACQUIRER_CONTINGENCY soft
  lost_card 41 REPORTED_LOST hard
  merchant_blacklist 59 FRAUD_SUSPECTED hard
  mobile_device_authentication_required 1A DECLINED_BY_BANK soft
  new_account_information_available 54 EXPIRED_CARD hard
  no_action_taken 05 DO_NOT_HONOR soft
  not_permitted 57 USER_RESTRICTION hard
  offline_pin_required 55 DECLINED_BY_BANK soft
  online_or_offline_pin_required 55 DECLINED_BY_BANK soft
  payment_intent_authentication_failure 1A DECLINED_BY_BANK soft
  payment_intent_payment_attempt_expired 68 PROVIDER_TIMEOUT soft
  payment_method_provider_decline 05 DO_NOT_HONOR soft
  payment_method_provider_timeout 68 PROVIDER_TIMEOUT soft
  pickup_card 43 REPORTED_STOLEN hard
  pin_try_exceeded 75 DECLINED_BY_BANK soft
  processing_error 96 ACQUIRER_CONTINGENCY soft
  reenter_transaction 96 ACQUIRER_CONTINGENCY soft
  restricted_card 62 RESTRICTED_BY_BANK soft
  revocation_of_all_authorizations 57 USER_RESTRICTION hard
  revocation_of_authorization 57 USER_RESTRICTION hard
  security_violation 63 DECLINED_BY_BANK soft
  service_not_allowed 57 USER_RESTRICTION hard
  stolen_card 43 REPORTED_STOLEN hard
  stop_payment_order 57 USER_RESTRICTION hard
  testmode_decline 05 DO_NOT_HONOR soft
  transaction_not_allowed 57 USER_RESTRICTION hard
  try_again_later 91 ACQUIRER_CONTINGENCY soft
  withdrawal_count_limit_exceeded 65 LIMIT_EXCEEDED soft
`;
const ROWS = TABLE.trim()
  .split('\n')
  .map(
    (line) =>
      line.trim().split(' ') as [code: string, iso: string, unified: string, how: string, never?: string],
  );

describe("Stripe's decline codes", () => {
  it.each(ROWS)('%s is ISO 8583 %s, %s, %s', (code, iso, unified, how, never) => {
    const { iso8583Code, nowhereElse } = meaningOf(code);
    expect([iso8583Code, nowhereElse]).toEqual([iso, never === undefined ? undefined : true]);
    const decline = declineOf(iso8583Code);
    expect(decline.code).toBe(unified);
    // The issuer may have said yes, too late to be heard: of all providers' timeouts we go nowhere else.
    expect(decline.hard).toBe(how === 'hard' || iso === '68');
  });

  it('keep a duplicate from going elsewhere, and nothing else', () => {
    expect(ROWS.filter(([code]) => meaningOf(code).nowhereElse).map(([code]) => code)).toEqual([
      'duplicate_transaction',
    ]);
  });

  it('that nobody knows are soft declines', () => {
    const known = new Set(ROWS.map(([code]) => code));
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.constantFrom('', 'constructor', '__proto__', 'approved', 'succeeded')),
        (code) => known.has(code) || meaningOf(code).iso8583Code === '05',
      ),
    );
    expect(declineOf('05').hard).toBe(false);
  });

  it('of a payment that Radar blocked are suspected fraud', () => {
    for (const [code] of ROWS) expect(meaningOf(code, 'blocked')).toEqual({ iso8583Code: '59' });
  });
});
