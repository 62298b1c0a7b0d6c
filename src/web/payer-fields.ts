import { PAYERS_BANK } from '#src/connectors/port/capabilities.ts';
import { type Html, html } from './html.ts';
import type { CheckoutTexts } from './texts/english.ts';

/** A local method's terms for the payer, as the checkout page shows them. */
export type LocalTerms = {
  /** Paths of the fields to ask for, in the payment's request. */
  readonly needs: readonly string[];
  /** Types of documents to choose from; empty for any. */
  readonly documents: readonly string[];
  readonly banks: readonly { readonly id: string; readonly name: string }[];
  /** false: once made, the payment cannot be canceled. */
  readonly canClose: boolean;
};

/** Returns the id of the input for a field of a method. @param i the method's place on the page. */
export function fieldId(i: number, path: string): string {
  return `need-${i}-${path.replace(/\W/g, '-')}`;
}

/** Renders what a payer must know and enter for a local method. @param i the method's place on the page. */
export function renderLocalTerms(terms: LocalTerms, i: number, { local }: CheckoutTexts): Html {
  const isAtBank = terms.needs.includes(PAYERS_BANK);
  const fields = terms.needs.map((path) => field(path, i, terms, local));
  return html`<p class="quiet">${isAtBank ? local.bankPage : local.shows}</p>${!terms.canClose && html`<p class="caution">${local.noCancel}</p>`}${fields}`;
}

type Local = CheckoutTexts['local'];

function field(path: string, i: number, { banks, documents }: LocalTerms, local: Local): Html {
  const id = fieldId(i, path);
  const name = lastOf(path);
  const { autocomplete = 'off', type = 'text', isHalf = false } = INPUTS[name] ?? {};
  const options =
    path === PAYERS_BANK
      ? banks
      : name === 'document_type' && documents.length > 0
        ? documents.map((one) => ({ id: one, name: one }))
        : undefined;
  const error = html`<p class="error" id="${id}-error" hidden></p>`;
  const label = html`<label for="${id}"><span>${labelOf(name, local)}</span></label>`;
  const input = options
    ? html`<select id="${id}" required aria-describedby="${id}-error"><option value="">${local.choose}</option>${options.map((one) => html`<option value="${one.id}">${one.name}</option>`)}</select>`
    : html`<input id="${id}" type="${type}" autocomplete="${autocomplete}" maxlength="${MAX_LENGTHS[name] ?? 255}" spellcheck="false" required aria-describedby="${id}-error">`;
  return html`<div class="field${!isHalf && ' wide'}">${label}${input}${error}</div>`;
}

/** Returns the label of a field. A field without a text of its own shows its name. */
function labelOf(name: string, { fields }: Local): string {
  return Object.hasOwn(fields, name) ? fields[name as keyof typeof fields] : name.replaceAll('_', ' ');
}

/** Attributes of inputs by the last part of a field's path. `isHalf` leaves room for another field beside it. */
const INPUTS: Readonly<Record<string, { autocomplete?: string; type?: string; isHalf?: true }>> = {
  first_name: { autocomplete: 'given-name', isHalf: true },
  last_name: { autocomplete: 'family-name', isHalf: true },
  email: { autocomplete: 'email', type: 'email' },
  number: { autocomplete: 'tel-national', type: 'tel', isHalf: true },
  country_code: { autocomplete: 'tel-country-code', type: 'tel', isHalf: true },
  document_type: { isHalf: true },
  document_number: { isHalf: true },
  address_line_1: { autocomplete: 'address-line1' },
  neighborhood: { autocomplete: 'address-level3', isHalf: true },
  city: { autocomplete: 'address-level2', isHalf: true },
  state: { autocomplete: 'address-level1', isHalf: true },
  zip_code: { autocomplete: 'postal-code', isHalf: true },
};

const MAX_LENGTHS: Readonly<Record<string, number>> = { document_number: 40, number: 32, country_code: 8 };

function lastOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}
