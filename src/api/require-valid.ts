import type { DescMessage, Message, MessageShape } from '@bufbuild/protobuf';
import type { CardDataInput } from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { checkRequest } from '#src/payments/request/check-request.ts';
import { checkValues } from '#src/payments/request/check-values.ts';
import { type FieldError, faultsOf, invalidParameters, MAX_FIELD_ERRORS } from '#src/service-error.ts';
import { canonicalize } from '#src/wire/canonical-message.ts';
import { validate } from '#src/wire/validate.ts';

const checkRules = validate(CreatePaymentRequestSchema);

/**
 * Checks a request against the rules in its .proto and in our code.
 *
 * @throws ServiceError INVALID_PARAMETERS with up to 20 faulty fields.
 */
export function requireValid(request: CreatePaymentRequest): void {
  const faults = paymentFaults(request);
  // gRPC's trailers could not hold hundreds of faults.
  if (faults.length > 0) throw invalidParameters(faults.slice(0, MAX_FIELD_ERRORS));
}

function paymentFaults(request: CreatePaymentRequest): FieldError[] {
  // If a .proto rule and our code both refuse a field, our message wins, since it is clearer.
  const byField = new Map<string, FieldError>();
  for (const error of [...checkRules(request), ...checkRequest(request)]) byField.set(error.field, error);
  return [...byField.values()];
}

/** Returns the card number in a request's card field, if any. */
function cardNumberOf(message: Message): string | undefined {
  const { cardData, paymentMethod } = message as {
    readonly cardData?: Partial<CardDataInput>;
    readonly paymentMethod?: { readonly card?: Partial<CardDataInput> };
  };
  return cardData?.number || paymentMethod?.card?.number;
}

/**
 * Creates a function that checks messages against the rules in their .proto, and refuses values that no field may
 * contain.
 *
 * @returns a function that returns a valid message, or throws ServiceError INVALID_PARAMETERS with up to 20 faulty
 *   fields.
 */
export function requireValidOf<Desc extends DescMessage>(
  schema: Desc,
): (message: MessageShape<Desc>) => MessageShape<Desc> {
  const faultsIn = messageFaults(schema);
  return (message) => {
    const errors = faultsIn(message);
    if (errors.length > 0) throw invalidParameters(errors.slice(0, MAX_FIELD_ERRORS));
    return message;
  };
}

function messageFaults<Desc extends DescMessage>(
  schema: Desc,
): (message: MessageShape<Desc>) => FieldError[] {
  const rules = validate(schema);
  return (message) => {
    const ofValues = faultsOf((report) => checkValues(schema, message, report, cardNumberOf(message)));
    return [...rules(message), ...ofValues];
  };
}

/** Creates a function that checks the readable fields of a request whose other fields are unreadable. */
export function checkRest<Desc extends DescMessage>(
  schema: Desc,
): (message: MessageShape<Desc>) => FieldError[] {
  const isPayment = schema.typeName === CreatePaymentRequestSchema.typeName;
  const faultsIn = isPayment ? (paymentFaults as (message: never) => FieldError[]) : messageFaults(schema);
  return (message) => {
    canonicalize(schema, message);
    return faultsIn(message as never);
  };
}
