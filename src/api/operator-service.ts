import { create } from '@bufbuild/protobuf';
import type { Timestamp } from '@bufbuild/protobuf/wkt';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import {
  type ExplainRouteRequest,
  ExplainRouteRequestSchema,
  type ExplainRouteResponse,
  ListConnectionsResponseSchema,
  type OperatorService,
} from '#gen/payments/v1/operator_service_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import type { ExplainVersion } from '#src/catalogue/explain-version.ts';
import { type ListedDeps, listConnections } from '#src/catalogue/list-connections.ts';
import type { Caller } from '#src/payments/caller.ts';
import { type ExplainedCatalogue, explainRoute } from '#src/payments/route/explain-route.ts';
import {
  type FieldError,
  fieldRefusal,
  invalidParameters,
  ServiceError,
  unknownId,
} from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { findStoredObjects, type VaultedToken } from '#src/store/tables/stored-objects.ts';
import { validate } from '#src/wire/validate.ts';
import type { Operator } from './authenticate.ts';
import { requireValid } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

/** Dependencies of explanations. */
export type ExplainDeps = {
  readonly database: Database;
  /** The catalogue in force. @throws ServiceError SERVICE_UNAVAILABLE while there is none. */
  readonly opened: () => ExplainedCatalogue & { readonly catalogue: Catalogue };
  readonly explainVersion: ExplainVersion;
  readonly now: () => Timestamp;
};

/** Dependencies of the operators' service. */
export type OperatorDeps = ExplainDeps & ListedDeps;

/** The handlers of payments.v1.OperatorService, the same for every protocol. They send nothing and write nothing. */
export function operatorService(
  deps: OperatorDeps,
): ServiceHandlers<typeof OperatorService, Caller & { readonly operator?: Operator }> {
  return {
    async listConnections() {
      const connections = await listConnections(deps.opened(), deps);
      return { message: create(ListConnectionsResponseSchema, { connections }) };
    },
    async explainRoute(request, { operator }) {
      if (!operator || operator.mayOnlyRead) throw onlyReads();
      return { message: await explain(deps, request) };
    },
  };
}

const checkRules = validate(ExplainRouteRequestSchema);

/** Explains a payment's route, as the call does. @throws ServiceError as the call. */
export async function explain(
  { database, opened, explainVersion, now }: ExplainDeps,
  request: ExplainRouteRequest,
): Promise<ExplainRouteResponse> {
  const inForce = opened();
  const { payment, idempotencyKey } = request;
  // The payment's fields are left to requireValid, whose messages are clearer.
  const faults = checkRules(request).filter(({ field }) => !field.startsWith('payment.'));
  if (!payment || faults.length > 0) throw invalidParameters(faults);
  const { catalogueVersion: version } = request;
  const catalogue = version === 0 ? inForce : await explainVersion(version);
  if (!catalogue) {
    const message = 'is no version that this release can read';
    throw fieldRefusal('INVALID_PARAMETERS', 'catalogue_version', 'NOT_FOUND', message);
  }
  try {
    requireValid(payment);
    const stored = await findStoredMethod(database, payment);
    return explainRoute(catalogue, payment, { idempotencyKey, time: now(), stored });
  } catch (error) {
    throw error instanceof ServiceError ? withinPayment(error) : error;
  }
}

/** Finds the stored method that a payment would use. @throws ServiceError VAULTED_TOKEN_NOT_FOUND. */
async function findStoredMethod(
  database: Database,
  { accountId, paymentMethod }: CreatePaymentRequest,
): Promise<VaultedToken | undefined> {
  const vaultedToken = paymentMethod?.vaultedToken;
  if (!vaultedToken) return undefined;
  const found = await findStoredObjects(database, accountId, { customerId: undefined, vaultedToken });
  if (found.vaultedToken) return found.vaultedToken;
  throw unknownId('VAULTED_TOKEN_NOT_FOUND', 'payment_method.vaulted_token');
}

/** Returns a payment's refusal, with the fields named as in this request. */
function withinPayment({ reason, fields }: ServiceError): ServiceError {
  const within = fields.map((fault): FieldError => ({ ...fault, field: `payment.${fault.field}` }));
  return new ServiceError(reason, invalidParameters(within).message, { fields: within });
}

function onlyReads(): ServiceError {
  const message = 'this operator key may only read; nothing was sent; use another key';
  return new ServiceError('AUTHORIZATION_REQUIRED', message);
}
