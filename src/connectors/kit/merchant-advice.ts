import { type Advice, type DeclineReason, withAdvice } from '../port/decline.ts';

const DAY_HOURS = 24;
const later = (laterHours: number): Advice => ({ laterHours });

/** Mastercard's merchant advice codes (data element 48, subelement 84) with their texts. The advice is our reading. */
const CODES = new Map<string, readonly [Advice, string]>([
  ['01', ['NEW_DATA', 'New account information available']],
  ['02', [later(3 * DAY_HOURS), 'Cannot approve at this time, try again later']],
  ['03', ['NEVER', 'Do not try again']],
  ['04', ['NEW_DATA', 'Token requirements not fulfilled for this token type']],
  ['05', ['NONE', 'Negotiated value not approved']],
  ['21', ['REVOKED', 'Payment cancellation']],
  // Another account of the merchant, at another provider, may qualify.
  ['22', ['NONE', 'Merchant does not qualify for product code']],
  ['24', [later(1), 'Retry after 1 hour']],
  ['25', [later(DAY_HOURS), 'Retry after 24 hours']],
  ['26', [later(2 * DAY_HOURS), 'Retry after 2 days']],
  ['27', [later(4 * DAY_HOURS), 'Retry after 4 days']],
  ['28', [later(6 * DAY_HOURS), 'Retry after 6 days']],
  ['29', [later(8 * DAY_HOURS), 'Retry after 8 days']],
  ['30', [later(10 * DAY_HOURS), 'Retry after 10 days']],
  // The kind of card is no reason for the decline, except that a single-use number may have been used.
  ['40', ['NONE', 'Consumer non-reloadable prepaid card']],
  ['41', ['NEW_DATA', 'Consumer single-use virtual card number']],
  ['42', ['NEVER', 'Sanctions score exceeds applicable threshold value']],
  ['43', ['NONE', 'Consumer multi-use virtual card number']],
]);

const NO_INFORMATION = '00';

/** Mastercard's advice, as provider data shows it; both fields are '' if there is none. */
export type MerchantAdvice = {
  readonly merchantAdviceCode: string;
  /** '' for an unlisted code. */
  readonly merchantAdviceCodeMessage: string;
};

/** Reads a merchant advice code, which a text may follow: "01 : New account information available". */
export function readMerchantAdvice(text: string): MerchantAdvice {
  const code = /^\s*(\d{1,2})(?!\w)/.exec(text)?.[1]?.padStart(2, '0') ?? '';
  if (code === NO_INFORMATION) return readMerchantAdvice('');
  return { merchantAdviceCode: code, merchantAdviceCodeMessage: CODES.get(code)?.[1] ?? '' };
}

/**
 * Returns the reason for a decline with Mastercard's advice. If Mastercard asks to wait, no other provider is tried
 * meanwhile.
 */
export function withMerchantAdvice(
  reason: DeclineReason,
  { merchantAdviceCode }: MerchantAdvice,
): DeclineReason {
  const [advice] = CODES.get(merchantAdviceCode) ?? ['NONE' as const];
  const advised = withAdvice(reason, advice);
  return advised !== reason && typeof advice !== 'string' ? { ...advised, nowhereElse: true } : advised;
}
