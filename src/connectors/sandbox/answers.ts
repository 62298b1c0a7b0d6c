import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import {
  asIs,
  each,
  fields,
  listOf,
  numberOf,
  optional,
  pageAddress,
  type Read,
  stringOf,
  textLike,
  textOf,
  withRaw,
} from '../kit/provider-answer.ts';

/** Matches the provider's ids. */
export const ID = /^[a-z]{2}_[0-9a-f-]{36}$/;

/** Reads a response: the created object, or an error. */
export const readAnswer = withRaw(
  fields({
    id: textLike(ID),
    ...each(asIs, 'object', 'idempotency_key', 'amount', 'currency', 'failure_code', 'captured'),
    ...each(textOf, 'payment', 'account', 'status', 'response_message'),
    // ISO 8583 fields 39, 38 and 37.
    response_code: textOf,
    authorization_code: textLike(/^[A-Z0-9]{6}$/),
    retrieval_reference_number: textLike(/^[A-Z0-9]{12}$/),
    network_transaction_id: textLike(/^[A-Z0-9]{15}$/),
    ...each(pageAddress, 'checkout_url', 'challenge_url', 'agreement_url', 'bank_url', 'page_url'),
    amount_received: asIs,
    expires_at: textLike(/^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z$/),
    instructions: optional(
      fields(each(stringOf, 'text', 'number', 'barcode', 'account', 'bank_name', 'beneficiary', 'reference')),
    ),
    card_brand: textLike(/^[A-Z_]{1,32}$/),
    card_last_four: textLike(/^\d{4}$/),
    ...each(numberOf, 'card_exp_month', 'card_exp_year'),
    card_funding: textLike(/^[A-Z_]{1,32}$/),
    wallet_token: textLike(/^wt_[0-9a-f-]{36}$/),
    error: fields({ type: stringOf, message: stringOf, param: textOf }),
  }),
);

/** Reads the account of a key. */
export const readAccountId = fields({ id: textLike(/^[A-Za-z0-9_-]{1,64}$/) });

/** Reads the list of a method's banks. */
export const readBanks = fields({
  banks: listOf(fields({ id: textLike(/^\d{1,20}$/), name: textLike(/^.{1,255}$/) })),
});

/** A response. */
export type Answer = Read<typeof readAnswer>;

/** Returns true if a response is an error in the provider's own form. */
export function isError({ error: { type, message } }: Answer): boolean {
  return type !== undefined && message !== undefined;
}

/** Response fields that `raw_response` shows; all others are dropped. */
const SHOWN_FIELDS = [
  ...['object', 'id', 'payment', 'idempotency_key', 'account', 'acquirer', 'status', 'failure_code'],
  ...['response_code', 'response_message', 'authorization_code', 'retrieval_reference_number'],
  ...['amount', 'amount_received', 'currency', 'captured', 'installments'],
  ...['method', 'bank', 'bank_url', 'page_url', 'card_brand', 'card_funding'],
  ...['card_iin', 'card_last_four', 'order_item_count', 'airline_leg_count', 'wallet', 'card_type'],
  ...['checkout_url', 'challenge_url', 'agreement_url', 'created_at'],
];

/** Builds the record's provider data from a response. */
export function providerDataOf(answer: Answer, providerId: string): ProviderData {
  const { response_code: responseCode, response_message: responseMessage } = answer;
  const isCharge = answer.object === 'charge';
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: answer.id ?? '',
    accountId: answer.account,
    status: answer.status,
    subStatus: isCharge && answer.status === 'approved' ? (answer.captured ? 'captured' : 'authorized') : '',
    responseMessage,
    responseCode,
    rawResponse: rawResponseOf(answer.raw),
    ...(isCharge &&
      responseCode && { iso8583ResponseCode: responseCode, iso8583ResponseMessage: responseMessage }),
  });
}

function rawResponseOf(answer: JsonObject): JsonObject {
  const raw: JsonObject = {};
  for (const field of SHOWN_FIELDS) {
    // For a wallet, `status` says whether the payer paid.
    if (field === 'captured' && answer.object !== 'charge') continue;
    const value = answer[field];
    if (field === 'challenge_url' && value === null) continue;
    if (value !== undefined && (value === null || typeof value !== 'object')) raw[field] = value;
  }
  return raw;
}
