import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import { readMerchantAdvice } from '../kit/merchant-advice.ts';
import {
  asIs,
  each,
  fields,
  listOf,
  pageAddress,
  type Read,
  type Reader,
  readMoney,
  textLike,
  textOf,
  uuidOf,
  withoutFields,
  withRaw,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';

/** Matches PayPal's order, capture and refund ids. */
export const PAYPAL_ID = /^[A-Z0-9]{8,36}$/;

const amountFields = fields(each(asIs, 'value', 'currency_code'));

/** Reads an amount. */
export const amountOf: Reader<Money | undefined> = (amount) => {
  const { value, currency_code: currency } = amountFields(amount);
  return readMoney(value, currency, 'decimal');
};

/** The fields that carry our transaction's id. */
const names = each(asIs, 'reference_id', 'custom_id', 'invoice_id');

/** Reads a capture or a refund, on its own or within its order. */
export const readTransaction = withRaw(
  fields({
    ...names,
    id: textLike(PAYPAL_ID),
    status: textOf,
    amount: amountOf,
    status_details: fields({ reason: textOf }),
    processor_response: fields(each(textOf, 'response_code', 'payment_advice_code')),
  }),
);

/** A capture or a refund. */
export type Transaction = Read<typeof readTransaction>;

const unit = fields({
  ...names,
  amount: amountOf,
  payments: fields({ captures: listOf(readTransaction), refunds: listOf(readTransaction) }),
});

/** The only purchase unit of an order. */
export type Unit = Read<typeof unit>;

/** URLs to which a payer may be sent, each with its purpose. */
const links = listOf(fields({ rel: textOf, href: pageAddress }));

/** Reads an order. */
export const readOrder = withRaw(
  fields({
    id: textLike(PAYPAL_ID),
    intent: asIs,
    status: textOf,
    purchase_units: listOf(unit),
    links,
  }),
);

/** An order. */
export type Order = Read<typeof readOrder>;

/** Ids of disputes; their hyphens distinguish them from other references. */
const DISPUTE_ID = /^PP-[A-Za-z0-9-]{1,250}$/;

/** Reads the object that a notification is about: an order, a capture, a refund or a dispute. */
export const readResource = fields({
  id: textLike(PAYPAL_ID),
  order_id: asIs,
  custom_id: uuidOf,
  invoice_id: uuidOf,
  amount: amountOf,
  purchase_units: listOf(fields({ custom_id: uuidOf, invoice_id: uuidOf })),
  supplementary_data: fields({ related_ids: fields({ order_id: asIs }) }),
  links: listOf(fields({ rel: textOf, href: textOf })),
  dispute_id: textLike(DISPUTE_ID),
  status: textOf,
  dispute_amount: amountOf,
  dispute_outcome: fields({ outcome_code: textOf, amount_refunded: amountOf }),
  money_movements: listOf(fields({ ...each(textOf, 'affected_party', 'type', 'reason'), amount: amountOf })),
  ...each(textOf, 'reason', 'dispute_life_cycle_stage', 'seller_response_due_date', 'update_time'),
  disputed_transactions: listOf(
    fields({ custom: uuidOf, invoice_number: uuidOf, seller_transaction_id: textLike(PAYPAL_ID) }),
  ),
});

/** The object that a notification is about. */
export type Resource = Read<typeof readResource>;

/** Reads an error in PayPal's form or in OAuth's. */
export const readError = withRaw(
  fields({
    name: textOf,
    message: textOf,
    details: listOf(fields(each(textOf, 'issue', 'field', 'description'))),
    links,
  }),
);

/** An error in PayPal's form. */
export type PayPalError = Read<typeof readError>;

/** Reads the account of an access token. Everything else in it are the owner's personal data. */
export const readUser = fields({ payer_id: textLike(/^[2-9A-HJ-NP-Z]{13}$/) });

/** Returns true if a body is an error in PayPal's own form or in OAuth's. */
export function isErrorBody(body: JsonObject): boolean {
  return (
    (typeof body.name === 'string' && typeof body.message === 'string') ||
    (typeof body.error === 'string' && typeof body.error_description === 'string')
  );
}

/** Fields that the record omits: the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['payer', 'payment_source', 'shipping']);

/**
 * Builds the record's provider data from a response.
 *
 * @param object the order, the capture or the refund in the response; `body` is the whole response.
 */
export function providerDataOf(
  object: Pick<Order, 'id' | 'status'> & Partial<Transaction>,
  body: JsonObject,
  { providerId, accountId }: ShownAs,
): ProviderData {
  return create(ProviderDataSchema, {
    id: providerId,
    accountId: accountId ?? '',
    transactionId: object.id ?? '',
    status: object.status,
    statusDetail: object.status_details?.reason ?? '',
    responseCode: object.processor_response?.response_code ?? '',
    ...readMerchantAdvice(object.processor_response?.payment_advice_code ?? ''),
    rawResponse: withoutFields(body, NOT_SHOWN),
  });
}

/** Builds the record's provider data from an error, with its first issue as the reason. */
export function errorDataOf(
  { name, message, details: [first], raw }: PayPalError,
  { providerId, accountId }: ShownAs,
): ProviderData {
  return create(ProviderDataSchema, {
    id: providerId,
    accountId: accountId ?? '',
    status: name,
    responseCode: first?.issue ?? '',
    responseMessage: first?.description || message,
    rawResponse: withoutFields(raw, NOT_SHOWN),
  });
}
