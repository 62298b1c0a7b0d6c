import type { JsonObject } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import { boletoBarcode } from '../kit/boleto-barcode.ts';
import { knownFields } from '../kit/known-fields.ts';
import {
  answeredAboutAnother,
  approvedOutcome,
  neverHappens,
  readMoney,
  unknownOutcome,
} from '../kit/provider-answer.ts';
import type { Instructions, Outcome } from '../port/outcome.ts';
import { type Intent, moneyOf } from './answers.ts';
import { fromStripeMoney } from './money.ts';
import { declined } from './refusals.ts';

/** The error of an intent whose code ran out, or whose payer did not pay it. */
const RAN_OUT: ReadonlySet<string> = new Set([
  'payment_intent_payment_attempt_expired',
  'payment_intent_payment_attempt_failed',
]);

/**
 * Reads the outcome of a payment with a code from its PaymentIntent, which is the right one.
 *
 * An intent whose code ran out could be confirmed again, with a new code: it has ended for us, but must still be
 * canceled (`isReusable`).
 */
export function fromCode(intent: Intent, body: JsonObject, providerData: ProviderData): Outcome | 'open' {
  const { status, amount, amount_received, last_payment_error: failure } = intent;
  if (intent.capture_method === 'manual') return answeredAboutAnother('capture_method');
  switch (status) {
    case 'succeeded':
      if (amount_received !== amount) return answeredAboutAnother('amount_received');
      return approvedOutcome({ providerData });
    case 'processing':
      return { kind: 'pending', providerData };
    case 'requires_action':
      return fromNextAction(intent, providerData);
    case 'requires_payment_method':
    case 'requires_confirmation':
    case 'canceled':
      if (failure && !RAN_OUT.has(failure.code)) return declined(failure, intent, providerData);
      if (failure) return { kind: 'expired', providerData };
      if (status !== 'canceled') return 'open';
      // Without a payment method, the intent never had a code.
      return intent.payment_method || body.latest_charge
        ? { kind: 'expired', providerData }
        : neverHappens('the provider closed the payment before it had a code');
    default:
      return unknownOutcome('the payment has an unknown status', providerData);
  }
}

/** Returns true for the outcome of an intent that has ended but could be confirmed again, with a new code. */
export function isReusable(outcome: Outcome | 'open'): boolean {
  if (outcome === 'open' || (outcome.kind !== 'expired' && outcome.kind !== 'declined')) return false;
  return outcome.providerData.status !== 'canceled';
}

/** Returns the money that has arrived, if it is not the amount; both in Stripe's units. */
export function receivedMoney(received: Money | undefined): { readonly received?: Money } {
  const money = received && fromStripeMoney(received);
  return money ? { received: money } : {};
}

function fromNextAction(intent: Intent, providerData: ProviderData): Outcome {
  const shown = shownBy(intent);
  if (!shown) {
    return unknownOutcome('the payer has to act, but the response has no code to show them', providerData);
  }
  const { instructions, untilS } = shown;
  const until = untilS === undefined ? undefined : new Date(untilS * 1_000);
  return {
    kind: 'awaits_payer',
    providerData,
    show: { instructions },
    ...(until && !Number.isNaN(until.getTime()) && { until }),
    ...receivedMoney(partOf(intent)),
  };
}

type Shown = { readonly instructions: Instructions; readonly untilS?: number | undefined };

/** Returns what the payer is shown, and until when in seconds since the epoch; undefined without a code. */
function shownBy({ next_action: action }: Intent): Shown | undefined {
  const { pix_display_qr_code: pix, boleto_display_details: boleto, oxxo_display_details: oxxo } = action;
  if (pix.data !== undefined) {
    const instructions = { text: pix.data, image: pix.image_url_png, document: pix.hosted_instructions_url };
    return { instructions: knownFields<Instructions>(instructions), untilS: pix.expires_at };
  }
  if (boleto.number !== undefined) {
    const barcode = boletoBarcode(boleto.number);
    const document = boleto.pdf ?? boleto.hosted_voucher_url;
    const instructions = { number: boleto.number, barcode, document };
    return { instructions: knownFields<Instructions>(instructions), untilS: boleto.expires_at };
  }
  if (oxxo.number !== undefined) {
    const instructions = { number: oxxo.number, document: oxxo.hosted_voucher_url };
    return { instructions: knownFields<Instructions>(instructions), untilS: oxxo.expires_after };
  }
  const { reference, hosted_instructions_url, financial_addresses } =
    action.display_bank_transfer_instructions;
  const { clabe, bank_name, account_holder_name } =
    financial_addresses.find(({ type, spei }) => type === 'spei' && spei.clabe !== undefined)?.spei ?? {};
  if (clabe === undefined) return undefined;
  const instructions = { account: clabe, bankName: bank_name, beneficiary: account_holder_name, reference };
  return { instructions: knownFields<Instructions>({ ...instructions, document: hosted_instructions_url }) };
}

/** Returns the part of a transfer that has arrived, in Stripe's units; undefined if none has. */
function partOf(intent: Intent): Money | undefined {
  const { amount_remaining, currency } = intent.next_action.display_bank_transfer_instructions;
  const [whole, left] = [moneyOf(intent), readMoney(amount_remaining, currency, 'minor_units')];
  if (!whole || !left || left.currency !== whole.currency || left.minorUnits >= whole.minorUnits)
    return undefined;
  return { ...whole, minorUnits: whole.minorUnits - left.minorUnits };
}
