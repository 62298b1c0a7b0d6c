import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import type { Capable } from '#src/payments/method/features.ts';
import type { Signals } from '#src/routing/order-targets.ts';
import { createRouter } from '#src/routing/router.ts';
import type { LiveCatalogue } from './live-catalogue.ts';

/** A catalogue that can route payments. Its connections need not be open. */
export type RoutingCatalogue = Pick<LiveCatalogue, 'types' | 'router' | 'bins'> & {
  /** The capabilities of connections, by id. A connection that is not listed counts as able to handle every payment. */
  readonly connections: Capable;
};

/** Every circuit is closed, and no approval rate is known. */
export const ALL_CLOSED: Signals = { isAvailable: () => true, approvalRate: () => 1 };

/** Prepares a valid catalogue for routing, but not for payments. */
export function routingCatalogue(
  catalogue: Catalogue,
  connections: Capable,
  signals: Signals = ALL_CLOSED,
): RoutingCatalogue {
  return {
    types: new Map(catalogue.paymentMethodTypes.map((type) => [type.type, type])),
    router: createRouter(catalogue, signals),
    bins: createBinTable(catalogue.bins),
    connections,
  };
}
