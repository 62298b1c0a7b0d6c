import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { declineOf } from '#src/connectors/decline.ts';
import { readOrder } from '#src/connectors/paypal/answers.ts';
import { fromAnswer, fromOrder } from '#src/connectors/paypal/from-provider.ts';
import { declineOfProcessorCode } from '#src/connectors/paypal/refusals.ts';
import { unknownOutcome } from '#src/connectors/provider-answer.ts';
import { redirectAttempt } from '../attempts.ts';
import { CHECKOUT_URL, capturedAnswer, errorAnswer } from './answers.ts';

const shownAs = { providerId: 'PAYPAL', accountId: undefined };

/** PayPal's processor response codes by ISO 8583 code, our own code, and whether it is hard, as the facts have them. */
const CODES = `
  05 DO_NOT_HONOR soft 0100 0500 0R00 10BR 1393 5100 5170 5190 9530 9540 PPAD PPAR PPAV PPDV
  12 DECLINED_BY_BANK soft 1300 1312 1317 1320 1340 1350 1370 1384 1390 5210 5800 5900 8020 8030
  12 DECLINED_BY_BANK soft 9600 PCNR PPAG PPAI PPAU PPBG PPCE PPCR PPDC PPFE PPFI PPFV PPGR PPH1
  12 DECLINED_BY_BANK soft PPIF PPII PPIM PPIT PPLR PPLS PPMB PPMD PPNC PPNM PPPH PPPI PPPM PPQC
  12 DECLINED_BY_BANK soft PPRE PPRF PPRR PPS0 PPS1 PPS2 PPS3 PPS4 PPS5 PPS6 PPSD PPTE PPTF PPTI
  12 DECLINED_BY_BANK soft PPTR PPTV PPUA PPUE PPUP PPUR PPVC PPVE PPVT
  13 DECLINED_BY_BANK soft 1310
  14 INVALID_CARD_NUMBER hard 0390 1330 1335 5140 6300 7800 PP06
  1A DECLINED_BY_BANK soft 5650 7700 7710 PPD3
  41 REPORTED_LOST hard 9520
  43 REPORTED_STOLEN hard 5150
  51 INSUFFICIENT_FUNDS soft 5120
  54 EXPIRED_CARD hard 1380 5400 PPEF PPEX
  55 DECLINED_BY_BANK soft 0890 5130 5500 7900
  57 USER_RESTRICTION hard 0580 5160 5700 5930 5950 PPAE PPCO PPCT PPCU PPDI PPMC PPRN PPSE PPTT
  57 USER_RESTRICTION hard PPUC PPUI
  59 FRAUD_SUSPECTED hard 9500 PPSC
  61 LIMIT_EXCEEDED soft PPAX
  62 RESTRICTED_BY_BANK soft 1352 5180 PPAB PPFR
  63 DECLINED_BY_BANK soft 9510
  65 LIMIT_EXCEEDED soft 5710 PPDT PPEL PPNL
  75 DECLINED_BY_BANK soft 5135
  91 ACQUIRER_CONTINGENCY soft 5910
  94 DECLINED_BY_BANK soft 5200
  96 ACQUIRER_CONTINGENCY soft 0800 0880 0960 1360 5920 8000 8010 8100 8110 8220 9100 PPER PPNT
  N7 INVALID_SECURITY_CODE hard 00N7 1382 5110 PCVV PPC2
`;
const NOWHERE_ELSE = ['5200', 'PPIF'];

