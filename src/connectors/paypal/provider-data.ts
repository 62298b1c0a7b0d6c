import { create, type JsonObject } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { objectAt, objectsAt, textOf, withoutFields } from '#src/connectors/provider-answer.ts';
import type { ShownAs } from '#src/connectors/provider-client.ts';

/** Fields that the record does not show: the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['payer', 'payment_source', 'shipping']);

/**
 * Makes the record's provider data from an answer.
 *
 * @param object the order, the capture or the refund that the answer is about; `body` is the whole answer.
 */
export function providerDataOf(object: JsonObject, body: JsonObject, shownAs: ShownAs): ProviderData {
  const details = objectAt(object, 'status_details');
  const processor = objectAt(object, 'processor_response');
  return create(ProviderDataSchema, {
    ...shownIds(shownAs),
    transactionId: textOf(object.id),
    status: textOf(object.status),
    statusDetail: textOf(details.reason),
    responseCode: textOf(processor.response_code),
    rawResponse: withoutFields(body, NOT_SHOWN),
  });
}

/** Makes the record's provider data from an error whose first issue gives the reason. */
export function errorDataOf(body: JsonObject, shownAs: ShownAs): ProviderData {
  const issue = issueOf(body);
  return create(ProviderDataSchema, {
    ...shownIds(shownAs),
    status: textOf(body.name),
    responseCode: textOf(issue.issue),
    responseMessage: textOf(issue.description) || textOf(body.message),
    rawResponse: withoutFields(body, NOT_SHOWN),
  });
}

/** Matches the one purchase unit of an order, which PayPal may name by its reference instead of its position. */
const UNIT = /^\/purchase_units\/[^/]+/;

/** Returns PayPal's pointer to the field that an issue is about (`/payer/name`); '' if it is about none. */
export function fieldOf(issue: JsonObject): string {
  return textOf(issue.field).replace(UNIT, '/purchase_units/0');
}

/** Returns the first issue of an error. */
export function issueOf(body: JsonObject): JsonObject {
  return objectsAt(body, 'details')[0] ?? {};
}

function shownIds({ providerId, accountId }: ShownAs): { id: string; accountId: string } {
  return { id: providerId, accountId: accountId ?? '' };
}
