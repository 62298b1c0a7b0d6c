import type { JsonObject } from '@bufbuild/protobuf';
import type { HttpResult } from '../kit/http-client.ts';
import { readMerchantAdvice, withMerchantAdvice } from '../kit/merchant-advice.ts';
import { alarmingOutcome, readJsonObject, unknownOutcome } from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import {
  ANOTHER_DAY,
  BY_STATUS,
  declineOrSoft,
  declines,
  refusalTable,
  refusedOutcome,
  SOON,
} from '../kit/refusal.ts';
import type { DeclineReason } from '../port/decline.ts';
import type { Outcome } from '../port/outcome.ts';
import { errorDataOf, isErrorBody, type PayPalError, readError, type Transaction } from './answers.ts';

/** Columns: a declined capture's processor response code; or an error's HTTP status and first issue. */
type Column = 'processor' | 'status' | 'issue';

/** Meanings of an issue: the payer or PayPal still has to act, or the order may already be paid. */
type OfIssue = 'redirect' | 'pending' | 'look_up' | 'paid_by_another';

/** PayPal's refusals. An issue is more specific than the status of its refusal. The ISO 8583 equivalents are ours. */
export const REFUSALS = refusalTable<Column, OfIssue>([
  // PayPal refused the request's id. As with code 5200 (94), another provider might charge a second time.
  { processor: 'PPIF', means: { iso8583Code: '12', advice: 'NONE', nowhereElse: true } },
  ...declines('processor', 'NONE', {
    '05': '0100 0500 0R00 10BR 1393 5100 9530 9540 PPAR PPDV',
    '12': `1300 1312 1317 1320 1340 1350 1370 1384 1390 5210 5800 5900 8020 8030 9600 PCNR PPAG PPAI PPAU PPBG
     PPCE PPCR PPDC PPFE PPFI PPFV PPGR PPH1 PPII PPIM PPIT PPLR PPLS PPMB PPMD PPNC PPNM PPPH PPPI
     PPPM PPQC PPRE PPRF PPRR PPS0 PPS1 PPS2 PPS3 PPS4 PPS5 PPS6 PPSD PPTE PPTF PPTI PPTR PPTV PPUA PPUE
     PPUP PPUR PPVC PPVE PPVT`,
    '13': '1310',
    '57': '0580 5160 5700 5930 PPAE PPCO PPCT PPCU PPDI PPMC PPSE PPTT PPUC PPUI',
    '59': 'PPSC',
    '62': '1352 PPAB PPFR',
    '63': '9510',
    '94': '5200',
  }),
  // Closed, lost or stolen, "do not retry the same card", and "reattempt not permitted".
  ...declines('processor', 'NEVER', {
    '14': '5140',
    '41': '9520',
    '43': '5150',
    '57': 'PPRN',
    '59': '9500',
    '62': '5180',
  }),
  ...declines('processor', 'NEW_DATA', {
    '05': '5170 5190 PPAD PPAV',
    '14': '0390 1330 1335 6300 7800 PP06',
    '54': '1380 5400 PPEF PPEX',
    '55': '0890 5130 5500 7900',
    // The issuer has replaced the card.
    '57': '5950',
    N7: '00N7 1382 5110 PCVV PPC2',
  }),
  ...declines('processor', 'AUTHENTICATE', { '1A': '5650 7700 7710 PPD3' }),
  ...declines('processor', SOON, {
    '91': '5910',
    '96': '0800 0880 0960 1360 5920 8000 8010 8100 8110 8220 9100 PPER PPNT',
  }),
  ...declines('processor', ANOTHER_DAY, {
    '51': '5120',
    '61': 'PPAX',
    '65': '5710 PPDT PPEL PPNL',
    '75': '5135',
  }),
  ...declines('issue', 'NONE', {
    '05': `INSTRUMENT_DECLINED PAYMENT_SOURCE_DECLINED_BY_PROCESSOR REDIRECT_PAYER_FOR_ALTERNATE_FUNDING
     TRANSACTION_REFUSED`,
    '57': `COMPLIANCE_VIOLATION DOMESTIC_TRANSACTION_REQUIRED PAYER_ACCOUNT_LOCKED_OR_CLOSED PAYER_CANNOT_PAY
     PAYMENT_SOURCE_CANNOT_BE_USED`,
    '59': 'PAYEE_BLOCKED_TRANSACTION TRANSACTION_BLOCKED_BY_PAYEE',
    '62': 'PAYER_ACCOUNT_RESTRICTED',
  }),
  ...declines('issue', 'NEW_DATA', {
    '05': 'PAYMENT_SOURCE_INFO_CANNOT_BE_VERIFIED',
    '54': 'CARD_EXPIRED',
  }),
  ...declines('issue', ANOTHER_DAY, {
    '61': 'TRANSACTION_LIMIT_EXCEEDED TRANSACTION_RECEIVING_LIMIT_EXCEEDED',
    '65': 'MAX_NUMBER_OF_PAYMENT_ATTEMPTS_EXCEEDED',
  }),
  { issue: 'PAYER_ACTION_REQUIRED', means: 'redirect' },
  { issue: 'ORDER_NOT_APPROVED', means: 'pending' },
  { issue: 'ORDER_ALREADY_CAPTURED ORDER_COMPLETION_IN_PROGRESS DUPLICATE_REQUEST_ID', means: 'look_up' },
  { issue: 'DUPLICATE_INVOICE_ID', means: 'paid_by_another' },
  ...BY_STATUS,
]);

