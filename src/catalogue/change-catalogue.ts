import { clone, create } from '@bufbuild/protobuf';
import {
  type Catalogue,
  CatalogueSchema,
  type ConnectionConfig,
  ConnectionConfigSchema,
  type PaymentMethodType,
  type Route,
} from '#gen/payments/v1/catalogue_pb.js';
import type { UpdateCatalogueRequest } from '#gen/payments/v1/configuration_service_pb.js';
import { fieldRefusal } from '#src/service-error.ts';

/** A change of a catalogue, other than its whole text. */
export type CatalogueChangeRequest = Exclude<
  UpdateCatalogueRequest['change'],
  { case: undefined } | { case: 'yaml' }
>;

/**
 * Returns the changed catalogue. Pure; the given catalogue stays as it is.
 *
 * @param earlier the version that `undo_to` names.
 * @throws ServiceError INVALID_PARAMETERS if the change names something that the catalogue does not have.
 */
export function changeCatalogue(
  current: Catalogue,
  change: CatalogueChangeRequest,
  earlier: Catalogue | undefined,
): Catalogue {
  const { connections, routes, paymentMethodTypes } = current;
  switch (change.case) {
    case 'catalogue':
      return change.value;
    case 'putConnection':
      return { ...current, connections: put(connections, change.value, idOf) };
    case 'retireConnection': {
      const { id } = requireOne(connections, change.value, idOf, 'retire_connection');
      return { ...current, connections: connections.map((one) => (one.id === id ? retired(one) : one)) };
    }
    case 'removeConnection':
      return { ...current, connections: without(connections, change.value, idOf, 'remove_connection') };
    case 'putRoute':
      return { ...current, routes: putRoute(routes, change.value.route, change.value.before) };
    case 'removeRoute':
      return { ...current, routes: without(routes, change.value, routeIdOf, 'remove_route') };
    case 'putPaymentMethodType':
      return { ...current, paymentMethodTypes: put(paymentMethodTypes, change.value, typeOf) };
    case 'removePaymentMethodType':
      return {
        ...current,
        paymentMethodTypes: without(paymentMethodTypes, change.value, typeOf, 'remove_payment_method_type'),
      };
    case 'undoTo':
      if (!earlier) throw unknown('undo_to', 'version');
      return undone(current, earlier);
  }
}

/** Returns an earlier catalogue with the connections that exist only now, which are carried along as retired. */
function undone(current: Catalogue, earlier: Catalogue): Catalogue {
  const then = new Set(earlier.connections.map(idOf));
  const carried = current.connections.filter(({ id }) => !then.has(id)).map(retired);
  const back = clone(CatalogueSchema, earlier);
  return { ...back, connections: [...back.connections, ...carried] };
}

/** Returns an empty catalogue, with which every payment is refused. */
export function emptyCatalogue(): Catalogue {
  return create(CatalogueSchema);
}

function retired(connection: ConnectionConfig): ConnectionConfig {
  return { ...clone(ConnectionConfigSchema, connection), retired: true };
}

function putRoute(routes: readonly Route[], route: Route | undefined, before: number | undefined): Route[] {
  if (!route) throw fieldRefusal('INVALID_PARAMETERS', 'put_route.route', 'REQUIRED', 'is required');
  if (before === undefined) return put(routes, route, routeIdOf);
  const others = routes.filter(({ id }) => id !== route.id);
  const at = others.findIndex(({ id }) => id === before);
  if (at < 0) throw unknown('put_route.before', 'route');
  return others.toSpliced(at, 0, route);
}

const idOf = ({ id }: ConnectionConfig) => id;
const routeIdOf = ({ id }: Route) => id;
const typeOf = ({ type }: PaymentMethodType) => type;

/** Replaces the element with the same name, or adds the element at the end. */
function put<T>(all: readonly T[], one: T, nameOf: (element: T) => unknown): T[] {
  const at = all.findIndex((other) => nameOf(other) === nameOf(one));
  return at < 0 ? [...all, one] : all.with(at, one);
}

function without<T, Name>(all: readonly T[], name: Name, nameOf: (element: T) => Name, field: string): T[] {
  const found = requireOne(all, name, nameOf, field);
  return all.filter((one) => one !== found);
}

function requireOne<T, Name>(all: readonly T[], name: Name, nameOf: (element: T) => Name, field: string): T {
  const found = all.find((one) => nameOf(one) === name);
  if (found === undefined) throw unknown(field, field.replace(/^.*?_/, '').replaceAll('_', ' '));
  return found;
}

function unknown(field: string, what: string) {
  return fieldRefusal('INVALID_PARAMETERS', field, 'NOT_FOUND', `names no ${what} of the catalogue`);
}
