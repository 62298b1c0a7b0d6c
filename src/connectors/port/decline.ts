/**
 * A decline in the merchant's terms. A hard decline would be repeated by every provider; after a soft decline, the
 * payment may succeed elsewhere or later.
 */
export type Decline = { readonly code: string; readonly message: string; readonly hard: boolean };

/**
 * Advice of a decline about another try with the same card.
 *
 * - `NEVER`: no other try, anywhere. Schemes fine each one.
 * - `REVOKED`: no other try, because the cardholder stopped this payment or all payments to the merchant.
 * - `NEW_DATA`: only with other data, such as the new expiry date or the right security code.
 * - `AUTHENTICATE`: only if the cardholder is authenticated.
 * - `laterHours`: the same request may succeed after this time.
 * - `NONE`: nothing.
 *
 * `NEVER` and `REVOKED` need the word of the scheme (its response code or advice code) or of the provider. Our own
 * equivalent of a provider's reason in ISO 8583 is no such word.
 */
export type Advice =
  | 'NEVER'
  | 'REVOKED'
  | 'NEW_DATA'
  | 'AUTHENTICATE'
  | 'NONE'
  | { readonly laterHours: number };

/** The reason for a decline. */
export type DeclineReason = {
  /** ISO 8583 response code (field 39) equivalent to the provider's own code. */
  readonly iso8583Code: string;
  readonly advice: Advice;
  /** This attempt must not fail over: another provider might charge a second time, or the scheme asks to wait. */
  readonly nowhereElse?: true;
};

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

/** Advice by a scheme's own response code. Visa defines `NEVER` and `REVOKED`; other schemes use the codes alike. */
const ADVICE = new Map<string, Advice>([
  ...advise('NEVER', '04 07 12 15 41 43 46 57'),
  ...advise('REVOKED', 'R0 R1 R3'),
  ...advise('NEW_DATA', '14 33 54 55 6P 82 N7'),
  ...advise('AUTHENTICATE', '1A'),
  ...advise({ laterHours: 1 }, '19 22 68 80 86 90 91 92 93 96'),
  ...advise({ laterHours: 24 }, '51 59 61 65 75 N3 N4'),
]);

function advise(advice: Advice, codes: string): (readonly [string, Advice])[] {
  return codes.split(' ').map((code) => [code, advice]);
}

/** Returns the advice of a scheme's own response code (field 39), not of our equivalent for a provider's reason. */
export function adviceOfScheme(iso8583Code: string): Advice {
  return ADVICE.get(iso8583Code.toUpperCase()) ?? 'NONE';
}

/** Returns a reason with more precise advice. `NEVER` and `REVOKED` stand; `NONE` changes nothing. */
export function withAdvice(reason: DeclineReason, advice: Advice): DeclineReason {
  const isFinal = reason.advice === 'NEVER' || reason.advice === 'REVOKED';
  return isFinal || advice === 'NONE' ? reason : { ...reason, advice };
}

/** Returns true if every provider would decline the same request. */
export function isHard({ iso8583Code, advice }: DeclineReason): boolean {
  return declineOf(iso8583Code).hard || (advice !== 'NONE' && typeof advice === 'string');
}
