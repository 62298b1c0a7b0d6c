import { type CaseReason, MAX_REASON } from '../port/dispute-report.ts';

/** Reasons of disputes, by the reason codes of Visa and Mastercard. Every other code is OTHER. */
const REASONS: Readonly<Record<string, CaseReason>> = {
  '10.1': 'FRAUDULENT',
  '10.2': 'FRAUDULENT',
  '10.3': 'FRAUDULENT',
  '10.4': 'FRAUDULENT',
  '10.5': 'FRAUDULENT',
  '12.5': 'INCORRECT_AMOUNT',
  '12.6.1': 'DUPLICATE',
  '13.1': 'NOT_RECEIVED',
  '13.2': 'CANCELED_RECURRING',
  '13.3': 'NOT_AS_DESCRIBED',
  '13.6': 'CREDIT_NOT_PROCESSED',
  '13.7': 'CREDIT_NOT_PROCESSED',
  '4837': 'FRAUDULENT',
  '4863': 'UNRECOGNIZED',
  '4870': 'FRAUDULENT',
  '4871': 'FRAUDULENT',
};

/** Returns the reason that a card scheme's code stands for; undefined for ''. */
export function reasonOfCode(code: string): CaseReason | undefined {
  return code === '' ? undefined : (REASONS[code] ?? 'OTHER');
}

/** Returns a provider's text about a case, shortened; undefined for ''. */
export function caseText(text: string): string | undefined {
  return text.slice(0, MAX_REASON) || undefined;
}

/** Returns a time in a provider's text or in Unix seconds; undefined if it is none. */
export function caseTime(value: unknown): Date | undefined {
  const isSeconds = typeof value === 'number' && Number.isSafeInteger(value) && value > 0;
  if (!isSeconds && typeof value !== 'string') return undefined;
  const time = new Date(isSeconds ? value * 1000 : value);
  return Number.isNaN(time.getTime()) || time.getUTCFullYear() > 9999 ? undefined : time;
}
