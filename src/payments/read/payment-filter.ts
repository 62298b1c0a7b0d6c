import {
  type Payment,
  Payment_Status,
  Payment_SubStatus_Value,
  Transaction_Category,
} from '#gen/payments/v1/payment_pb.js';
import type { ListPaymentsRequest, SearchPaymentsRequest } from '#gen/payments/v1/payment_service_pb.js';
import { currencyDigits, isDecimal, parseMoney, whyNoDecimal } from '#src/money.ts';
import { invalidField } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { findCustomer } from '#src/store/tables/customers.ts';
import type { PaymentConditions } from '#src/store/tables/look-through-payments.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { type PayerHashKeys, payerHashes } from '../payer-hashes.ts';
import { firstTime, timeAfter, zoneOf } from './list-times.ts';

/** The filters that a list and a search have in common. */
export type PaymentFilters = Omit<ListPaymentsRequest, '$typeName' | '$unknown' | 'pageSize' | 'pageToken'>;

/** A payer, as entered in a search. */
export type SearchedPayer = Pick<SearchPaymentsRequest, 'payerEmail' | 'payerDocument'>;

/** An account's filter, with all names resolved and without personal data in the clear. */
export type PaymentFilter = PaymentConditions & {
  /** Name of a Payment.SubStatus. */
  readonly subStatus: string | undefined;
  readonly responseCode: string | undefined;
};

/**
 * Resolves filters: times and dates in their zone, amounts to minor units, and the merchant's id for a customer to ours.
 *
 * @throws ServiceError INVALID_PARAMETERS for a malformed value, and for an amount without a currency.
 */
export async function paymentFilter(
  database: Database,
  accountId: string,
  filters: PaymentFilters,
): Promise<PaymentFilter> {
  const zone = zoneOf('zone', filters.zone);
  const succeededFrom = firstTime('succeeded_from', filters.succeededFrom, zone);
  const succeededBefore = timeAfter('succeeded_to', filters.succeededTo, zone);
  const hasSuccess = succeededFrom !== undefined || succeededBefore !== undefined;
  return {
    accountId,
    from: firstTime('created_from', filters.createdFrom, zone),
    before: timeAfter('created_to', filters.createdTo, zone),
    customerId: await customerOf(database, accountId, filters),
    merchantOrderId: filters.merchantOrderId || undefined,
    orderPrefix: filters.merchantOrderIdPrefix || undefined,
    status: filters.status ? Payment_Status[filters.status] : undefined,
    methodType: filters.paymentMethodType || undefined,
    category: filters.category ? Transaction_Category[filters.category] : undefined,
    cardBrand: filters.cardBrand || undefined,
    country: filters.country || undefined,
    currency: filters.currency || undefined,
    leastMinorUnits: amountOf('amount_from', filters.amountFrom, filters.currency),
    mostMinorUnits: amountOf('amount_to', filters.amountTo, filters.currency),
    connectionId: filters.connectionId || undefined,
    unknownOutcome: filters.unknownOutcome ? 'true' : undefined,
    disputed: filters.disputed ? 'true' : undefined,
    succeeded: hasSuccess ? `${succeededFrom ?? '-infinity'} ${succeededBefore ?? 'infinity'}` : undefined,
    subStatus: filters.subStatus ? Payment_SubStatus_Value[filters.subStatus] : undefined,
    responseCode: filters.responseCode || undefined,
    // Spares the test of most records, each of which would be decoded.
    recordText: filters.responseCode || undefined,
  };
}

/**
 * Returns the keyed hashes of a searched payer; {} without one.
 *
 * @throws ServiceError INVALID_PARAMETERS for an e-mail address or document that no payment can have, and for a document
 * without a country. No message quotes the value.
 */
export function payerConditions(
  keys: PayerHashKeys,
  accountId: string,
  country: string,
  { payerEmail, payerDocument }: SearchedPayer,
): Pick<PaymentFilter, 'payerEmailHash' | 'payerDocumentHash'> {
  const email = payerEmail.trim() || undefined;
  const hashes = payerHashes(keys, accountId, country, { email, document: payerDocument });
  if (email !== undefined && hashes.payerEmailHash === undefined) {
    throw invalidField('payer_email', 'INVALID_FORMAT', 'must be an e-mail address');
  }
  if (payerDocument && hashes.payerDocumentHash === undefined) {
    throw invalidField('payer_document.document_number', 'REQUIRED', 'must have letters or digits');
  }
  if (payerDocument && country === '') {
    const message = 'is needed with payer_document: the same number is another document elsewhere';
    throw invalidField('country', 'REQUIRED', message);
  }
  return hashes;
}

/** Returns the test of a record for the filters that no column holds; undefined without one. */
export function recordTest({
  subStatus,
  responseCode,
}: Pick<PaymentFilter, 'subStatus' | 'responseCode'>): ((payment: Payment) => boolean) | undefined {
  if (subStatus === undefined && responseCode === undefined) return undefined;
  return (payment) =>
    (subStatus === undefined || Payment_SubStatus_Value[payment.subStatus] === subStatus) &&
    (responseCode === undefined ||
      payment.transactionsHistory.some((transaction) => transaction.responseCode === responseCode));
}

/** Returns the customer that filters name; an id that nobody has if there is no such customer. */
async function customerOf(
  database: Database,
  accountId: string,
  filters: PaymentFilters,
): Promise<string | undefined> {
  const { customerId, merchantCustomerId } = filters;
  if (customerId !== '' && !isUuid(customerId)) {
    throw invalidField('customer_id', 'INVALID_FORMAT', 'must be the UUID of a stored customer');
  }
  if (merchantCustomerId === '') return customerId.toLowerCase() || undefined;
  const found = (await findCustomer(database, accountId, merchantCustomerId))?.id ?? NIL_UUID;
  return customerId === '' || customerId.toLowerCase() === found ? found : NIL_UUID;
}

function amountOf(field: string, text: string, currency: string): string | undefined {
  if (text === '') return undefined;
  if (currency === '') throw invalidField('currency', 'REQUIRED', `is needed with ${field}`);
  if (currencyDigits(currency) === undefined) {
    throw invalidField('currency', 'NOT_SUPPORTED', 'is not a currency of ISO 4217 that has amounts');
  }
  if (!isDecimal(text)) throw invalidField(field, 'INVALID_FORMAT', whyNoDecimal(text));
  const money = parseMoney(text, currency);
  if (!money) throw invalidField(field, 'INVALID_FORMAT', `has more decimal places than ${currency}`);
  // Beyond every amount: PostgreSQL's integers end too.
  const most = BigInt(Number.MAX_SAFE_INTEGER) + 1n;
  return String(money.minorUnits > most ? most : money.minorUnits < -most ? -most : money.minorUnits);
}
