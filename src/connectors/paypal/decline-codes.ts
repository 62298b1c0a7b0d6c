import { type DeclineMeaning, declineTable } from '#src/connectors/decline.ts';

/** Meaning of an issue that says more than that the request was refused. */
export type IssueFact = DeclineMeaning | 'redirect' | 'pending' | 'look_up';

/** ISO 8583 codes, and PayPal's equivalent processor response codes. */
const PROCESSOR_CODES: Readonly<Record<string, string>> = {
  '05': '0100 0500 0R00 10BR 1393 5100 5170 5190 9530 9540 PPAD PPAR PPAV PPDV',
  '12': `1300 1312 1317 1320 1340 1350 1370 1384 1390 5210 5800 5900 8020 8030 9600 PCNR PPAG PPAI PPAU PPBG
     PPCE PPCR PPDC PPFE PPFI PPFV PPGR PPH1 PPIF PPII PPIM PPIT PPLR PPLS PPMB PPMD PPNC PPNM PPPH PPPI
     PPPM PPQC PPRE PPRF PPRR PPS0 PPS1 PPS2 PPS3 PPS4 PPS5 PPS6 PPSD PPTE PPTF PPTI PPTR PPTV PPUA PPUE
     PPUP PPUR PPVC PPVE PPVT`,
  '13': '1310',
  '14': '0390 1330 1335 5140 6300 7800 PP06',
  '1A': '5650 7700 7710 PPD3',
  '41': '9520',
  '43': '5150',
  '51': '5120',
  '54': '1380 5400 PPEF PPEX',
  '55': '0890 5130 5500 7900',
  '57': '0580 5160 5700 5930 5950 PPAE PPCO PPCT PPCU PPDI PPMC PPRN PPSE PPTT PPUC PPUI',
  '59': '9500 PPSC',
  '61': 'PPAX',
  '62': '1352 5180 PPAB PPFR',
  '63': '9510',
  '65': '5710 PPDT PPEL PPNL',
  '75': '5135',
  '91': '5910',
  '94': '5200',
  '96': '0800 0880 0960 1360 5920 8000 8010 8100 8110 8220 9100 PPER PPNT',
  N7: '00N7 1382 5110 PCVV PPC2',
};

/** PayPal refused the request's id: as after 5200 (94), another provider might charge a second time. */
const REQUEST_ID_REFUSED = 'PPIF';

/** ISO 8583 codes, and the issues that mean a declined payment. */
const DECLINING_ISSUES: Readonly<Record<string, string>> = {
  '05': `INSTRUMENT_DECLINED PAYMENT_SOURCE_DECLINED_BY_PROCESSOR PAYMENT_SOURCE_INFO_CANNOT_BE_VERIFIED
     REDIRECT_PAYER_FOR_ALTERNATE_FUNDING TRANSACTION_REFUSED`,
  '54': 'CARD_EXPIRED',
  '57': `COMPLIANCE_VIOLATION DOMESTIC_TRANSACTION_REQUIRED PAYER_ACCOUNT_LOCKED_OR_CLOSED PAYER_CANNOT_PAY
     PAYMENT_SOURCE_CANNOT_BE_USED`,
  '59': 'PAYEE_BLOCKED_TRANSACTION TRANSACTION_BLOCKED_BY_PAYEE',
  '61': 'TRANSACTION_LIMIT_EXCEEDED TRANSACTION_RECEIVING_LIMIT_EXCEEDED',
  '62': 'PAYER_ACCOUNT_RESTRICTED',
  '65': 'MAX_NUMBER_OF_PAYMENT_ATTEMPTS_EXCEEDED',
};

/** Issues that mean neither a refused request nor a decline. */
const OTHER_ISSUES = new Map<string, IssueFact>([
  ['PAYER_ACTION_REQUIRED', 'redirect'],
  ['ORDER_NOT_APPROVED', 'pending'],
  ['ORDER_ALREADY_CAPTURED', 'look_up'],
  ['ORDER_COMPLETION_IN_PROGRESS', 'look_up'],
  ['DUPLICATE_INVOICE_ID', 'look_up'],
  ['DUPLICATE_REQUEST_ID', 'look_up'],
]);

const BY_PROCESSOR_CODE = declineTable(PROCESSOR_CODES);
const DECLINING = new Set(Object.values(DECLINING_ISSUES).flatMap((issues) => issues.split(/\s+/)));
const BY_ISSUE = declineTable(DECLINING_ISSUES);

/** Translates the processor response code of a decline; an unknown one is a soft decline. */
export function declineOfProcessorCode(code: string): DeclineMeaning {
  const meaning = BY_PROCESSOR_CODE(code);
  return code === REQUEST_ID_REFUSED ? { ...meaning, nowhereElse: true } : meaning;
}

/** Translates an issue in PayPal's error; undefined if it says only that the request was refused. */
export function factOfIssue(issue: string): IssueFact | undefined {
  return DECLINING.has(issue) ? BY_ISSUE(issue) : OTHER_ISSUES.get(issue);
}
