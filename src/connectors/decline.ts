/**
 * A decline in the merchant's terms. A hard decline is never retried anywhere; after a soft decline, the payment may
 * succeed elsewhere or later.
 */
export type Decline = { readonly code: string; readonly message: string; readonly hard: boolean };

const soft = (code: string, message: string): Decline => ({ code, message, hard: false });
const hard = (code: string, message: string): Decline => ({ code, message, hard: true });

const LIMIT_EXCEEDED = soft('LIMIT_EXCEEDED', 'Card limit exceeded');
const EXPIRED_CARD = hard('EXPIRED_CARD', 'Expired card');
const INVALID_SECURITY_CODE = hard('INVALID_SECURITY_CODE', 'Invalid security code');
const ACQUIRER_CONTINGENCY = soft('ACQUIRER_CONTINGENCY', 'Acquirer or issuer temporarily unavailable');
const DECLINED_BY_BANK = soft('DECLINED_BY_BANK', 'Declined by bank');

/** Decline codes by ISO 8583 response code (field 39). */
const DECLINES = new Map<string, Decline>([
  ['05', soft('DO_NOT_HONOR', 'Do not honor')],
  ['14', hard('INVALID_CARD_NUMBER', 'Invalid card number')],
  ['17', hard('CANCELED_BY_PAYER', 'Canceled by the payer')],
  ['22', ACQUIRER_CONTINGENCY],
  ['33', EXPIRED_CARD],
  ['41', hard('REPORTED_LOST', 'Card reported lost')],
  ['43', hard('REPORTED_STOLEN', 'Card reported stolen')],
  ['51', soft('INSUFFICIENT_FUNDS', 'Insufficient funds')],
  ['54', EXPIRED_CARD],
  ['57', hard('USER_RESTRICTION', 'Transaction not permitted to cardholder')],
  ['59', hard('FRAUD_SUSPECTED', 'Suspected fraud')],
  ['61', LIMIT_EXCEEDED],
  ['62', soft('RESTRICTED_BY_BANK', 'Card restricted by bank')],
  ['65', LIMIT_EXCEEDED],
  // The issuer may have approved too late for the provider to notice, so no other provider is tried.
  ['68', hard('PROVIDER_TIMEOUT', 'Issuer did not answer in time')],
  ['80', ACQUIRER_CONTINGENCY],
  ['82', INVALID_SECURITY_CODE],
  ['90', ACQUIRER_CONTINGENCY],
  ['91', ACQUIRER_CONTINGENCY],
  ['92', ACQUIRER_CONTINGENCY],
  ['96', ACQUIRER_CONTINGENCY],
  ['N7', INVALID_SECURITY_CODE],
]);

/** Translates an ISO 8583 response code into a decline; an unlisted code is a soft DECLINED_BY_BANK. */
export function declineOf(iso8583Code: string): Decline {
  return DECLINES.get(iso8583Code.toUpperCase()) ?? DECLINED_BY_BANK;
}
