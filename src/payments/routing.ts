import type { Catalogue, Connection, Route } from '../../gen/payments/config/catalogue_pb.js';

/** The route that a payment takes, and the connection at its end. */
export type ChosenRoute = { readonly route: Route; readonly connection: Connection };

/** What a route is chosen by. */
export type RouteQuery = { readonly type: string; readonly country: string; readonly currency: string };

/** Chooses the first route that matches; undefined when none does. */
export type Router = (query: RouteQuery) => ChosenRoute | undefined;

/** Makes the catalogue's routes ready. The catalogue is valid: every route's connection is in it. */
export function createRouter(catalogue: Catalogue): Router {
  const connections = new Map(catalogue.connections.map((connection) => [connection.id, connection]));
  const routes = catalogue.routes.flatMap((route) => {
    const connection = connections.get(route.connection);
    return connection ? [{ route, connection }] : [];
  });
  return (query) => routes.find(({ route }) => matches(route, query));
}

function matches(route: Route, query: RouteQuery): boolean {
  return (
    includes(route.types, query.type) &&
    includes(route.countries, query.country) &&
    includes(route.currencies, query.currency)
  );
}

/** An empty list matches everything. */
function includes(list: readonly string[], value: string): boolean {
  return list.length === 0 || list.includes(value);
}
