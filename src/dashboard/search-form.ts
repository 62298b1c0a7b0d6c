import {
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Category,
} from '#gen/payments/v1/payment_pb.js';
import { OUTCOMES } from '#src/store/tables/outcome-of-payment.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD } from './frame.ts';
import { option, shortened } from './show.ts';

/** The fields of the search's form. None has a payer's data, since the form's values are part of the URL. */
const FIELDS = [
  ...['text', 'by', 'status', 'method', 'account', 'from', 'to'],
  ...['sub_status', 'code', 'connection', 'category', 'brand', 'country', 'currency', 'least', 'most'],
  ...['outcome', 'unknown', 'refunded', 'disputed', 'succeeded_from', 'succeeded_to', 'zone'],
] as const;
type Field = (typeof FIELDS)[number];

/** The search, as entered in the form: '' for a field that is empty. */
export type Search = Readonly<Record<Field, string>>;

/** A payer, as entered in the payer's form, which is sent in a body only. */
export type Payer = {
  readonly email: string;
  readonly documentType: string;
  readonly documentNumber: string;
};

/** The values that the form offers. */
export type Choices = {
  readonly accounts: readonly { readonly id: string; readonly name: string }[];
  readonly methodTypes: readonly string[];
  readonly connectionIds: readonly string[];
  readonly formToken: string;
};

/** Maximum number of accounts that one search covers. If there are more, the operator has to choose one. */
export const MAX_ACCOUNTS = 1_000;

const BY = [
  ['order', 'Order'],
  ['prefix', 'Beginning of an order'],
  ['reference', 'Reference, ours or the provider’s'],
  ['last_four', 'Card’s last four'],
  ['customer', 'Customer, ours or the merchant’s'],
  ['id', 'Payment or transaction id'],
] as const;
const OF_AN_ACCOUNT = ['prefix', 'customer'];

const namesOf = (values: object) =>
  Object.keys(values).filter((name) => /^[A-Z]/.test(name) && !/UNSPECIFIED$/.test(name));
/** The statuses of a payment. */
export const STATUSES = namesOf(Payment_Status);
/** The sub-statuses of a payment. */
export const SUB_STATUSES = namesOf(Payment_SubStatus_Value);
/** The kinds of payment methods. */
export const CATEGORIES = namesOf(Transaction_Category);

/** The outcomes of a payment, as figures count them, except UNKNOWN, which has a field of its own. */
const SEARCHED_OUTCOMES = OUTCOMES.filter((outcome) => outcome !== 'UNKNOWN');

/** Reports whether a text may be the last four digits of a card. */
export const isLastFour = (text: string) => /^\d{4}$/.test(text);

/** Reads the search. @param value returns the value of a field. */
export function readSearch(value: (field: string) => string): Search {
  const given = Object.fromEntries(FIELDS.map((field) => [field, value(field)])) as Search;
  return { ...given, by: given.by || 'order' };
}

/** Returns the URL of a search. @param page the page token, or '' for the first page. */
export function addressOf(search: Partial<Search>, page = ''): string {
  const query = new URLSearchParams(Object.entries({ ...search, page }).filter(([, value]) => value !== ''));
  return `${DASHBOARD}/payments?${query}`;
}

/** Renders the search's form. */
export function searchForm(search: Search, choices: Choices): Html {
  const more = FIELDS.slice(FIELDS.indexOf('sub_status')).some((field) => search[field] !== '');
  return html`<form class="card" method="get" action="${DASHBOARD}/payments" role="search"><div class="filters">
<div class="grow"><label for="text">Search for</label><input id="text" name="text" type="search" value="${search.text}" maxlength="255" autocomplete="off" spellcheck="false"></div>
<div><label for="by">In</label><select id="by" name="by">${BY.map(([value, name]) => option(value, name, search.by))}</select></div>
${chosenField(search, 'status', 'Status', STATUSES)}
${chosenField(search, 'method', 'Method', choices.methodTypes)}
<div><label for="account">Account</label>${accountField(search.account, choices.accounts)}</div>
${momentField(search, 'from', 'From')}
${momentField(search, 'to', 'To')}
<div><button>Search</button></div></div>
<details class="more"${more ? html` open` : NOTHING}><summary>More filters</summary><div class="filters">${moreFields(search, choices)}</div></details>
</form>`;
}

function moreFields(search: Search, { connectionIds }: Choices): Html {
  return html`${chosenField(search, 'sub_status', 'Sub-status', SUB_STATUSES)}
${textField(search, 'code', 'Response code')}
${chosenField(search, 'connection', 'Connection', connectionIds)}
${chosenField(search, 'category', 'Kind of method', CATEGORIES)}
${textField(search, 'brand', 'Card’s brand')}
${textField(search, 'country', 'Country')}
${textField(search, 'currency', 'Currency')}
${textField(search, 'least', 'Amount from')}
${textField(search, 'most', 'Amount to')}
${chosenField(search, 'outcome', 'Outcome', SEARCHED_OUTCOMES)}
${momentField(search, 'succeeded_from', 'Succeeded from')}
${momentField(search, 'succeeded_to', 'Succeeded to')}
${textField(search, 'zone', 'Time zone of dates', 'UTC')}
${checkField(search, 'unknown', 'Only unknown outcomes')}
${checkField(search, 'refunded', 'Only refunded')}
${checkField(search, 'disputed', 'Only disputed')}`;
}

