import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { Catalogue } from '#gen/payments/config/catalogue_pb.js';
import {
  type ExplainRouteRequest,
  ExplainRouteRequestSchema,
  type ExplainRouteResponse,
  ListConnectionsResponseSchema,
  type OperatorService,
} from '#gen/payments/v1/operator_service_pb.js';
import {
  describeConnection,
  type ExplainedCatalogue,
  explainRoute,
} from '#src/payments/read/explain-route.ts';
import { type FieldError, invalidParameters, ServiceError } from '#src/service-error.ts';
import { validate } from '#src/wire/validate.ts';
import { requireValid } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

/** Dependencies of the operators' service. */
export type OperatorDeps = {
  /** The catalogue in force. @throws ServiceError SERVICE_UNAVAILABLE while there is none. */
  readonly opened: () => ExplainedCatalogue & { readonly catalogue: Catalogue };
  readonly now: () => Timestamp;
};

/** The handlers of payments.v1.OperatorService, the same for every protocol. They send nothing and write nothing. */
export function operatorService({
  opened,
  now,
}: OperatorDeps): ServiceHandlers<typeof OperatorService, unknown> {
  return {
    async listConnections() {
      const { catalogue, signals, health } = opened();
      const connections = catalogue.connections.map((one) => describeConnection(one, signals, health));
      return { message: create(ListConnectionsResponseSchema, { connections }) };
    },
    async explainRoute(request) {
      return { message: explain(opened(), request, now()) };
    },
  };
}

const checkRules = validate(ExplainRouteRequestSchema);

function explain(
  catalogue: ExplainedCatalogue,
  request: ExplainRouteRequest,
  time: Timestamp,
): ExplainRouteResponse {
  const { payment, idempotencyKey } = request;
  // The payment's fields are left to requireValid, whose messages are clearer.
  const faults = checkRules(request).filter(({ field }) => !field.startsWith('payment.'));
  if (!payment || faults.length > 0) throw invalidParameters(faults);
  try {
    requireValid(payment);
    return explainRoute(catalogue, payment, idempotencyKey, time);
  } catch (error) {
    throw error instanceof ServiceError ? withinPayment(error) : error;
  }
}

/** Returns a payment's refusal, with the fields named as in this request. */
function withinPayment({ reason, fields }: ServiceError): ServiceError {
  const within = fields.map((fault): FieldError => ({ ...fault, field: `payment.${fault.field}` }));
  return new ServiceError(reason, invalidParameters(within).message, { fields: within });
}
