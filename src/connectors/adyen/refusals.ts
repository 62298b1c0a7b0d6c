import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import { declineOf } from '#src/connectors/decline.ts';
import type { HttpResult } from '#src/connectors/http-client.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import {
  BY_STATUS,
  type DeclineMeaning,
  declineBy,
  declineOrSoft,
  refusalTable,
  refusedOutcome,
} from '#src/connectors/refusal.ts';
import { type Answer, providerDataOf, type ShownAs } from './answers.ts';

/**
 * Adyen's refusal reasons: code, equivalent in ISO 8583 (field 39), and text.
 * https://docs.adyen.com/development-resources/refusal-reasons, as of July 2026; the mapping is ours.
 */
const REASONS = `
2 05 Refused
3 05 Referral
4 96 Acquirer Error
5 62 Blocked Card
6 54 Expired Card
7 13 Invalid Amount
8 14 Invalid Card Number
9 91 Issuer Unavailable
10 57 Not supported
11 1A 3D Not Authenticated
12 51 Not enough balance
14 59 Acquirer Fraud
15 05 Cancelled
16 05 Shopper Cancelled
17 55 Invalid Pin
18 75 Pin tries exceeded
19 55 Pin validation not possible
20 59 FRAUD
21 12 Not Submitted
22 59 FRAUD-CANCELLED
23 57 Transaction Not Permitted
24 N7 CVC Declined
25 62 Restricted Card
26 57 Revocation Of Auth
27 05 Declined Non Generic
28 61 Withdrawal amount exceeded
29 65 Withdrawal count exceeded
31 59 Issuer Suspected Fraud
32 05 AVS Declined
33 55 Card requires online pin
34 52 No checking account available on Card
35 53 No savings account available on Card
36 55 Mobile pin required
37 65 Contactless fallback
38 1A Authentication required
39 91 RReq not received from DS
40 91 Current AID is in Penalty Box
41 55 CVM Required Restart Payment
42 1A 3DS Authentication Error
43 55
44 05
45 05
46 57 Transaction blocked by Adyen to prevent excessive retry fees
50 57 Token Revoked
`
  .trim()
  .split('\n')
  .map((row) => /^(\d+) (..) ?(.*)$/.exec(row) ?? []);

const asWord = (text: string) => text.toLowerCase().replace(/\s/g, '_');
const reasonRows = (column: 'code' | 'text', at: number) =>
  REASONS.filter((row) => row[at]).map((row) => ({
    [column]: asWord(row[at] ?? ''),
    means: declineBy(row[2] ?? ''),
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
const REFUSALS = refusalTable<Column>([
  // The shopper canceled: our own cancels come only after Adyen has processed the payment.
  { resultCode: 'Cancelled', means: declineBy('17') },
  ...reasonRows('code', 1),
  ...reasonRows('text', 3),
  { resultCode: 'Error', means: declineBy('96') },
  // Authorization requires the cardholder's authentication, but the response contains no page for it.
  { resultCode: 'RedirectShopper ChallengeShopper IdentifyShopper', means: declineBy('1A') },
  // A request with the same key is done or in progress, and its outcome counts.
  { errorCode: '704', means: 'unknown' },
  { ...CARD_ERROR, errorCode: '101 102', means: declineBy('14') },
  { ...CARD_ERROR, errorCode: '103 153', means: declineBy('N7') },
  { ...CARD_ERROR, errorCode: '129 141', means: declineBy('54') },
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
};

/**
 * Returns the meaning of a payment's refusal. The issuer's own code is the most precise and takes precedence, unless
 * Adyen's code forbids a retry that the issuer's would allow. An unknown code is a soft decline.
 */
export function meaningOf({ resultCode, code = '', text = '', raw = '' }: Refusal): DeclineMeaning {
  const byAdyen = declineOrSoft(REFUSALS({ resultCode, code, text: asWord(text) }));
  const issuersCode = /^\s*([0-9A-Z]{1,2})\s*:/.exec(raw)?.[1]?.padStart(2, '0');
  if (resultCode === 'Cancelled' || issuersCode === undefined || APPROVALS.has(issuersCode)) return byAdyen;
  const byIssuer = declineBy(issuersCode);
  const softens = declineOf(byAdyen.iso8583Code).hard && !declineOf(issuersCode).hard;
  return softens && !byIssuer.nowhereElse ? byAdyen : byIssuer;
}

const ERROR_TYPES: ReadonlySet<string> = new Set(['validation', 'security', 'configuration', 'internal']);

/** Returns the outcome of a response with an error status, given its error. */
export function fromRefusal(status: number, answer: Answer, isCard: boolean, shownAs: ShownAs): Outcome {
  const { errorType, errorCode, message } = answer;
  const isAdyens = answer.status === status && ERROR_TYPES.has(errorType);
  const method = isCard ? 'card' : 'other';
  const meaning = isAdyens
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
export function fromTransientError(result: HttpResult): Outcome | undefined {
  if (result.kind !== 'answer' || result.status !== 500) return undefined;
  if (result.headers['transient-error'] !== 'true') return undefined;
  return {
    kind: 'not_sent',
    detail: 'the provider did not process the request: 500',
    because: 'unreachable',
  };
}

/** Builds a decline. */
export function declined(meaning: DeclineMeaning, reported: Reported): Outcome {
  reported.providerData.iso8583ResponseCode = meaning.iso8583Code;
  return { kind: 'declined', ...reported, ...meaning };
}

/** Fields of every outcome of a payment. */
export type Reported = { readonly providerData: ProviderData; readonly reference?: string };
