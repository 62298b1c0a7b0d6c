import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import type { CardTokenResponse } from 'mercadopago/dist/clients/cardToken/commonTypes.js';
import type { ChargebackResponse } from 'mercadopago/dist/clients/chargeback/commonTypes.js';
import type {
  Barcode,
  PaymentResponse,
  PointOfInteraction,
  TransactionData,
  TransactionDetails,
} from 'mercadopago/dist/clients/payment/commonTypes.js';
import type { PaymentSearch } from 'mercadopago/dist/clients/payment/search/types.js';
import type {
  PaymentMethodFinancialInstitutions,
  PaymentMethodResponse,
} from 'mercadopago/dist/clients/paymentMethod/get/types.js';
import type { RefundResponse } from 'mercadopago/dist/clients/paymentRefund/commonTypes.js';
import type { PreferenceResponse } from 'mercadopago/dist/clients/preference/commonTypes.js';
import type { UserResponse } from 'mercadopago/dist/clients/user/get/types.js';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import {
  asIs,
  each,
  type FieldsOf,
  fields,
  isJsonObject,
  listOf,
  numberOf,
  pageAddress,
  type Read,
  type Reader,
  readJsonObject,
  textLike,
  textOf,
  withoutFields,
  withRaw,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';
import { PREFERENCE_ID } from './reference.ts';

/** Matches a payment id or a refund id. */
const NUMERIC_ID = /^\d{1,20}$/;

/** Reads a payment id or a refund id, which is a number in some responses and a string in others. */
export const idOf: Reader<string | undefined> = (value) => {
  const text = Number.isSafeInteger(value) ? String(value) : textOf(value);
  return NUMERIC_ID.test(text) ? text : undefined;
};

/** Reads the id of a bank: its ACH Colombia code, as a string or a number. */
const bankId: Reader<string | undefined> = (value) =>
  (Number.isSafeInteger(value) ? String(value) : textOf(value)) || undefined;

/** Reads a text that the payer is shown. The provider sends '' and null for fields that do not apply. */
const shownText: Reader<string | undefined> = (value) => textOf(value) || undefined;

const preferenceItem = fields({ unit_price: numberOf, quantity: numberOf, currency_id: asIs });

/** Reads a preference; `items` is undefined if it is not a list. */
export const readPreference = withRaw(
  fields({
    id: textLike(PREFERENCE_ID),
    init_point: pageAddress,
    external_reference: asIs,
    collector_id: asIs,
    items: (items: JsonValue | undefined) => (Array.isArray(items) ? items.map(preferenceItem) : undefined),
    expires: asIs,
    expiration_date_to: textOf,
    date_created: textOf,
  } satisfies FieldsOf<PreferenceResponse>),
);

/** A preference: a page on which the payer pays. */
export type Preference = Read<typeof readPreference>;

/** Reads a payment. */
export const readPayment = withRaw(
  fields({
    id: idOf,
    status: textOf,
    status_detail: textOf,
    external_reference: asIs,
    collector_id: asIs,
    transaction_amount: asIs,
    transaction_amount_refunded: asIs,
    currency_id: asIs,
    authorization_code: textOf,
    payment_method_id: textOf,
    date_of_expiration: textOf,
    transaction_details: fields({
      ...each(shownText, 'payment_method_reference_id', 'digitable_line', 'verification_code'),
      external_resource_url: pageAddress,
      barcode: fields({ content: textLike(/^\d{1,64}$/) } satisfies FieldsOf<Barcode>),
    } satisfies FieldsOf<TransactionDetails>),
    // Its only part has the scheme's id of the transaction.
    expanded: (parts) =>
      Object.values(isJsonObject(parts) ? parts : {}).map(
        fields({ reference: fields({ network_transaction_id: textOf }) }),
      ),
    point_of_interaction: fields({
      transaction_data: fields({
        qr_code: shownText,
        ticket_url: pageAddress,
      } satisfies FieldsOf<TransactionData>),
    } satisfies FieldsOf<PointOfInteraction>),
  } satisfies FieldsOf<PaymentResponse>),
);

/**
 * A payment that a payer made or tried to make on a preference, that awaits its payer by itself, or that charges a card.
 */
export type Payment = Read<typeof readPayment>;

/** Reads a refund. It contains no currency: the payment's applies. */
export const readRefund = withRaw(
  fields({
    id: idOf,
    payment_id: idOf,
    amount: asIs,
    status: textOf,
    date_created: textOf,
  } satisfies FieldsOf<RefundResponse>),
);

/** A refund of a payment. */
export type Refund = Read<typeof readRefund>;

const CHARGEBACK_OF_LIBRARY = {
  ...{ payment_id: idOf, status: textOf, amount: asIs, currency_id: asIs },
  ...each(textOf, 'reason', 'reason_id', 'last_modified'),
} satisfies FieldsOf<ChargebackResponse>;
const readOneChargeback = fields({
  ...CHARGEBACK_OF_LIBRARY,
  // Only the documentation has these.
  ...{ payments: asIs, currency: asIs, documentation_required: asIs },
  ...each(textOf, 'documentation_status', 'date_documentation_deadline', 'date_last_updated'),
});

/** Reads a chargeback with the ids of its payments. The documentation and the provider's library describe different fields. */
export function readChargeback(body: JsonObject) {
  const { payments, payment_id, ...chargeback } = readOneChargeback(body);
  const listed = (Array.isArray(payments) ? payments : [payments]).flatMap((one) => idOf(one) ?? []);
  return { ...chargeback, paymentIds: [...new Set([...listed, ...(payment_id ? [payment_id] : [])])] };
}

/** A chargeback: a payer's bank takes the money of payments back. */
export type Chargeback = ReturnType<typeof readChargeback>;

/** Reads a search response. */
export const readSearch = fields({
  results: asIs,
  paging: fields({ total: numberOf }),
} satisfies FieldsOf<PaymentSearch>);

/** Reads a payment method of the account, with the banks from which its payers can pay. */
export const readPaymentMethod = fields({
  id: textOf,
  financial_institutions: listOf(
    fields({
      id: bankId,
      description: textOf,
    } satisfies FieldsOf<PaymentMethodFinancialInstitutions>),
  ),
} satisfies FieldsOf<PaymentMethodResponse>);

/** Reads an access token's user. Everything else in it are the owner's personal data. */
export const readUser = fields({
  id: idOf,
  tags: (tags: JsonValue | undefined) => (Array.isArray(tags) ? tags : []),
} satisfies FieldsOf<UserResponse>);

/** Reads the token of a card, which pays once. */
export const readCardToken = fields({
  id: textLike(/^[0-9A-Za-z-]{1,128}$/),
} satisfies FieldsOf<CardTokenResponse>);

/** Reads the payment methods that a search by a card's first digits found. The library's types do not have it. */
export const readCardMethods = fields({
  results: listOf(
    fields({
      id: textLike(/^[a-z0-9_]{1,64}$/),
      payment_type_id: textOf,
      issuer: fields({ id: idOf }),
    }),
  ),
});

/** Reads an error. */
export const readError = fields({
  message: asIs,
  status: asIs,
  cause: listOf(fields({ description: textOf })),
});

/** Parses a response body that is a bare list of objects; undefined if it is none. */
export function readJsonList(body: Uint8Array): readonly JsonObject[] | undefined {
  const list = readJsonObject(Buffer.concat([Buffer.from('{"list":'), body, Buffer.from('}')]))?.list;
  return Array.isArray(list) && list.every(isJsonObject) ? list : undefined;
}

/** Returns true if a body is an error in the provider's own form. */
export function isErrorBody(body: JsonObject, status: number): boolean {
  return typeof body.message === 'string' && body.status === status;
}

/** Fields that the record omits at any depth: the payer's account at their bank, an image, and a card's token. */
const NOT_SHOWN_ANYWHERE: ReadonlySet<string> = new Set(['bank_info', 'qr_code_base64', 'token']);
/** Fields that the record omits: the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['payer', 'card', 'additional_info', 'back_urls', 'metadata']);
const shown = fields({
  id: (id: JsonValue | undefined) => textOf(id) || idOf(id) || '',
  collector_id: idOf,
  status: textOf,
  status_detail: textOf,
});

/** Builds the record's provider data from a payment, a preference or a refund. */
export function providerDataOf(
  object: JsonObject,
  { providerId, accountId }: ShownAs,
  responseMessage = '',
): ProviderData {
  const { id, collector_id, status, status_detail } = shown(object);
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: id,
    accountId: accountId ?? collector_id ?? '',
    status,
    statusDetail: status_detail,
    responseCode: status_detail,
    responseMessage,
    rawResponse: withoutFields(
      Object.fromEntries(Object.entries(object).filter(([name]) => !NOT_SHOWN.has(name))),
      NOT_SHOWN_ANYWHERE,
    ),
  });
}
