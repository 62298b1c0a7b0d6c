import { boletoBarcode } from '../kit/boleto-barcode.ts';
import { knownFields } from '../kit/known-fields.ts';
import { unknownOutcome } from '../kit/provider-answer.ts';
import type { Instructions, Outcome } from '../port/outcome.ts';
import type { Payment } from './answers.ts';
import { PSE } from './local-methods.ts';

type AwaitsPayer = Extract<Outcome, { kind: 'awaits_payer' }>;
type Reported = Pick<AwaitsPayer, 'providerData' | 'reference' | 'providerPaymentId'>;

/** Returns what the payer of an unpaid payment is shown: the page of their bank, or how to pay. */
export function fromOpenCode(payment: Payment, reported: Reported): Outcome {
  const { payment_method_id, date_of_expiration } = payment;
  const show = payment_method_id === PSE ? pageOf(payment) : instructionsOf(payment);
  if (!show) {
    const { providerData, ...names } = reported;
    return { ...unknownOutcome('the payment does not say how to pay it', providerData), ...names };
  }
  const endMs = Date.parse(date_of_expiration);
  const until = Number.isNaN(endMs) ? {} : { until: new Date(endMs) };
  return { kind: 'awaits_payer', ...reported, show, ...until };
}

function pageOf({ transaction_details: { external_resource_url: page } }: Payment) {
  return page === undefined ? undefined : { page };
}

/**
 * Returns how to pay. Which fields a network of cash payments fills is undocumented, so that everything is shown. The
 * image of a Pix code is left out: it is no URL, and our own page draws the code.
 */
function instructionsOf(payment: Payment): { readonly instructions: Instructions } | undefined {
  const { transaction_details: details, point_of_interaction: at } = payment;
  const { qr_code: text, ticket_url } = at.transaction_data;
  const { digitable_line: digits } = details;
  const instructions = knownFields<Instructions>({
    text,
    number: digits ?? details.payment_method_reference_id,
    barcode: details.barcode.content ?? (digits && boletoBarcode(digits)),
    reference: details.verification_code,
    document: details.external_resource_url ?? ticket_url,
  });
  return Object.keys(instructions).length > 0 ? { instructions } : undefined;
}