/** PayPal's issues, with what becomes of a call that is refused with each. */
const ISSUES = `
  declined 05 INSTRUMENT_DECLINED PAYMENT_SOURCE_DECLINED_BY_PROCESSOR PAYMENT_SOURCE_INFO_CANNOT_BE_VERIFIED
  declined 05 REDIRECT_PAYER_FOR_ALTERNATE_FUNDING TRANSACTION_REFUSED
  declined 54 CARD_EXPIRED
  declined 57 COMPLIANCE_VIOLATION DOMESTIC_TRANSACTION_REQUIRED PAYER_ACCOUNT_LOCKED_OR_CLOSED
  declined 57 PAYER_CANNOT_PAY PAYMENT_SOURCE_CANNOT_BE_USED
  declined 59 PAYEE_BLOCKED_TRANSACTION TRANSACTION_BLOCKED_BY_PAYEE
  declined 61 TRANSACTION_LIMIT_EXCEEDED TRANSACTION_RECEIVING_LIMIT_EXCEEDED
  declined 62 PAYER_ACCOUNT_RESTRICTED
  declined 65 MAX_NUMBER_OF_PAYMENT_ATTEMPTS_EXCEEDED
  look_up - DUPLICATE_INVOICE_ID DUPLICATE_REQUEST_ID ORDER_ALREADY_CAPTURED
  look_up - ORDER_COMPLETION_IN_PROGRESS
  not_sent - AMOUNT_MISMATCH AUTHORIZATION_EXPIRED AUTHORIZATION_VOIDED
  not_sent - CAPTURE_FULLY_REFUNDED DECIMAL_PRECISION INVALID_CURRENCY_CODE
  not_sent - INVALID_RESOURCE_ID PAYEE_ACCOUNT_INVALID PAYEE_ACCOUNT_LOCKED_OR_CLOSED
  not_sent - PAYEE_ACCOUNT_RESTRICTED PERMISSION_DENIED REFUND_AMOUNT_EXCEEDED
  not_sent - UNSUPPORTED_INTENT
  pending - ORDER_NOT_APPROVED
  redirect - PAYER_ACTION_REQUIRED
`;

const rows = (table: string) =>
  table
    .trim()
    .split('\n')
    .map((line) => line.trim().split(' '));
const CODE_ROWS = rows(CODES).flatMap(([iso = '', unified = '', how = '', ...codes]) =>
  codes.map((code) => [code, iso, unified, how] as const),
);
const ISSUE_ROWS = rows(ISSUES).flatMap(([outcome = '', iso = '', ...issues]) =>
  issues.map((issue) => [issue, outcome, iso] as const),
);

describe("PayPal's processor response codes", () => {
  it.each(CODE_ROWS)('%s is ISO 8583 %s, %s, %s', (code, iso, unified, how) => {
    const attempt = redirectAttempt();
    const processor_response = { response_code: code };
    const order = capturedAnswer(attempt, { status: 'DECLINED', processor_response });
    const outcome = fromOrder(readOrder(order), { ...attempt, orderId: undefined, shownAs });
    expect(outcome).toMatchObject({ kind: 'declined', iso8583Code: iso });
    expect('nowhereElse' in outcome).toBe(NOWHERE_ELSE.includes(code));
    expect(declineOf(iso).code).toBe(unified);
    expect(declineOf(iso).hard).toBe(how === 'hard');
  });

  it('that nobody knows, and those of approvals, are soft declines where PayPal says that it declined', () => {
    const known = new Set(CODE_ROWS.map(([code]) => code));
    fc.assert(
      fc.property(
        fc.oneof(fc.string(), fc.constantFrom('', '0000', '1000', '7600', 'constructor', '__proto__')),
        (code) => known.has(code) || declineOfProcessorCode(code).iso8583Code === '05',
      ),
    );
    expect(declineOf('05').hard).toBe(false);
  });
});

/** The outcome of a call that PayPal refuses for an issue. */
function refusedFor(issue: string) {
  const links = [{ rel: 'payer-action', href: CHECKOUT_URL }];
  const body = Buffer.from(JSON.stringify(errorAnswer(issue, links)));
  const result = { kind: 'answer', status: 422, headers: {}, body } as const;
  return fromAnswer(result, shownAs, () => unknownOutcome('not read'));
}

describe("PayPal's issues", () => {
  it.each(ISSUE_ROWS)('%s makes a call %s (%s)', (issue, outcome, iso) => {
    const read = refusedFor(issue);
    expect(read.kind).toBe(outcome === 'look_up' ? 'unknown' : outcome);
    if (read.kind === 'declined') expect(read.iso8583Code).toBe(iso);
  });

  it('that nobody knows say no more than that the call was refused', () => {
    const known = new Set<string>(ISSUE_ROWS.map(([issue]) => issue));
    fc.assert(fc.property(fc.string(), (issue) => known.has(issue) || refusedFor(issue).kind === 'not_sent'));
  });
});
