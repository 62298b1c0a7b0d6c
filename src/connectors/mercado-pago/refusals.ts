import type { JsonObject } from '@bufbuild/protobuf';
import { textOf } from '../kit/provider-answer.ts';
import {
  ANOTHER_DAY,
  BY_STATUS,
  declineOrSoft,
  declines,
  refusalTable,
  refusedOutcome,
  SOON,
} from '../kit/refusal.ts';
import type { DeclineReason } from '../port/decline.ts';
import type { Outcome } from '../port/outcome.ts';
import { isErrorBody, readError } from './answers.ts';

/**
 * Columns: the `status_detail` of a failed payment; or a request's kind, its response's HTTP status, and the status's
 * family (4xx).
 */
type Column = 'status_detail' | 'request' | 'status' | 'family';

/**
 * Mercado Pago's refusals: the collection results in its documentation, 2024 to 2026, and a few that only integrators'
 * tables list. The ISO 8583 equivalents (field 39) are ours.
 */
export const REFUSALS = refusalTable<Column>([
  ...declines('status_detail', 'NONE', {
    // PSE: the payer's bank says no. Code 06 (error) has no more precise decline than DECLINED_BY_BANK.
    '06': 'bank_error',
    '05': `cc_rejected_call_for_authorize cc_rejected_other_reason rejected_by_bank rejected_by_issuer
      rejected_other_reason`,
    '57': `cc_rejected_card_disabled cc_rejected_card_type_not_allowed cc_rejected_invalid_installments
      rejected_by_regulations rejected_by_biz_rule`,
    '59': 'cc_rejected_blacklist',
    '94': 'cc_rejected_duplicated_payment',
  }),
  ...declines('status_detail', 'REVOKED', { '57': 'authorization_revoked' }),
  ...declines('status_detail', 'NEW_DATA', {
    '12': 'cc_rejected_bad_filled_other rejected_insufficient_data',
    '14': 'cc_rejected_bad_filled_card_number',
    '54': 'cc_rejected_bad_filled_date',
    N7: 'cc_rejected_bad_filled_security_code',
  }),
  ...declines('status_detail', 'AUTHENTICATE', {
    '1A': 'cc_rejected_3ds_mandatory cc_rejected_3ds_challenge',
  }),
  ...declines('status_detail', SOON, {
    '68': 'cc_rejected_time_out',
    '96': 'cc_rejected_card_error',
  }),
  ...declines('status_detail', ANOTHER_DAY, {
    '51': 'cc_rejected_insufficient_amount insufficient_amount insufficient_money',
    '59': 'cc_rejected_high_risk rejected_high_risk',
    '61': 'cc_amount_rate_limit_exceeded',
    '65': 'cc_rejected_max_attempts',
  }),
  // Nobody can pay a preference without its URL, nor with a card's token that nobody has: nothing happened in any case.
  { request: 'preference card_token', status: '401 403 429', means: 'unreachable' },
  { request: 'preference card_token', family: '4xx', means: 'turned_away' },
  { request: 'preference card_token', means: 'unreachable' },
  // The rate limit may have been reached after the request was carried out.
  { request: 'refund payment capture cancel', status: '429', means: 'unknown' },
  ...BY_STATUS,
]);

/** Returns the meaning of a failed payment's `status_detail`; an unlisted one is a soft decline. */
export function meaningOf(statusDetail: string): DeclineReason {
  return declineOrSoft(REFUSALS({ status_detail: statusDetail }));
}

/** An object that is made before any money can move: a page on which a payer pays, or the token of a card. */
type Preparation = 'preference' | 'card_token';

/** Returns the outcome of a refused request that moves no money. */
export function preparationRefusal(
  request: Preparation,
  status: number,
  body: JsonObject | undefined,
): Outcome {
  const meaning = REFUSALS({ request, status, family: status >= 400 && status < 500 ? '4xx' : '' });
  const outcome = notMade(`the response was ${status}`, request);
  if (meaning !== 'turned_away') return outcome;
  return { ...outcome, because: meaning, refused: refusedFieldOf(body) };
}

/** Builds the outcome of a preparation without a valid response: it counts as not sent. */
export function notMade(
  detail: string,
  request: Preparation = 'preference',
): Extract<Outcome, { kind: 'not_sent' }> {
  const because = 'unreachable';
  const what = request === 'preference' ? 'no payable preference exists' : 'the card was not charged';
  return { kind: 'not_sent', detail: `${what}: ${detail}`, because };
}

/** Returns the outcome of a refused request for a refund, a payment, or a payment's capture or cancel. */
export function requestRefusal(
  request: 'refund' | 'payment' | 'capture' | 'cancel',
  status: number,
  body: JsonObject,
): Outcome {
  const meaning = isErrorBody(body, status) ? REFUSALS({ request, status }) : 'unknown';
  return refusedOutcome(meaning, { status, refused: refusedFieldOf(body) });
}

/** Matches names of fields that we send. */
const FIELD =
  /\b(payer\.(?:email|phone|identification|address|first_name|last_name|entity_type)|transaction_amount|payment_method_id|issuer_id|installments|token|card_number|security_code|expiration_(?:month|year)|cardholder|point_of_interaction|forward_data|additional_info|capture|financial_institution|callback_url|ip_address|description|statement_descriptor|unit_price|quantity|currency_id|items|title|category_id|external_reference|back_urls?|auto_return|notification_url|expiration_date_to|date_of_expiration|binary_mode|excluded_payment_types|metadata|amount)\b/;

/** Returns the field named in an error's texts, which may also quote values; '' if there is none. */
export function refusedFieldOf(body: JsonObject | undefined): string {
  const { message, cause } = readError(body);
  return FIELD.exec([textOf(message), ...cause.map(({ description }) => description)].join('\n'))?.[1] ?? '';
}
