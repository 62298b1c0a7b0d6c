import type { JsonObject } from '@bufbuild/protobuf';

/** Buttons of a preference's page, with the payment that each makes; undefined: no payment. */
const CHOICES: Readonly<Record<string, readonly [status: string, detail: string] | undefined>> = {
  pay: ['approved', 'accredited'],
  'pay in cash': ['pending', 'pending_waiting_payment'],
  'pay without funds': ['rejected', 'cc_rejected_insufficient_amount'],
  leave: undefined,
};

/** The page on which a preference is paid, with a form for each of the payer's options. */
export function pageOf(preference: JsonObject): string {
  const forms = Object.keys(CHOICES).map(
    (choice) =>
      `<form method="get" action="/checkout/v1/choose"><input type="hidden" name="pref_id" value="${preference.id}">` +
      `<button name="choice" value="${choice}">${choice}</button></form>`,
  );
  return `<!doctype html><title>Mercado Pago</title>${forms.join('')}`;
}

/**
 * The payer's choice.
 *
 * @param pay makes a payment of the preference.
 * @returns the URL to which the payer returns.
 */
export function choose(
  preference: JsonObject,
  choice: string,
  pay: (status: string, detail: string) => JsonObject,
): string {
  const made = CHOICES[choice];
  const payment = made && pay(...made);
  const back = preference.back_urls as Record<string, string>;
  const to = { approved: back.success, pending: back.pending }[String(payment?.status)] ?? back.failure;
  const url = new URL(to ?? '');
  // A payer who leaves returns with the text "null".
  const id = String(payment?.id ?? null);
  const status = String(payment?.status ?? null);
  const told = {
    collection_id: id,
    collection_status: status,
    payment_id: id,
    status,
    external_reference: String(preference.external_reference),
    payment_type: payment ? 'credit_card' : 'null',
    merchant_order_id: 'null',
    preference_id: String(preference.id),
    site_id: 'MLA',
    processing_mode: 'aggregator',
    merchant_account_id: 'null',
  };
  for (const [name, value] of Object.entries(told)) url.searchParams.set(name, value);
  return url.href;
}
