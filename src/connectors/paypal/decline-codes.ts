/** The meaning of a decline: its ISO 8583 code, and whether no other provider may be asked. */
export type DeclineFact = {
  /** ISO 8583 response code (field 39). */
  readonly iso8583Code: string;
  readonly nowhereElse?: true;
};

/** Meanings of the issues that say more than that the request was refused. */
export type IssueFact = DeclineFact | 'redirect' | 'pending' | 'look_up';

/** ISO 8583 codes, and the processor response codes of PayPal that amount to each. */
const PROCESSOR_CODES: readonly (readonly [iso8583Code: string, codes: string])[] = [
  ['05', '0100 0500 0R00 10BR 1393 5100 5170 5190 9530 9540 PPAD PPAR PPAV PPDV'],
  [
    '12',
    `1300 1312 1317 1320 1340 1350 1370 1384 1390 5210 5800 5900 8020 8030 9600 PCNR PPAG PPAI PPAU PPBG
     PPCE PPCR PPDC PPFE PPFI PPFV PPGR PPH1 PPIF PPII PPIM PPIT PPLR PPLS PPMB PPMD PPNC PPNM PPPH PPPI
     PPPM PPQC PPRE PPRF PPRR PPS0 PPS1 PPS2 PPS3 PPS4 PPS5 PPS6 PPSD PPTE PPTF PPTI PPTR PPTV PPUA PPUE
     PPUP PPUR PPVC PPVE PPVT`,
  ],
  ['13', '1310'],
  ['14', '0390 1330 1335 5140 6300 7800 PP06'],
  ['1A', '5650 7700 7710 PPD3'],
  ['41', '9520'],
  ['43', '5150'],
  ['51', '5120'],
  ['54', '1380 5400 PPEF PPEX'],
  ['55', '0890 5130 5500 7900'],
  ['57', '0580 5160 5700 5930 5950 PPAE PPCO PPCT PPCU PPDI PPMC PPRN PPSE PPTT PPUC PPUI'],
  ['59', '9500 PPSC'],
  ['61', 'PPAX'],
  ['62', '1352 5180 PPAB PPFR'],
  ['63', '9510'],
  ['65', '5710 PPDT PPEL PPNL'],
  ['75', '5135'],
  ['91', '5910'],
  ['94', '5200'],
  ['96', '0800 0880 0960 1360 5920 8000 8010 8100 8110 8220 9100 PPER PPNT'],
  ['N7', '00N7 1382 5110 PCVV PPC2'],
];

/**
 * 5200 says that the issuer saw an equal charge just now, PPIF that PayPal refused the request's id: another provider
 * might charge a second time.
 */
const NOWHERE_ELSE = new Set(['5200', 'PPIF']);

/** ISO 8583 codes, and the issues by which PayPal says that the payment was declined. */
const DECLINING_ISSUES: readonly (readonly [iso8583Code: string, issues: string])[] = [
  [
    '05',
    `INSTRUMENT_DECLINED PAYMENT_SOURCE_DECLINED_BY_PROCESSOR PAYMENT_SOURCE_INFO_CANNOT_BE_VERIFIED
     REDIRECT_PAYER_FOR_ALTERNATE_FUNDING TRANSACTION_REFUSED`,
  ],
  ['54', 'CARD_EXPIRED'],
  [
    '57',
    `COMPLIANCE_VIOLATION DOMESTIC_TRANSACTION_REQUIRED PAYER_ACCOUNT_LOCKED_OR_CLOSED PAYER_CANNOT_PAY
     PAYMENT_SOURCE_CANNOT_BE_USED`,
  ],
  ['59', 'PAYEE_BLOCKED_TRANSACTION TRANSACTION_BLOCKED_BY_PAYEE'],
  ['61', 'TRANSACTION_LIMIT_EXCEEDED TRANSACTION_RECEIVING_LIMIT_EXCEEDED'],
  ['62', 'PAYER_ACCOUNT_RESTRICTED'],
  ['65', 'MAX_NUMBER_OF_PAYMENT_ATTEMPTS_EXCEEDED'],
];

/** Issues after which something else happens than that the request was refused. */
const OTHER_ISSUES: readonly (readonly [issue: string, fact: IssueFact])[] = [
  ['PAYER_ACTION_REQUIRED', 'redirect'],
  ['ORDER_NOT_APPROVED', 'pending'],
  ['ORDER_ALREADY_CAPTURED', 'look_up'],
  ['ORDER_COMPLETION_IN_PROGRESS', 'look_up'],
  ['DUPLICATE_INVOICE_ID', 'look_up'],
  ['DUPLICATE_REQUEST_ID', 'look_up'],
];

const DO_NOT_HONOR: DeclineFact = { iso8583Code: '05' };
const DECLINES = new Map<string, DeclineFact>(
  PROCESSOR_CODES.flatMap(([iso8583Code, codes]) =>
    codes
      .split(/\s+/)
      .map((code) => [code, { iso8583Code, ...(NOWHERE_ELSE.has(code) && { nowhereElse: true }) }] as const),
  ),
);
const ISSUES = new Map<string, IssueFact>([
  ...DECLINING_ISSUES.flatMap(([iso8583Code, issues]) =>
    issues.split(/\s+/).map((issue) => [issue, { iso8583Code }] as const),
  ),
  ...OTHER_ISSUES,
]);

/** Translates PayPal's processor response code beside a decline; an unknown one is a soft decline. */
export function declineOfProcessorCode(code: string): DeclineFact {
  return DECLINES.get(code) ?? DO_NOT_HONOR;
}

/** Translates an issue in PayPal's error; undefined: the request was refused, and no more is said. */
export function factOfIssue(issue: string): IssueFact | undefined {
  return ISSUES.get(issue);
}
