import type { RoutingFacts } from '#gen/payments/v1/routing_facts_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { BinTable } from '#src/payments/method/bin-table.ts';
import type { MethodTypes } from '#src/payments/method/payment-method.ts';
import type { Signals } from '#src/routing/order-targets.ts';
import type { Router } from '#src/routing/router.ts';

/** The catalogue in force, with open connections. */
export type LiveCatalogue = {
  /** Its version; 0 for a catalogue from a file. */
  readonly version: number;
  readonly types: MethodTypes;
  readonly router: Router;
  readonly bins: BinTable;
  readonly connections: ReadonlyMap<string, ProviderConnection>;
  readonly signals: Signals;
  /** Feeds an attempt's outcome into later choices. */
  readonly learn: (connectionId: string, facts: RoutingFacts, outcome: Outcome) => void;
};

/** Returns an open connection. @throws Error for an unknown id, which the router never returns. */
export function openConnection({ connections }: LiveCatalogue, id: string): ProviderConnection {
  const connection = connections.get(id);
  if (!connection) throw new Error(`connection ${id} is not open`);
  return connection;
}
