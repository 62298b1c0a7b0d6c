import { type DeclineMeaning, declineOf, meaningOfIso } from '#src/connectors/decline.ts';

/**
 * Adyen's refusal reasons: code, equivalent in ISO 8583 (field 39), and text.
 * https://docs.adyen.com/development-resources/refusal-reasons, as of July 2026; the mapping is ours.
 */
const REFUSAL_REASONS = `
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

const ISO_8583_BY_CODE = new Map(REFUSAL_REASONS.map(([, code = '', iso = '']) => [code, iso] as const));
const ISO_8583_BY_TEXT = new Map(
  REFUSAL_REASONS.flatMap(([, , iso = '', text]) => (text ? [[text.toLowerCase(), iso] as const] : [])),
);

/** Errors (`errorCode`) about the card: they are declines, though their status is that of a refused request. */
const ISO_8583_BY_CARD_ERROR: ReadonlyMap<number, string> = new Map([
  [101, '14'],
  [102, '14'],
  [103, 'N7'],
  [129, '54'],
  [141, '54'],
  [153, 'N7'],
]);

const DO_NOT_HONOR = '05';
const CUSTOMER_CANCELLATION = '17';
const SYSTEM_MALFUNCTION = '96';
const DUPLICATE = '94';
/** ISO 8583's codes of approval: with a refusal they mean nothing. */
const APPROVALS: ReadonlySet<string> = new Set(['00', '08', '10', '11', '16', '85']);

/** Fields of Adyen's that give the reason of a refusal. */
export type Refusal = {
  readonly resultCode: string;
  /** `refusalReasonCode`. */
  readonly code: string;
  /** `refusalReason`. */
  readonly text: string;
  /** The issuer's own code and text ("51 : Insufficient funds"), if the account is set to receive them. */
  readonly raw: string;
};

/**
 * Translates a refusal. The issuer's own code is the most precise, and wins unless Adyen's code forbids a retry that
 * the issuer's would allow. An unknown code is a soft decline.
 */
export function meaningOf({ resultCode, code, text, raw }: Refusal): DeclineMeaning {
  // The shopper left; we cancel nothing before it is processed.
  if (resultCode === 'Cancelled') return { iso8583Code: CUSTOMER_CANCELLATION };
  const byAdyen =
    ISO_8583_BY_CODE.get(code) ??
    ISO_8583_BY_TEXT.get(text.toLowerCase()) ??
    (resultCode === 'Error' ? SYSTEM_MALFUNCTION : DO_NOT_HONOR);
  const byIssuer = /^\s*([0-9A-Z]{1,2})\s*:/.exec(raw)?.[1]?.padStart(2, '0');
  if (byIssuer === undefined || APPROVALS.has(byIssuer)) return { iso8583Code: byAdyen };
  const softens = declineOf(byAdyen).hard && !declineOf(byIssuer).hard;
  return meaningOfIso(softens && byIssuer !== DUPLICATE ? byAdyen : byIssuer);
}

/** Translates an error about the card; undefined for any other. The code may or may not have leading zeros. */
export function meaningOfError(errorCode: string): DeclineMeaning | undefined {
  const iso8583Code = ISO_8583_BY_CARD_ERROR.get(Number(errorCode));
  return iso8583Code === undefined ? undefined : { iso8583Code };
}
