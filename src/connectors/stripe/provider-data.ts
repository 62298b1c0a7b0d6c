import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { objectAt, textOf, withoutFields } from '#src/connectors/provider-answer.ts';
import type { ShownAs } from '#src/connectors/provider-client.ts';

/** Fields that the record does not show: those that let a browser act on the payment, and the payer's own data. */
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
 * @param object the PaymentIntent or the refund that the answer is about; `body` is the whole answer.
 */
export function providerDataOf(
  object: JsonObject,
  body: JsonObject,
  { providerId, accountId }: ShownAs,
): ProviderData {
  const outcome = objectAt(objectAt(object, 'latest_charge'), 'outcome');
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: textOf(object.id),
    accountId: accountId ?? '',
    status: textOf(object.status),
    statusDetail: textOf(outcome.network_status) || textOf(object.failure_reason),
    responseMessage: textOf(outcome.seller_message),
    rawResponse: withoutFields(body, NOT_SHOWN),
  });
}
