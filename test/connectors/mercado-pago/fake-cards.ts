import type { JsonObject } from '@bufbuild/protobuf';
import { passesLuhn } from '#src/luhn.ts';

/** The cards that the fake knows by their first digits, with the issuer. */
const METHODS: readonly (readonly [RegExp, id: string, type: string, issuer: number])[] = [
  [/^4915/, 'debvisa', 'debit_card', 158],
  [/^4/, 'visa', 'credit_card', 310],
  [/^(5[0-5]|2[2-7])/, 'master', 'credit_card', 24],
  [/^3[47]/, 'amex', 'credit_card', 67],
];

function methodOf(number: string) {
  return METHODS.find(([pattern]) => pattern.test(number));
}

/** The account's answer to a search for the payment methods of a card. */
export function methodsByBin(bin: string): JsonObject {
  const results = METHODS.filter((method) => method === methodOf(bin)).map(
    ([, id, payment_type_id, issuer]) => ({ id, payment_type_id, issuer: { id: issuer, name: 'A bank' } }),
  );
  return { paging: { total: results.length, limit: 30, offset: 0 }, results };
}

/** A token, which pays once. */
export type FakeToken = { readonly card: JsonObject; isUsed: boolean };

type Fault = { readonly message: string; readonly code: string };

/** Returns why the provider makes no token for a card. */
export function faultOfToken(body: JsonObject): Fault | undefined {
  const { card_number: number, expiration_month: month, expiration_year: year, security_code: code } = body;
  if (!/^\d{8,19}$/.test(String(number)) || !passesLuhn(String(number)))
    return { code: 'E301', message: 'invalid parameter card_number' };
  if (!/^(0[1-9]|1[0-2])$/.test(String(month)))
    return { code: '325', message: 'invalid parameter expiration_month' };
  if (!/^20\d\d$/.test(String(year))) return { code: '326', message: 'invalid parameter expiration_year' };
  if (code !== undefined && !/^\d{3,4}$/.test(String(code)))
    return { code: 'E302', message: 'invalid parameter security_code' };
  return undefined;
}

/** Returns why the provider refuses a payment by card. */
export function faultOfCharge(
  body: JsonObject,
  token: FakeToken | undefined,
  takesNoCode: boolean,
): string | undefined {
  if (!token || token.isUsed) return 'Card Token not found';
  const { payment_method_id: id, installments, payer, transaction_amount: amount, issuer_id } = body;
  const [, method, , issuer] = methodOf(String(token.card.card_number)) ?? [];
  if (method !== id) return 'payment_method_id does not belong to the card';
  if (issuer_id !== undefined && issuer_id !== issuer) return 'issuer_id is invalid';
  if (!Number.isInteger(installments) || Number(installments) < 1) return 'installments is required';
  if (typeof amount !== 'number' || amount <= 0) return 'transaction_amount must be positive';
  const { email } = payer as JsonObject;
  if (!/^[^@\s]+@[^@\s]+\.[^@\s]+$/.test(String(email))) return 'payer.email must be a valid email';
  if (token.card.security_code === undefined && !takesNoCode) return 'security_code_id is required';
  return undefined;
}

/** The states of a payment by the cardholder's name, as with the provider's test cards. */
const BY_NAME: Readonly<Record<string, readonly [status: string, detail: string]>> = {
  OTHE: ['rejected', 'cc_rejected_other_reason'],
  CONT: ['in_process', 'pending_contingency'],
  CALL: ['rejected', 'cc_rejected_call_for_authorize'],
  FUND: ['rejected', 'cc_rejected_insufficient_amount'],
  SECU: ['rejected', 'cc_rejected_bad_filled_security_code'],
  EXPI: ['rejected', 'cc_rejected_bad_filled_date'],
  FORM: ['rejected', 'cc_rejected_bad_filled_other'],
};

/** Returns the state of a new payment. A cardholder named like a `status_detail` is rejected with it. */
export function stateOfCharge(body: JsonObject, { card }: FakeToken): readonly [string, string] {
  const name = String((card.cardholder as JsonObject | undefined)?.name ?? '');
  const named = BY_NAME[name] ?? (/^[a-z0-9_]+$/.test(name) ? (['rejected', name] as const) : undefined);
  if (named)
    return body.binary_mode === true && named[0] === 'in_process' ? ['rejected', 'by_binary_mode'] : named;
  return body.capture === false ? ['authorized', 'pending_capture'] : ['approved', 'accredited'];
}

/** Returns the card of a payment as the provider shows it. */
export function shownCard({
  card_number,
  cardholder,
  expiration_month,
  expiration_year,
}: JsonObject): JsonObject {
  const number = String(card_number);
  return {
    ...{
      first_six_digits: number.slice(0, 6),
      last_four_digits: number.slice(-4),
      cardholder: cardholder ?? null,
    },
    ...{ expiration_month: Number(expiration_month), expiration_year: Number(expiration_year) },
  };
}
