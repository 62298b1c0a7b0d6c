import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { HttpResult } from '../kit/http-client.ts';
import { readMerchantAdvice, withMerchantAdvice } from '../kit/merchant-advice.ts';
import {
  ANOTHER_DAY,
  BY_STATUS,
  declineBy,
  declineByScheme,
  declineOrSoft,
  refusalTable,
  refusedOutcome,
  SOON,
} from '../kit/refusal.ts';
import { type Advice, type DeclineReason, isHard, withAdvice } from '../port/decline.ts';
import type { Outcome } from '../port/outcome.ts';
import { type Answer, providerDataOf, type ShownAs } from './answers.ts';

/** Advice by its word in the table below. */
const ADVICE: Readonly<Record<string, Advice>> = {
  NEVER: 'NEVER',
  REVOKED: 'REVOKED',
  NEW_DATA: 'NEW_DATA',
  AUTHENTICATE: 'AUTHENTICATE',
  NONE: 'NONE',
  SOON,
  ANOTHER_DAY,
};

/**
 * Adyen's refusal reasons: code, equivalent in ISO 8583 (field 39), advice, and text.
 * https://docs.adyen.com/development-resources/refusal-reasons, as of July 2026; the mapping is ours.
 */
const REASONS = `
2 05 NONE Refused
3 05 NONE Referral
4 96 SOON Acquirer Error
5 62 NONE Blocked Card
6 54 NEW_DATA Expired Card
7 13 NONE Invalid Amount
8 14 NEW_DATA Invalid Card Number
9 91 SOON Issuer Unavailable
10 57 NONE Not supported
11 1A AUTHENTICATE 3D Not Authenticated
12 51 ANOTHER_DAY Not enough balance
14 59 ANOTHER_DAY Acquirer Fraud
15 05 NONE Cancelled
16 05 NONE Shopper Cancelled
17 55 NEW_DATA Invalid Pin
18 75 ANOTHER_DAY Pin tries exceeded
19 55 NONE Pin validation not possible
20 59 ANOTHER_DAY FRAUD
21 12 NONE Not Submitted
22 59 ANOTHER_DAY FRAUD-CANCELLED
23 57 NONE Transaction Not Permitted
24 N7 NEW_DATA CVC Declined
25 62 NONE Restricted Card
26 57 REVOKED Revocation Of Auth
27 05 NONE Declined Non Generic
28 61 ANOTHER_DAY Withdrawal amount exceeded
29 65 ANOTHER_DAY Withdrawal count exceeded
31 59 ANOTHER_DAY Issuer Suspected Fraud
32 05 NEW_DATA AVS Declined
33 55 NONE Card requires online pin
34 52 NONE No checking account available on Card
35 53 NONE No savings account available on Card
36 55 NONE Mobile pin required
37 65 NONE Contactless fallback
38 1A AUTHENTICATE Authentication required
39 91 SOON RReq not received from DS
40 91 SOON Current AID is in Penalty Box
41 55 NONE CVM Required Restart Payment
42 1A AUTHENTICATE 3DS Authentication Error
43 55 NONE
44 05 NONE
45 05 NONE
46 57 NEVER Transaction blocked by Adyen to prevent excessive retry fees
50 57 NEW_DATA Token Revoked
`
  .trim()
  .split('\n')
  .map((row) => {
    const [, code = '', iso8583Code = '', word = '', text = ''] = /^(\d+) (..) (\w+) ?(.*)$/.exec(row) ?? [];
    const advice = ADVICE[word];
    if (!advice) throw new Error(`a refusal reason has no advice: ${row}`);
    return { code, text: asWord(text), means: declineBy(iso8583Code, advice) };
  });

function asWord(text: string): string {
  return text.toLowerCase().replace(/\s/g, '_');
}

const reasonRows = (column: 'code' | 'text') =>
  REASONS.filter((reason) => reason[column]).map(({ means, ...reason }) => ({
    [column]: reason[column],
    means,
  }));

/** Statuses with which Adyen refuses a request; 500 only for a validation error. */
const REFUSING = '400 401 403 404 405 413 415 422 429 500';
/** Errors about a card, which are declines despite the status of a refused request. */
const CARD_ERROR = { method: 'card', errorType: 'validation', status: REFUSING } as const;

/**
 * Columns: a response's HTTP status, and fields of its error (`errorCode` without leading zeros); the payment method of
 * the request; or a response's `resultCode`, with the code and the text of its reason.
 */
type Column = 'status' | 'errorType' | 'errorCode' | 'method' | 'resultCode' | 'code' | 'text';

