import type { ExplainRouteResponse } from '#gen/payments/v1/operator_service_pb.js';
import type { ExplainVersion } from '#src/catalogue/explain-version.ts';
import { type ExplainedCatalogue, explainRecorded } from '#src/payments/route/explain-route.ts';
import type { RecordedPayment } from '#src/payments/route/recorded-payment.ts';
import { ServiceError } from '#src/service-error.ts';

/** The explanation of a stored payment's route. */
export type PaymentWay = {
  /** The version of the catalogue that routed the payment; 0 if it is unknown, or was a file. */
  readonly version: number;
  /** true: that version explains; false: the catalogue in force does. */
  readonly isByVersion: boolean;
  /** The refusal if the catalogue does not accept the payment. */
  readonly way: ExplainRouteResponse | ServiceError;
};

/**
 * Explains the route of a stored payment by the version of the catalogue that routed it or, if that is not stored, by the
 * catalogue in force.
 *
 * @param version 0 if it is unknown, or was a file.
 */
export type ExplainPayment = (recorded: RecordedPayment, version: number) => Promise<PaymentWay>;

/**
 * Creates the function that explains the routes of stored payments.
 *
 * @param inForce throws ServiceError SERVICE_UNAVAILABLE while there is none.
 */
export function createExplainPayment(
  explainVersion: ExplainVersion,
  inForce: () => ExplainedCatalogue,
): ExplainPayment {
  return async (recorded, version) => {
    const own = version === 0 ? undefined : await explainVersion(version);
    const told = { version, isByVersion: own !== undefined };
    try {
      return { ...told, way: explainRecorded(own ?? inForce(), recorded) };
    } catch (error) {
      if (error instanceof ServiceError) return { ...told, way: error };
      throw error;
    }
  };
}
