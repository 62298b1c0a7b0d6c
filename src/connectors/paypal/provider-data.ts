import { create, type JsonObject, type JsonValue } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { isJsonObject, textOf } from '#src/connectors/provider-answer.ts';

/** Under which names the connection's answers are shown. */
export type ShownAs = { readonly providerId: string; readonly accountId: string | undefined };

/** Left out of what is shown: the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['payer', 'payment_source', 'shipping']);

/**
 * Provider data of the record, from an answer.
 *
 * @param object the order, the capture or the refund that the answer is about; `body` is all of the answer.
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
    rawResponse: shown(body) as JsonObject,
  });
}

/** Provider data of the record, from an error whose first issue says why. */
export function errorDataOf(body: JsonObject, shownAs: ShownAs): ProviderData {
  const issue = issueOf(body);
  return create(ProviderDataSchema, {
    ...shownIds(shownAs),
    status: textOf(body.name),
    responseCode: textOf(issue.issue),
    responseMessage: textOf(issue.description) || textOf(body.message),
    rawResponse: shown(body) as JsonObject,
  });
}

/** The first issue of an error. */
export function issueOf(body: JsonObject): JsonObject {
  return objectsAt(body, 'details')[0] ?? {};
}

/** The object in a field; an empty one when there is none. */
export function objectAt(object: JsonObject, field: string): JsonObject {
  const value = object[field];
  return isJsonObject(value) ? value : {};
}

/** The objects in a field's list. */
export function objectsAt(object: JsonObject, field: string): readonly JsonObject[] {
  const value = object[field];
  return Array.isArray(value) ? value.filter(isJsonObject) : [];
}

function shownIds({ providerId, accountId }: ShownAs): { id: string; accountId: string } {
  return { id: providerId, accountId: accountId ?? '' };
}

function shown(value: JsonValue): JsonValue {
  if (Array.isArray(value)) return value.map(shown);
  if (!isJsonObject(value)) return value;
  return Object.fromEntries(
    Object.entries(value).flatMap(([name, inner]) => (NOT_SHOWN.has(name) ? [] : [[name, shown(inner)]])),
  );
}