/** Returns the reason for which a processor declined a capture; an unknown code is a soft decline. */
export function declineByProcessor({
  response_code: processor,
  payment_advice_code: adviceCode,
}: Transaction['processor_response']): DeclineReason {
  return withMerchantAdvice(declineOrSoft(REFUSALS({ processor })), readMerchantAdvice(adviceCode));
}

type Answer = Extract<HttpResult, { kind: 'answer' }>;

/** Returns the outcome of a response with an error status. @param body the response's JSON object. */
export function fromRefusal(body: JsonObject, { status, headers }: Answer, shownAs: ShownAs): Outcome {
  const said = headers['paypal-debug-id'] === undefined ? '' : ` (debug id ${headers['paypal-debug-id']})`;
  const error = readError(body);
  const [{ issue, field } = { issue: '', field: '' }] = error.details;
  const byStatus = isErrorBody(body) ? REFUSALS({ status }) : undefined;
  const meaning = byStatus && (REFUSALS({ issue }) ?? byStatus);
  const providerData = errorDataOf(error, shownAs);
  if (typeof meaning === 'object') return { kind: 'declined', providerData, ...meaning };
  switch (meaning) {
    case 'pending':
      return { kind: 'pending', providerData };
    case 'paid_by_another':
      return alarmingOutcome('the payment was paid through another order', providerData);
    case 'redirect':
    case 'look_up': {
      const page = meaning === 'redirect' ? payerLinkOf(error) : undefined;
      if (page !== undefined) return { kind: 'awaits_payer', providerData, show: { page } };
      return unknownOutcome(`a look-up at the provider has to decide: ${issue}`, providerData);
    }
    default:
      return refusedOutcome(meaning, { status, said, refused: pointerTo(field) || issue });
  }
}

/** The links that send a payer to an order; the one present depends on how the order was created. */
const PAYER_LINKS: ReadonlySet<string> = new Set(['payer-action', 'approve']);

/** Returns the URL to which an order, or an error about it, sends the payer. */
export function payerLinkOf({ links }: Pick<PayPalError, 'links'>): string | undefined {
  return links.find(({ rel }) => PAYER_LINKS.has(rel))?.href;
}

/** Returns PayPal's pointers to the fields for which it refused a request; '' if the fault is not in a field. */
export function refusedFields(result: HttpResult): readonly string[] {
  if (result.kind !== 'answer' || (result.status !== 400 && result.status !== 422)) return [];
  return readError(readJsonObject(result.body)).details.map(({ field }) => pointerTo(field));
}

/** Matches the only purchase unit of an order, which PayPal may name by its reference instead of its position. */
const UNIT = /^\/purchase_units\/[^/]+/;

function pointerTo(field: string): string {
  return field.replace(UNIT, '/purchase_units/0');
}
