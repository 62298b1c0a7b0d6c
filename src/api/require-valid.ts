import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { checkRequest } from '#src/payments/check-request.ts';
import { checkValues } from '#src/payments/check-values.ts';
import { type FieldError, invalidParameters } from '#src/service-error.ts';
import { MAX_FIELD_ERRORS, validate } from '#src/wire/validate.ts';

const checkRules = validate(CreatePaymentRequestSchema);

/**
 * Holds a request against the rules in its .proto and against our own.
 *
 * @throws ServiceError INVALID_PARAMETERS with up to 20 fields at fault.
 */
export function requireValid(request: CreatePaymentRequest): void {
  // Where both the .proto's rule and our own refuse a field, our own says it in plainer words.
  const byField = new Map<string, FieldError>();
  for (const error of [...checkRules(request), ...checkRequest(request)]) byField.set(error.field, error);
  // A few of hundreds of faults are enough, and all of them would not fit into gRPC's trailers.
  if (byField.size > 0) throw invalidParameters([...byField.values()].slice(0, MAX_FIELD_ERRORS));
}

/**
 * Returns a check of messages against the rules in their .proto, and against what no field may hold.
 *
 * @returns gives the message back; throws ServiceError INVALID_PARAMETERS with up to 20 fields at fault.
 */
export function requireValidOf<Desc extends DescMessage>(
  schema: Desc,
): (message: MessageShape<Desc>) => MessageShape<Desc> {
  const rules = validate(schema);
  return (message) => {
    const errors = [...rules(message)];
    checkValues(schema, message, (field, code, text) => errors.push({ field, code, message: text }));
    if (errors.length > 0) throw invalidParameters(errors.slice(0, MAX_FIELD_ERRORS));
    return message;
  };
}
