import { boletoBarcode } from '../kit/boleto-barcode.ts';
import { knownFields } from '../kit/known-fields.ts';
import type { Instructions, Outcome, ShownInstructions } from '../port/outcome.ts';
import type { Answer } from './answers.ts';
import type { Reported } from './refusals.ts';

/** Adyen sends no image: the code is drawn from its text. */
const MAX_DIGITS_ON_PAPER = 48;

/**
 * Reads what the payer of a local method is shown, and until when.
 *
 * @returns undefined if the answer has nothing with which to pay.
 */
export function readInstructions(answer: Answer, reported: Reported): Outcome | undefined {
  const { action, additionalData } = answer;
  const show = action.type === 'qrCode' ? codeOf(answer) : action.type === 'voucher' && voucherOf(answer);
  if (!show) return undefined;
  const until = action.expiresAt ?? additionalData['pix.expirationDate'];
  return { kind: 'awaits_payer', ...reported, show, ...(until && { until }) };
}

function codeOf({ action: { qrCodeData: text } }: Answer): ShownInstructions | undefined {
  return text ? { instructions: { text } } : undefined;
}

/** A voucher's reference is a boleto's line, or the number of which a cash voucher's bars consist. */
function voucherOf({ action }: Answer): ShownInstructions | undefined {
  const { reference: number, alternativeReference, downloadUrl, url, paymentMethodType } = action;
  const document = downloadUrl ?? url;
  if (!number && document === undefined) return undefined;
  const bars = paymentMethodType === 'oxxo' ? barsOf(number) : boletoBarcode(number);
  const fields = {
    number: number || undefined,
    barcode: bars,
    reference: alternativeReference || undefined,
    document,
  };
  return { instructions: knownFields<Instructions>(fields) };
}

function barsOf(number: string): string | undefined {
  return /^\d+$/.test(number) && number.length <= MAX_DIGITS_ON_PAPER ? number : undefined;
}
