import { Payment_Status, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { firstTime, timeAfter } from '#src/payments/read/list-payments.ts';
import { pageToken, readPageToken } from '#src/payments/read/page-token.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { isTimeout } from '#src/store/engine/database-error.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import {
  type FoundPayment,
  findPaymentsById,
  findPaymentsByReference,
  MAX_FOUND,
  type PaymentSearch,
  searchPayments,
} from '#src/store/tables/search-payments.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { DASHBOARD, missingNodes, notice } from './frame.ts';
import { badge, money, option, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

/** Dependencies of the search. */
export type SearchDeps = {
  readonly database: Database;
  /** Key that authenticates page tokens. */
  readonly pageTokenKey: Uint8Array;
  /** Connections whose references are searched. */
  readonly connectionIds: () => readonly string[];
  /** The types of payment methods in the catalogue. */
  readonly methodTypes: () => readonly string[];
};

/** The search, as entered in the form. */
type Search = {
  readonly text: string;
  readonly by: string;
  readonly status: string;
  /** payment_method.type. */
  readonly method: string;
  readonly account: string;
  readonly from: string;
  readonly to: string;
};

type Accounts = Awaited<ReturnType<typeof listAccountNames>>;
type Found = { readonly payments: readonly FoundPayment[]; readonly next: string };

const BY = [
  ['order', 'Order'],
  ['reference', 'Reference, ours or the provider’s'],
  ['last_four', 'Card’s last four'],
  ['id', 'Payment or transaction id'],
] as const;
const STATUSES = Object.keys(Payment_Status).filter(
  (name) => /^[A-Z]/.test(name) && name !== 'STATUS_UNSPECIFIED',
);
const PAGE_SIZE = MAX_FOUND - 1;
/** Maximum number of accounts that one search covers. If there are more, the operator has to choose one. */
const MAX_ACCOUNTS = 1_000;

/** The search page for payments. */
export async function paymentsPage(deps: SearchDeps, visit: Visit): Promise<Page> {
  const accounts = await listAccountNames(deps.database, MAX_ACCOUNTS + 1);
  const requested: Search = {
    text: visit.query('text'),
    by: visit.query('by') || 'order',
    status: visit.query('status'),
    method: visit.query('method'),
    account: visit.query('account'),
    from: visit.query('from'),
    to: visit.query('to'),
  };
  let found: Found = { payments: [], next: '' };
  let refusal: string | undefined;
  try {
    found = await find(deps, requested, accounts, visit.query('page'));
  } catch (error) {
    if (!(error instanceof ServiceError) || error.reason !== 'INVALID_PARAMETERS') throw error;
    refusal = error.message;
  }
  const content = html`<div class="heading"><h1>Payments</h1>${exportLink(requested)}</div>
${missingNodes(deps.database).map((text) => notice('refused', text))}
${searchForm(requested, accounts, deps.methodTypes())}
${refusal === undefined ? table(requested, found, accounts) : notice('refused', refusal)}
${pages(requested, found, visit.query('page') !== '')}`;
  return { title: 'Payments', section: '/payments', content, status: refusal === undefined ? 200 : 400 };
}

async function find(deps: SearchDeps, requested: Search, accounts: Accounts, page: string): Promise<Found> {
  const { text, by, status, method, account } = requested;
  if (isUuid(text)) {
    const named = oneOf(await findOrRefuse(findPaymentsById(deps.database, text)));
    // Merchants' orders and references may be UUIDs too.
    if (by === 'id' || named.payments.length > 0) return named;
  }
  if (by === 'id' && text !== '') throw refuse('a payment or transaction id must be a UUID');
  if (account !== '' && !isUuid(account)) throw refuse('an account’s id must be a UUID');
  if (account === '' && accounts.length > MAX_ACCOUNTS) {
    throw refuse(`there are more than ${MAX_ACCOUNTS} accounts: choose one, or search by id`);
  }
  const accountIds = account === '' ? accounts.map(({ id }) => id) : [account];
  if (by === 'last_four' && text !== '' && !isLastFour(text))
    throw refuse('the last four digits of a card must be four digits');
  const search: PaymentSearch = {
    accountIds,
    merchantOrderId: by === 'order' && text !== '' ? text : undefined,
    cardLastFour: by === 'last_four' && text !== '' ? text : undefined,
    methodType: method || undefined,
    status: STATUSES.includes(status) ? status : undefined,
    from: firstTime('from', minute(requested.from, ':00Z')),
    before: timeAfter('to', minute(requested.to, ':59.999999Z')),
  };
  if (by === 'reference' && text !== '') {
    return oneOf(
      await findOrRefuse(findPaymentsByReference(deps.database, search, deps.connectionIds(), text)),
    );
  }
  // Bound to the choice (all accounts or one) rather than to a list, so that the token stays valid when an account is
  // added.
  const bound = { ...search, accountIds: account };
  const after = page === '' ? undefined : readPageToken(deps.pageTokenKey, bound, page);
  const payments = await findOrRefuse(searchPayments(deps.database, search, after));
  const last = payments[PAGE_SIZE - 1];
  const next = last && payments.length > PAGE_SIZE ? pageToken(deps.pageTokenKey, bound, last) : '';
  return { payments: payments.slice(0, PAGE_SIZE), next };
}

function oneOf(payments: readonly FoundPayment[]): Found {
  return { payments: payments.slice(0, PAGE_SIZE), next: '' };
}

async function findOrRefuse(search: Promise<FoundPayment[]>): Promise<FoundPayment[]> {
  return search.catch((error) => {
    if (isTimeout(error)) throw refuse('the search took too long: choose an account or a shorter period');
    throw error;
  });
}

/** Adds seconds to a time from a form, such as 2026-01-31T09:08. Returns any other text unchanged. */
function minute(text: string, seconds: string): string {
  return /T\d\d:\d\d$/.test(text) ? text + seconds : text;
}

function refuse(message: string): ServiceError {
  return new ServiceError('INVALID_PARAMETERS', message);
}

function searchForm(requested: Search, accounts: Accounts, types: readonly string[]): Html {
  // A type that has left the catalogue stays chosen.
  const methods = new Set([...types, requested.method].filter(Boolean));
  return html`<form class="card filters" method="get" action="${DASHBOARD}/payments" role="search">
<div class="grow"><label for="text">Search for</label><input id="text" name="text" type="search" value="${requested.text}" maxlength="255" autocomplete="off" spellcheck="false"></div>
<div><label for="by">In</label><select id="by" name="by">${BY.map(([value, name]) => option(value, name, requested.by))}</select></div>
<div><label for="status">Status</label><select id="status" name="status">${option('', 'Any', requested.status)}${STATUSES.map((name) => option(name, name.replaceAll('_', ' '), requested.status))}</select></div>
<div><label for="method">Method</label><select id="method" name="method">${option('', 'Any', requested.method)}${[...methods].map((name) => option(name, shortened(name.replaceAll('_', ' '), 60), requested.method))}</select></div>
<div><label for="account">Account</label>${accountField(requested.account, accounts)}</div>
<div class="moment"><label for="from">From (UTC)</label><input id="from" name="from" type="datetime-local" value="${requested.from}"></div>
<div class="moment"><label for="to">To (UTC)</label><input id="to" name="to" type="datetime-local" value="${requested.to}"></div>
<div><button>Search</button></div>
</form>`;
}

function accountField(chosen: string, accounts: Accounts): Html {
  if (accounts.length > MAX_ACCOUNTS) {
    return html`<input id="account" name="account" value="${chosen}" maxlength="36" placeholder="its id">`;
  }
  const options = accounts.map(({ id, name }) => option(id, shortened(name, 60), chosen));
  return html`<select id="account" name="account">${option('', 'All', chosen)}${options}</select>`;
}

/** Links to the export of what is searched for; nothing for a search that no file can have. */
function exportLink({ text, by, status, method, account, from, to }: Search): Html {
  if (text !== '' && by !== 'order' && by !== 'last_four') return NOTHING;
  const query = new URLSearchParams({
    ...(account && { account_id: account }),
    ...(text && { [by === 'order' ? 'merchant_order_id' : 'card_last_four']: text }),
    ...(status && { status }),
    ...(method && { payment_method_type: method }),
    ...(from && { from }),
    ...(/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(to) && { before: minuteAfter(to) }),
  });
  return html`<a class="button quiet" href="${DASHBOARD}/export?${String(query)}">Export these</a>`;
}

/** Returns the end of a minute of a form, which a search includes. */
function minuteAfter(text: string): string {
  const end = new Date(Date.parse(`${text}Z`) + 60_000);
  return Number.isNaN(end.getTime()) ? text : end.toISOString().slice(0, 16);
}

function table(requested: Search, { payments }: Found, accounts: Accounts): Html {
  if (payments.length === 0) return html`<p class="card">No payments found.${elsewhere(requested)}</p>`;
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  return html`<div class="card scroll"><table class="stacked"><thead><tr><th scope="col">Payment</th><th scope="col" class="number">Amount</th><th scope="col">Status</th><th scope="col">Method</th><th scope="col">Connection</th><th scope="col">Account</th><th scope="col">Created (UTC)</th></tr></thead>
<tbody>${payments.map((found) => row(found, names.get(found.accountId) ?? found.accountId))}</tbody></table></div>`;
}

/**
 * Offers to search other fields if nothing was found: callers to support do not say which number they are reading out.
 */
function elsewhere(requested: Search): Html {
  const canBe = (by: string) =>
    by !== requested.by && by !== 'id' && (by !== 'last_four' || isLastFour(requested.text));
  const links = BY.filter(([by]) => requested.text !== '' && canBe(by)).map(
    ([by, name], i) => html`${i > 0 && ', '}<a href="${addressOf({ ...requested, by })}">${name}</a>`,
  );
  return links.length > 0 ? html` Search instead in: ${links}.` : NOTHING;
}

const isLastFour = (text: string) => /^\d{4}$/.test(text);

/** Returns the URL of a search. @param page the page token, or '' for the first page. */
function addressOf(requested: Search, page = ''): string {
  const query = new URLSearchParams(
    Object.entries({ ...requested, page }).filter(([, value]) => value !== ''),
  );
  return `${DASHBOARD}/payments?${query}`;
}

function row({ id, accountId, record }: FoundPayment, account: string): Html {
  const payment = decodeRecord(record);
  const { amount, transactions } = payment;
  return html`<tr><th scope="row"><a href="${DASHBOARD}/payments/${accountId}/${id}">${shortened(payment.merchantOrderId, 40) || 'no order'}</a><br><code class="quiet">${id}</code></th>
<td class="number">${money(amount?.value?.value, amount?.currency ?? '')}</td>
<td class="nowrap">${badge(Payment_Status[payment.status] ?? '')}</td>
<td>${shortened(methodOf(payment), 60)}<br><span class="quiet">${categoryOf(payment)}</span></td>
<td>${shortened(transactions?.connectionData?.id ?? '', 60)}</td>
<td>${shortened(account, 40)}</td>
<td class="nowrap">${time(payment.createdAt)}</td></tr>`;
}

/** Describes a payment's method briefly, such as "VISA ···· 1111". */
export function methodOf({ paymentMethod }: ReturnType<typeof decodeRecord>): string {
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const card = kind?.case === 'card' ? kind.value.cardData : undefined;
  if (!card) return (paymentMethod?.type ?? '').replaceAll('_', ' ');
  return `${card.brand?.replaceAll('_', ' ') || 'Card'} ···· ${card.lfd ?? ''}`;
}

/** Returns the category of a payment's method in words, such as "bank transfer". */
export function categoryOf({ transactions }: ReturnType<typeof decodeRecord>): string {
  return (Transaction_Category[transactions?.category ?? 0] ?? '').toLowerCase().replaceAll('_', ' ');
}

function pages(requested: Search, { next }: Found, isLater: boolean): Html {
  if (next === '' && !isLater) return NOTHING;
  return html`<nav class="pages" aria-label="Pages">${isLater ? html`<a class="button quiet" href="${addressOf(requested)}">Newest</a>` : NOTHING}${next === '' ? NOTHING : html`<a class="button quiet" href="${addressOf(requested, next)}">Older</a>`}</nav>`;
}
