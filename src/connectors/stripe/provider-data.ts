import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { isJsonObject, textOf } from '#src/connectors/provider-answer.ts';

/** Under which names the connection's answers are shown. */
export type ShownAs = { readonly providerId: string; readonly accountId: string | undefined };

/** Left out of what is shown: what lets a browser act on the payment, and the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  'client_secret',
  'next_action',
  'billing_details',
  'shipping',
  'receipt_email',
  'receipt_url',
]);

/**
 * Returns the parts of an answer that the record shows.
 *
 * @param object the PaymentIntent or the refund that the answer is about; `body` is all of the answer.
 */
export function providerDataOf(
  object: JsonObject,
  body: JsonObject,
  { providerId, accountId }: ShownAs,
): ProviderData {
  const charge = isJsonObject(object.latest_charge) ? object.latest_charge : {};
  const outcome = isJsonObject(charge.outcome) ? charge.outcome : {};
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: textOf(object.id),
    accountId: accountId ?? '',
    status: textOf(object.status),
    statusDetail: textOf(outcome.network_status) || textOf(object.failure_reason),
    responseMessage: textOf(outcome.seller_message),
    rawResponse: shown(body) as JsonObject,
  });
}

/** Returns the fields that an answer shows of itself. */
function shown(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shown);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (NOT_SHOWN.has(name) ? [] : [[name, shown(inner)]])),
  );
}
