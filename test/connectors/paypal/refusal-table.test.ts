import type { JsonObject } from '@bufbuild/protobuf';
import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { unknownOutcome } from '#src/connectors/kit/provider-answer.ts';
import { readOrder } from '#src/connectors/paypal/answers.ts';
import { fromAnswer, fromOrder } from '#src/connectors/paypal/from-provider.ts';
import { declineByProcessor } from '#src/connectors/paypal/refusals.ts';
import { declineOf } from '#src/connectors/port/decline.ts';
import { redirectAttempt } from '../attempts.ts';
import { CHECKOUT_URL, capturedAnswer, errorAnswer } from './answers.ts';

const shownAs = { providerId: 'PAYPAL', accountId: undefined };

/** Codes with different meanings for merchants; the table itself lists all codes. */
const CODES = [
  ['0500', '05', 'DO_NOT_HONOR', false],
  ['5120', '51', 'INSUFFICIENT_FUNDS', false],
  ['5400', '54', 'EXPIRED_CARD', true],
  ['9520', '41', 'REPORTED_LOST', true],
  ['00N7', 'N7', 'INVALID_SECURITY_CODE', true],
  ['PPAX', '61', 'LIMIT_EXCEEDED', false],
  ['5200', '94', 'DECLINED_BY_BANK', false],
  ['PPIF', '12', 'DECLINED_BY_BANK', false],
] as const;

const ISSUES = [
  ['INSTRUMENT_DECLINED', 'declined'],
  ['TRANSACTION_BLOCKED_BY_PAYEE', 'declined'],
  ['DUPLICATE_INVOICE_ID', 'unknown'],
  ['DUPLICATE_REQUEST_ID', 'unknown'],
  ['ORDER_ALREADY_CAPTURED', 'unknown'],
  ['ORDER_COMPLETION_IN_PROGRESS', 'unknown'],
  ['ORDER_NOT_APPROVED', 'pending'],
  ['PAYER_ACTION_REQUIRED', 'awaits_payer'],
  ['PAYEE_ACCOUNT_RESTRICTED', 'not_sent'],
  ['REFUND_AMOUNT_EXCEEDED', 'not_sent'],
] as const;

const respondedWith = (code: string, adviceCode = '') => ({
  response_code: code,
  payment_advice_code: adviceCode,
});

describe("PayPal's processor response codes", () => {
  it.each(CODES)(
    "PayPal's processor response code %s maps to ISO 8583 %s, %s",
    (response_code, iso8583Code, code, hard) => {
      const attempt = redirectAttempt();
      const order = capturedAnswer(attempt, { status: 'DECLINED', processor_response: { response_code } });
      const outcome = fromOrder(readOrder(order), { ...attempt, orderId: undefined, shownAs });
      expect(outcome).toMatchObject({ kind: 'declined', iso8583Code });
      expect('nowhereElse' in outcome).toBe(['5200', 'PPIF'].includes(response_code));
      expect(declineOf(iso8583Code)).toMatchObject({ code, hard });
    },
  );

  it('the last decline determines the outcome of an order that PayPal declined several times', () => {
    const attempt = redirectAttempt();
    const declined = (response_code: string) =>
      capturedAnswer(attempt, { status: 'DECLINED', processor_response: { response_code } });
    const unitOf = (answered: JsonObject) =>
      (answered.purchase_units as [JsonObject & { payments: { captures: JsonObject[] } }])[0];
    const [first, last] = [unitOf(declined('9520')), unitOf(declined('5120'))];
    const captures = [...first.payments.captures, ...last.payments.captures];
    const order = { ...declined('5120'), purchase_units: [{ ...last, payments: { captures } }] };
    const outcome = fromOrder(readOrder(order), { ...attempt, orderId: undefined, shownAs });
    expect(outcome).toMatchObject({ kind: 'declined', iso8583Code: '51' });
  });

  it("PayPal's unknown or approving response codes are soft declines if PayPal reports a decline", () => {
    const unknown = fc.string().map((text) => `${text}?`);
    const others = fc.constantFrom('', '0000', '1000', '7600', 'constructor', '__proto__');
    fc.assert(
      fc.property(
        fc.oneof(unknown, others),
        (code) => declineByProcessor(respondedWith(code)).iso8583Code === '05',
      ),
    );
    expect(declineOf('05').hard).toBe(false);
  });
});

it("PayPal's payment advice code is Mastercard's, and the record shows it", () => {
  const attempt = redirectAttempt();
  const order = capturedAnswer(attempt, {
    status: 'DECLINED',
    processor_response: { response_code: '0500', payment_advice_code: '21' },
  });
  expect(fromOrder(readOrder(order), { ...attempt, orderId: undefined, shownAs })).toMatchObject({
    iso8583Code: '05',
    advice: 'REVOKED',
    providerData: { merchantAdviceCode: '21', merchantAdviceCodeMessage: 'Payment cancellation' },
  });
  expect(declineByProcessor(respondedWith('5120', '02'))).toEqual({
    iso8583Code: '51',
    advice: { laterHours: 72 },
    nowhereElse: true,
  });
});

/** The outcome of a call that PayPal refuses with the given issue. */
function refusedFor(issue: string) {
  const links = [{ rel: 'payer-action', href: CHECKOUT_URL }];
  const body = Buffer.from(JSON.stringify(errorAnswer(issue, links)));
  const result = { kind: 'answer', status: 422, headers: {}, body } as const;
  return fromAnswer(result, shownAs, () => unknownOutcome('not read'));
}

describe("PayPal's issues", () => {
  it.each(ISSUES)("PayPal's issue %s makes a call %s", (issue, kind) => {
    expect(refusedFor(issue).kind).toBe(kind);
  });

  it("an issue of PayPal's that we do not know means only that the call was refused", () => {
    const unknown = fc.string().map((text) => `${text}?`);
    fc.assert(fc.property(unknown, (issue) => refusedFor(issue).kind === 'not_sent'));
  });
});
