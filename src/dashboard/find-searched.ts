import { create } from '@bufbuild/protobuf';
import { DocumentSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Category,
} from '#gen/payments/v1/payment_pb.js';
import { ListPaymentsRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { requireValidOf } from '#src/api/require-valid.ts';
import type { PayerHashKeys } from '#src/payments/payer-hashes.ts';
import { findPayments, type ListDeps } from '#src/payments/read/find-payments.ts';
import { firstTime, timeAfter, zoneOf } from '#src/payments/read/list-times.ts';
import { pageToken, readPageToken } from '#src/payments/read/page-token.ts';
import { payerConditions, paymentFilter } from '#src/payments/read/payment-filter.ts';
import { invalidField, ServiceError } from '#src/service-error.ts';
import { isTimeout } from '#src/store/engine/database-error.ts';
import {
  type FoundPayment,
  findPaymentsById,
  findPaymentsByReference,
  findPaymentsOfUnknownOutcome,
  MAX_FOUND,
  type PaymentSearch,
  searchPayments,
} from '#src/store/tables/search-payments.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { isLastFour, MAX_ACCOUNTS, type Payer, type Search, STATUSES } from './search-form.ts';

/** Dependencies of finding payments. */
export type FindDeps = ListDeps &
  PayerHashKeys & {
    /** Connections whose references are searched. */
    readonly connectionIds: () => readonly string[];
  };

/** A page of found payments. */
export type Found = {
  readonly payments: readonly FoundPayment[];
  /** The token of the next page; '' on the last page. */
  readonly next: string;
  /** The number of payments that were looked at, if the page ends because of it; otherwise 0. */
  readonly lookedAt: number;
};

/** Nothing found. */
export const NONE: Found = { payments: [], next: '', lookedAt: 0 };
const PAGE_SIZE = MAX_FOUND - 1;
const validList = requireValidOf(ListPaymentsRequestSchema);

/**
 * Finds a page of payments.
 *
 * @param accountIds the accounts that a search without an account covers.
 * @throws ServiceError INVALID_PARAMETERS for a malformed value, and for a filter that needs an account.
 */
export async function findSearched(
  deps: FindDeps,
  search: Search,
  {
    payer,
    accountIds,
    page,
  }: { readonly payer: Payer; readonly accountIds: readonly string[]; readonly page: string },
): Promise<Found> {
  const { text, by, account } = search;
  if (isUuid(text)) {
    const named = oneOf(await findOrRefuse(findPaymentsById(deps.database, text)));
    // Merchants' orders and references may be UUIDs too.
    if (by === 'id' || named.payments.length > 0) return named;
  }
  if (by === 'id' && text !== '') throw refuse('a payment or transaction id must be a UUID');
  if (account !== '' && !isUuid(account)) throw refuse('an account’s id must be a UUID');
  if (by === 'last_four' && text !== '' && !isLastFour(text))
    throw refuse('the last four digits of a card must be four digits');
  const [needing] = needingAccount(search, payer);
  if (needing !== undefined && account === '')
    throw invalidField(needing, 'NOT_ALLOWED', 'needs an account: choose one');
  if (needing !== undefined || (search.unknown !== '' && account !== '')) {
    return findOrRefuse(findOfAccount(deps, search, { payer, page }));
  }
  if (search.unknown !== '') return findUnknown(deps, search);
  if (account === '' && accountIds.length > MAX_ACCOUNTS) {
    throw refuse(`there are more than ${MAX_ACCOUNTS} accounts: choose one, or search by id`);
  }
  return findInAccounts(deps, search, account === '' ? accountIds : [account], page);
}

/** Returns the names of a search's filters that no index serves across accounts. */
function needingAccount(search: Search, payer: Payer): string[] {
  const { text, by } = search;
  const filters = {
    payer_email: payer.email,
    document_number: payer.documentNumber,
    order_prefix: by === 'prefix' ? text : '',
    customer: by === 'customer' ? text : '',
    ...fieldsOf(search, [
      'sub_status',
      'code',
      'connection',
      'category',
      'brand',
      'country',
      'currency',
      'least',
      'most',
    ]),
    ...fieldsOf(search, ['outcome', 'refunded', 'disputed', 'succeeded_from', 'succeeded_to']),
  };
  return Object.entries(filters).flatMap(([name, value]) => (value === '' ? [] : [name]));
}

const fieldsOf = (search: Search, names: readonly (keyof Search)[]) =>
  Object.fromEntries(names.map((name) => [name, search[name]]));

/** Finds payments by the filters of the API's list, in one account. */
async function findOfAccount(
  deps: FindDeps,
  search: Search,
  { payer, page }: { readonly payer: Payer; readonly page: string },
): Promise<Found> {
  const { text, by, account } = search;
  if (by === 'reference' && text !== '') throw refuse('a reference is searched without these filters');
  const filters = validList(create(ListPaymentsRequestSchema, filtersOf(search)));
  const document = { documentType: payer.documentType, documentNumber: payer.documentNumber };
  const hashes = payerConditions(deps, account, filters.country, {
    payerEmail: payer.email,
    payerDocument: payer.documentNumber === '' ? undefined : create(DocumentSchema, document),
  });
  const filter = {
    ...(await paymentFilter(deps.database, account, filters)),
    ...hashes,
    cardLastFour: by === 'last_four' && text !== '' ? text : undefined,
    outcome: search.outcome || undefined,
    refunded: search.refunded === '' ? undefined : 'true',
  };
  const { found, nextPageToken, lookedAt } = await findPayments(deps, filter, {
    size: PAGE_SIZE,
    token: page,
  });
  return { payments: found.map((one) => ({ ...one, accountId: account })), next: nextPageToken, lookedAt };
}

function filtersOf(search: Search) {
  const { text, by } = search;
  const zone = zoneOf('zone', search.zone);
  const customer = by === 'customer' ? text : '';
  return {
    merchantOrderId: by === 'order' ? text : '',
    merchantOrderIdPrefix: by === 'prefix' ? text : '',
    ...(isUuid(customer) ? { customerId: customer } : { merchantCustomerId: customer }),
    status: numberOf(Payment_Status, search.status),
    subStatus: numberOf(Payment_SubStatus_Value, search.sub_status),
    category: numberOf(Transaction_Category, search.category),
    createdFrom: momentOf(search.from, zone, ':00'),
    createdTo: momentOf(search.to, zone, ':59.999999'),
    succeededFrom: momentOf(search.succeeded_from, zone, ':00'),
    succeededTo: momentOf(search.succeeded_to, zone, ':59.999999'),
    paymentMethodType: search.method,
    connectionId: search.connection,
    responseCode: search.code,
    cardBrand: search.brand.toUpperCase(),
    country: search.country.toUpperCase(),
    currency: search.currency.toUpperCase(),
    amountFrom: search.least,
    amountTo: search.most,
    unknownOutcome: search.unknown !== '',
    disputed: search.disputed !== '',
    zone,
  };
}

/** Returns the number of an enum's name; 0 for a name that it does not have. */
function numberOf(values: object, name: string): number {
  const value = /^[A-Z]/.test(name) ? (values as Record<string, unknown>)[name] : undefined;
  return typeof value === 'number' ? value : 0;
}

async function findUnknown({ database }: FindDeps, search: Search): Promise<Found> {
  if (search.text !== '')
    throw invalidField('unknown', 'NOT_ALLOWED', 'needs an account together with a text: choose one');
  const { payments, lookedAt } = await findPaymentsOfUnknownOutcome(database, periodOf(search));
  return { ...oneOf(payments), lookedAt };
}

/** The filters that indexes serve across accounts. */
function periodOf(search: Search): Pick<PaymentSearch, 'methodType' | 'status' | 'from' | 'before'> {
  const zone = zoneOf('zone', search.zone);
  return {
    methodType: search.method || undefined,
    status: STATUSES.includes(search.status) ? search.status : undefined,
    from: firstTime('from', momentOf(search.from, zone, ':00'), zone),
    before: timeAfter('to', momentOf(search.to, zone, ':59.999999'), zone),
  };
}

async function findInAccounts(
  deps: FindDeps,
  search: Search,
  accountIds: readonly string[],
  page: string,
): Promise<Found> {
  const { text, by, account } = search;
  const filter: PaymentSearch = {
    accountIds,
    merchantOrderId: by === 'order' && text !== '' ? text : undefined,
    cardLastFour: by === 'last_four' && text !== '' ? text : undefined,
    ...periodOf(search),
  };
  if (by === 'reference' && text !== '') {
    return oneOf(
      await findOrRefuse(findPaymentsByReference(deps.database, filter, deps.connectionIds(), text)),
    );
  }
  // Bound to the choice (all accounts or one) rather than to a list, so that the token stays valid when an account is
  // added.
  const bound = { ...filter, accountIds: account };
  const after = page === '' ? undefined : readPageToken(deps.pageTokenKey, bound, page);
  const payments = await findOrRefuse(searchPayments(deps.database, filter, after));
  const last = payments[PAGE_SIZE - 1];
  const next = last && payments.length > PAGE_SIZE ? pageToken(deps.pageTokenKey, bound, last) : '';
  return { ...oneOf(payments), next };
}

function oneOf(payments: readonly FoundPayment[]): Found {
  return { ...NONE, payments: payments.slice(0, PAGE_SIZE) };
}

async function findOrRefuse<T>(search: Promise<T>): Promise<T> {
  return search.catch((error) => {
    if (isTimeout(error)) throw refuse('the search took too long: choose an account or a shorter period');
    throw error;
  });
}

/** Completes a time from a form, such as 2026-01-31T09:08, in a zone. Returns any other text unchanged. */
function momentOf(text: string, zone: string, seconds: string): string {
  if (!/^\d{4}-\d\d-\d\dT\d\d:\d\d$/.test(text)) return text;
  if (zone === 'UTC') return `${text}${seconds}Z`;
  try {
    return Temporal.PlainDateTime.from(text + seconds)
      .toZonedDateTime(zone)
      .toInstant()
      .toString();
  } catch {
    return text;
  }
}

function refuse(message: string): ServiceError {
  return new ServiceError('INVALID_PARAMETERS', message);
}
