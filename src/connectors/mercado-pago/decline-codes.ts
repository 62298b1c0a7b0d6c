import { declineTable } from '#src/connectors/decline.ts';

/**
 * ISO 8583 codes (field 39) by Mercado Pago's `status_detail` of a rejected payment; collection results of its
 * documentation, 2024 to 2026, and a few that only integrators' tables list. The mapping is ours.
 */
const CODES_BY_ISO_8583: Readonly<Record<string, string>> = {
  '05':
    'cc_rejected_call_for_authorize cc_rejected_other_reason rejected_by_bank rejected_by_issuer ' +
    'rejected_other_reason',
  '12': 'cc_rejected_bad_filled_other rejected_insufficient_data',
  '14': 'cc_rejected_bad_filled_card_number',
  '1A': 'cc_rejected_3ds_mandatory cc_rejected_3ds_challenge',
  '51': 'cc_rejected_insufficient_amount insufficient_amount insufficient_money',
  '54': 'cc_rejected_bad_filled_date',
  '57':
    'cc_rejected_card_disabled cc_rejected_card_type_not_allowed cc_rejected_invalid_installments ' +
    'rejected_by_regulations rejected_by_biz_rule authorization_revoked',
  '59': 'cc_rejected_blacklist cc_rejected_high_risk rejected_high_risk',
  '61': 'cc_amount_rate_limit_exceeded',
  '65': 'cc_rejected_max_attempts',
  '68': 'cc_rejected_time_out',
  '91': 'bank_error',
  '94': 'cc_rejected_duplicated_payment',
  '96': 'cc_rejected_card_error',
  N7: 'cc_rejected_bad_filled_security_code',
};

/** Translates the `status_detail` of a failed payment; one that the table lacks is a soft decline. */
export const meaningOf = declineTable(CODES_BY_ISO_8583);