/** Adyen's refusals. */
export const REFUSALS = refusalTable<Column>([
  // The shopper canceled: our own cancels come only after Adyen has processed the payment.
  { resultCode: 'Cancelled', means: declineBy('17', 'NONE') },
  ...reasonRows('code'),
  ...reasonRows('text'),
  { resultCode: 'Error', means: declineBy('96', SOON) },
  // Authorization requires the cardholder's authentication, but the response contains no page for it.
  { resultCode: 'RedirectShopper ChallengeShopper IdentifyShopper', means: declineBy('1A', 'AUTHENTICATE') },
  // A request with the same key is done or in progress, and its outcome counts.
  { errorCode: '704', means: 'unknown' },
  { ...CARD_ERROR, errorCode: '101 102', means: declineBy('14', 'NEW_DATA') },
  { ...CARD_ERROR, errorCode: '103 153', means: declineBy('N7', 'NEW_DATA') },
  { ...CARD_ERROR, errorCode: '129 141', means: declineBy('54', 'NEW_DATA') },
  // Adyen validates first: a request that fails validation was not processed, whatever the status.
  { status: '500', errorType: 'validation', means: 'turned_away' },
  ...BY_STATUS,
]);

/** ISO 8583 codes of approval, which mean nothing in a refusal. */
const APPROVALS: ReadonlySet<string> = new Set(['00', '08', '10', '11', '16', '85']);

/** Adyen's fields with the reason for a refusal. */
export type Refusal = {
  readonly resultCode: string;
  /** `refusalReasonCode`. */
  readonly code?: string;
  /** `refusalReason`. */
  readonly text?: string;
  /** The issuer's own code and text ("51 : Insufficient funds"), if the account is configured to receive them. */
  readonly raw?: string;
  /** `merchantAdviceCode`, if the account is configured to receive it. */
  readonly adviceCode?: string;
};

/**
 * Returns the meaning of a payment's refusal. The issuer's own code is the most precise and takes precedence, unless
 * Adyen's code forbids a retry that the issuer's would allow. An unknown code is a soft decline.
 */
export function meaningOf(refusal: Refusal): DeclineReason {
  const { resultCode, code = '', text = '', adviceCode = '' } = refusal;
  const byAdyen = declineOrSoft(REFUSALS({ resultCode, code, text: asWord(text) }));
  const byIssuer = issuersReason(refusal);
  const softens = byIssuer && isHard(byAdyen) && !isHard(byIssuer) && !byIssuer.nowhereElse;
  const { advice } = byIssuer ? withAdvice(byAdyen, byIssuer.advice) : byAdyen;
  const reason = byIssuer && !softens ? { ...byIssuer, advice } : byAdyen;
  return withMerchantAdvice(reason, readMerchantAdvice(adviceCode));
}

/** Returns the reason that the issuer gave, if the refusal contains it. */
function issuersReason({ resultCode, raw = '' }: Refusal): DeclineReason | undefined {
  const code = /^\s*([0-9A-Z]{1,2})\s*:/.exec(raw)?.[1]?.padStart(2, '0');
  if (resultCode === 'Cancelled' || code === undefined || APPROVALS.has(code)) return undefined;
  return declineByScheme(code);
}

const ERROR_TYPES: ReadonlySet<string> = new Set(['validation', 'security', 'configuration', 'internal']);

/** Returns true if a response is an error in Adyen's own form. */
export function isErrorBody(answer: Answer, status: number): boolean {
  return answer.status === status && ERROR_TYPES.has(answer.errorType);
}

/** Returns the outcome of a response with an error status, given its error. */
export function fromRefusal(status: number, answer: Answer, isCard: boolean, shownAs: ShownAs): Outcome {
  const { errorType, errorCode, message } = answer;
  const method = isCard ? 'card' : 'other';
  const meaning = isErrorBody(answer, status)
    ? REFUSALS({ status, errorType, errorCode: Number(errorCode), method })
    : undefined;
  if (meaning === undefined) return refusedOutcome('unknown', { status });
  if (typeof meaning === 'object') {
    return declined(meaning, { providerData: providerDataOf(answer, errorType, shownAs) });
  }
  // Adyen names a field only in its message, which may also quote values.
  const field = /\bfield '?([A-Za-z][\w.]*)/i.exec(message)?.[1];
  const said = meaning === 'unknown' ? ` ${errorCode}` : ` ${errorCode} ${message}`;
  return refusedOutcome(meaning, { status, said, refused: field ?? errorCode });
}

/** Returns the outcome if a header says that nothing was done and the key may be reused, regardless of the body. */
export function fromTransientError(
  result: HttpResult,
): Extract<HttpResult, { kind: 'not_sent' }> | undefined {
  if (result.kind !== 'answer' || result.status !== 500) return undefined;
  if (result.headers['transient-error'] !== 'true') return undefined;
  return {
    kind: 'not_sent',
    detail: 'the provider did not process the request: 500',
    because: 'unreachable',
  };
}

/** Builds a decline. */
export function declined(meaning: DeclineReason, reported: Reported): Outcome {
  reported.providerData.iso8583ResponseCode = meaning.iso8583Code;
  return { kind: 'declined', ...reported, ...meaning };
}

/** Fields of every outcome of a payment. */
export type Reported = {
  readonly providerData: ProviderData;
  readonly reference?: string;
  readonly providerPaymentId?: string;
};