/**
 * Renders the form that searches for a payer. It is sent in a body: no URL, and so no log or history, has the payer's
 * data. Its other fields are the search's.
 */
export function payerForm(search: Search, payer: Payer, { formToken, accounts }: Choices): Html {
  const open = payer.email !== '' || payer.documentNumber !== '';
  const field = (name: string, label: string, value: string) =>
    html`<div><label for="${name}">${label}</label><input id="${name}" name="${name}" value="${value}" maxlength="255" autocomplete="off" spellcheck="false"></div>`;
  return html`<details class="card more"${open ? html` open` : NOTHING}><summary>Search for a payer</summary>
<p class="quiet">By the exact e-mail address or document, in one account, among the payments of the search above.</p>
<form class="filters" method="post" action="${DASHBOARD}/payments">${hiddenFields({ ...search, account: '', country: '' }, formToken)}
<div class="grow"><label for="payer_email">E-mail</label><input id="payer_email" name="payer_email" value="${payer.email}" maxlength="255" autocomplete="off" spellcheck="false" inputmode="email"></div>
<div><label for="payer_account">Account</label>${accountField(search.account, accounts, { id: 'payer_account', all: 'Choose' })}</div>
${field('document_type', 'Document’s type', payer.documentType)}
${field('document_number', 'Document’s number', payer.documentNumber)}
<div><label for="payer_country">Document’s country</label><input id="payer_country" name="country" value="${search.country}" maxlength="2" autocomplete="off" spellcheck="false"></div>
<div><button>Search</button></div></form></details>`;
}

/** Renders the form that shows another page of a payer's payments. */
export function payerPageForm(search: Search, payer: Payer, page: string, formToken: string): Html {
  return html`<form method="post" action="${DASHBOARD}/payments">${hiddenFields(search, formToken)}
${hidden('payer_email', payer.email)}${hidden('document_type', payer.documentType)}${hidden('document_number', payer.documentNumber)}${hidden('page', page)}
<button class="quiet">${page === '' ? 'Newest' : 'Older'}</button></form>`;
}

const hidden = (name: string, value: string) =>
  value === '' ? NOTHING : html`<input type="hidden" name="${name}" value="${value}">`;

function hiddenFields(search: Search, formToken: string): Html {
  return html`${hidden('form_token', formToken)}${FIELDS.map((field) => hidden(field, search[field]))}`;
}

function chosenField(search: Search, field: Field, label: string, values: readonly string[]): Html {
  // A value that is no longer offered stays chosen.
  const offered = new Set([...values, search[field]].filter(Boolean));
  const options = [...offered].map((name) =>
    option(name, shortened(field === 'connection' ? name : name.replaceAll('_', ' '), 60), search[field]),
  );
  return html`<div><label for="${field}">${label}</label><select id="${field}" name="${field}">${option('', 'Any', search[field])}${options}</select></div>`;
}

function textField(search: Search, field: Field, label: string, hint = ''): Html {
  return html`<div><label for="${field}">${label}</label><input id="${field}" name="${field}" value="${search[field]}" maxlength="255" autocomplete="off" spellcheck="false"${hint === '' ? NOTHING : html` placeholder="${hint}"`}></div>`;
}

function momentField(search: Search, field: Field, label: string): Html {
  return html`<div class="moment"><label for="${field}">${label} (${shortened(search.zone || 'UTC', 40)})</label><input id="${field}" name="${field}" type="datetime-local" value="${search[field]}"></div>`;
}

function checkField(search: Search, field: Field, label: string): Html {
  return html`<div class="check"><input id="${field}" name="${field}" type="checkbox" value="1"${search[field] === '' ? NOTHING : html` checked`}><label for="${field}">${label}</label></div>`;
}

function accountField(
  chosen: string,
  accounts: Choices['accounts'],
  { id, all } = { id: 'account', all: 'All' },
): Html {
  if (accounts.length > MAX_ACCOUNTS) {
    return html`<input id="${id}" name="account" value="${chosen}" maxlength="36" placeholder="its id">`;
  }
  const options = accounts.map(({ id, name }) => option(id, shortened(name, 60), chosen));
  return html`<select id="${id}" name="account">${option('', all, chosen)}${options}</select>`;
}

/**
 * Offers to search other fields if nothing was found: callers to support do not say which number they are reading out.
 */
export function elsewhere(search: Search): Html {
  const canBe = (by: string) =>
    by !== search.by &&
    by !== 'id' &&
    (by !== 'last_four' || isLastFour(search.text)) &&
    (search.account !== '' || !OF_AN_ACCOUNT.includes(by));
  const links = BY.filter(([by]) => search.text !== '' && canBe(by)).map(
    ([by, name], i) => html`${i > 0 && ', '}<a href="${addressOf({ ...search, by })}">${name}</a>`,
  );
  return links.length > 0 ? html` Search instead in: ${links}.` : NOTHING;
}
