import { Payment_Status, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { ServiceError } from '#src/service-error.ts';
import { takeByAccount } from '#src/store/engine/rows.ts';
import { listAccountNames } from '#src/store/tables/accounts.ts';
import { recordAction } from '#src/store/tables/audit-log.ts';
import { findPossibleDuplicates } from '#src/store/tables/look-through-payments.ts';
import type { FoundPayment } from '#src/store/tables/search-payments.ts';
import { type Html, html, NOTHING } from '#src/web/html.ts';
import { exportLink } from './export-link.ts';
import { type FindDeps, type Found, findSearched, NONE } from './find-searched.ts';
import { DASHBOARD, missingNodes, notice } from './frame.ts';
import {
  addressOf,
  type Choices,
  elsewhere,
  MAX_ACCOUNTS,
  type Payer,
  payerForm,
  payerPageForm,
  readSearch,
  type Search,
  searchForm,
} from './search-form.ts';
import { badge, count, money, shortened, time } from './show.ts';
import type { Page, Visit } from './visit.ts';

/** Dependencies of the search. */
export type SearchDeps = FindDeps & {
  /** The types of payment methods in the catalogue. */
  readonly methodTypes: () => readonly string[];
};

/** The contents of the page: the search, its result, and where its pages go on. */
type Shown = {
  readonly search: Search;
  readonly payer: Payer;
  readonly choices: Choices;
  readonly found: Found;
  readonly isLater: boolean;
};

const NOBODY: Payer = { email: '', documentType: '', documentNumber: '' };

/** The search page for payments. */
export async function paymentsPage(deps: SearchDeps, visit: Visit): Promise<Page> {
  return searched(deps, visit, { search: readSearch(visit.query), payer: NOBODY, page: visit.query('page') });
}

/**
 * The search page for a payer's payments. The payer's data comes in the body and stays out of the audit log, which has the
 * account, the kind of data and the number of payments found.
 */
export async function payerPage(deps: SearchDeps, visit: Visit): Promise<Page> {
  const payer = {
    email: visit.form('payer_email'),
    documentType: visit.form('document_type'),
    documentNumber: visit.form('document_number'),
  };
  return searched(deps, visit, { search: readSearch(visit.form), payer, page: visit.form('page') });
}

async function searched(
  deps: SearchDeps,
  visit: Visit,
  { search, payer, page }: { readonly search: Search; readonly payer: Payer; readonly page: string },
): Promise<Page> {
  const { database } = deps;
  const accounts = await listAccountNames(database, MAX_ACCOUNTS + 1);
  const { formToken } = visit.session;
  const choices = {
    accounts,
    methodTypes: deps.methodTypes(),
    connectionIds: deps.connectionIds(),
    formToken,
  };
  let found = NONE;
  let refusal: string | undefined;
  try {
    found = await findSearched(deps, search, { payer, accountIds: accounts.map(({ id }) => id), page });
  } catch (error) {
    if (!(error instanceof ServiceError) || error.reason !== 'INVALID_PARAMETERS') throw error;
    refusal = error.message;
  }
  if (refusal === undefined) await recordSearch(deps, visit, { search, payer, found });
  const shown = { search, payer, choices, found, isLater: page !== '' };
  const content = html`<div class="heading"><h1>Payments</h1>${payer === NOBODY ? exportLink(search) : NOTHING}</div>
${missingNodes(database).map((text) => notice('refused', text))}
${searchForm(search, choices)}
${payerForm(search, payer, choices)}
${refusal === undefined ? html`${lookedAt(found)}${table(shown, await duplicatesOf(deps, found))}` : notice('refused', refusal)}
${pages(shown)}`;
  return { title: 'Payments', section: '/payments', content, status: refusal === undefined ? 200 : 400 };
}

async function recordSearch(
  { database }: SearchDeps,
  { actor }: Visit,
  { search, payer, found }: Pick<Shown, 'search' | 'payer' | 'found'>,
): Promise<void> {
  const kinds = [payer.email && 'e-mail', payer.documentNumber && 'document'].filter(Boolean);
  if (kinds.length === 0) return;
  const detail = `by ${kinds.join(' and ')}: ${found.payments.length}${found.next === '' ? '' : ' or more'} found`;
  await recordAction(database, { accountId: search.account, actor, action: 'search-payer', detail });
}

/** Returns the ids of the possible duplicates of each payment found. */
async function duplicatesOf({ database }: SearchDeps, { payments }: Found): Promise<Duplicates> {
  const found = await takeByAccount(payments, async (accountId, own) => [
    ...(await findPossibleDuplicates(
      database,
      accountId,
      own.map(({ id }) => id),
    )),
  ]);
  return new Map(found);
}

type Duplicates = ReadonlyMap<string, readonly string[]>;

function lookedAt(found: Found): Html {
  if (found.lookedAt === 0) return NOTHING;
  const how =
    found.next === ''
      ? 'Choose an account or a shorter period to see the rest.'
      : '“Older” continues after them.';
  return notice('done', `The first ${count(found.lookedAt)} were looked at. ${how}`);
}

function table({ search, payer, choices, found }: Shown, duplicates: Duplicates): Html {
  const { payments } = found;
  if (payments.length === 0) {
    const others = payer === NOBODY ? elsewhere(search) : NOTHING;
    return html`<p class="card">No payments found.${others}</p>`;
  }
  const names = new Map(choices.accounts.map(({ id, name }) => [id, name]));
  return html`<div class="card scroll"><table class="stacked"><thead><tr><th scope="col">Payment</th><th scope="col" class="number">Amount</th><th scope="col">Status</th><th scope="col">Method</th><th scope="col">Connection</th><th scope="col">Account</th><th scope="col">Created (UTC)</th></tr></thead>
<tbody>${payments.map((one) => row(one, names.get(one.accountId) ?? one.accountId, duplicates.get(one.id) ?? []))}</tbody></table></div>`;
}

function row({ id, accountId, record }: FoundPayment, account: string, others: readonly string[]): Html {
  const payment = decodeRecord(record);
  const { amount, transactions } = payment;
  return html`<tr><th scope="row"><a href="${DASHBOARD}/payments/${accountId}/${id}">${shortened(payment.merchantOrderId, 40) || 'no order'}</a><br><code class="quiet">${id}</code>${others.length > 0 && html`<br>${duplicateNote(accountId, others)}`}</th>
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

/** Says that the payer may have paid twice, and links to the other payment. */
function duplicateNote(accountId: string, [other = '', ...more]: readonly string[]): Html {
  const title = 'The same payer, order and amount within a day';
  return html`<a class="badge open" title="${title}" href="${DASHBOARD}/payments/${accountId}/${other}">possible duplicate${more.length > 0 && ` of ${more.length + 1}`}</a>`;
}

function pages({ search, payer, choices, found: { next }, isLater }: Shown): Html {
  if (next === '' && !isLater) return NOTHING;
  const to = (page: string) =>
    payer === NOBODY
      ? html`<a class="button quiet" href="${addressOf(search, page)}">${page === '' ? 'Newest' : 'Older'}</a>`
      : payerPageForm(search, payer, page, choices.formToken);
  return html`<nav class="pages" aria-label="Pages">${isLater ? to('') : NOTHING}${next === '' ? NOTHING : to(next)}</nav>`;
}
