import { create, equals } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  CatalogueSchema,
  ConnectionConfigSchema,
  PaymentMethodTypeSchema,
  RouteSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import { PutRouteSchema } from '#gen/payments/v1/configuration_service_pb.js';
import { type CatalogueChangeRequest, changeCatalogue } from '#src/catalogue/change-catalogue.ts';
import { compareCatalogues } from '#src/catalogue/compare-catalogues.ts';
import { catalogueHash } from '#src/catalogue/publish-catalogue.ts';
import { ServiceError } from '#src/service-error.ts';

const connection = (id: string, name = '', retired = false) =>
  create(ConnectionConfigSchema, { id, name, retired });
const route = (id: number, name = '') => create(RouteSchema, { id, name });
const type = (name: string, countries: string[] = []) =>
  create(PaymentMethodTypeSchema, { type: name, countries });
const CURRENT = create(CatalogueSchema, {
  connections: [connection('one'), connection('two')],
  routes: [route(1), route(2), route(3)],
  paymentMethodTypes: [type('CARD'), type('PIX')],
});
const changed = (change: CatalogueChangeRequest, earlier?: typeof CURRENT) =>
  changeCatalogue(CURRENT, change, earlier);
const putRoute = (one: ReturnType<typeof route>, before?: number) =>
  changed({
    case: 'putRoute',
    value: create(PutRouteSchema, { route: one, ...(before !== undefined && { before }) }),
  });
const ids = (all: readonly { readonly id: string | number }[]) => all.map(({ id }) => id);

describe('a change of the catalogue', () => {
  it('replaces a connection, a route or a type in its place, or adds it at the end', () => {
    const replaced = changed({ case: 'putConnection', value: connection('one', 'New') });
    expect(replaced.connections.map(({ id, name }) => [id, name])).toEqual([
      ['one', 'New'],
      ['two', ''],
    ]);
    expect(ids(changed({ case: 'putConnection', value: connection('three') }).connections)).toEqual([
      'one',
      'two',
      'three',
    ]);
    expect(putRoute(route(2, 'New')).routes.map(({ name }) => name)).toEqual(['', 'New', '']);
    expect(ids(putRoute(route(4)).routes)).toEqual([1, 2, 3, 4]);
    const types = changed({ case: 'putPaymentMethodType', value: type('PIX', ['BR']) }).paymentMethodTypes;
    expect(types.map(({ countries }) => countries)).toEqual([[], ['BR']]);
  });

  it('puts a route before another one', () => {
    expect(ids(putRoute(route(3), 1).routes)).toEqual([3, 1, 2]);
    expect(ids(putRoute(route(9), 2).routes)).toEqual([1, 9, 2, 3]);
  });

  it('retires and removes a connection, and removes routes and types', () => {
    const retired = changed({ case: 'retireConnection', value: 'two' }).connections;
    expect(retired.map((one) => one.retired)).toEqual([false, true]);
    expect(ids(changed({ case: 'removeConnection', value: 'one' }).connections)).toEqual(['two']);
    expect(ids(changed({ case: 'removeRoute', value: 2 }).routes)).toEqual([1, 3]);
    expect(changed({ case: 'removePaymentMethodType', value: 'CARD' }).paymentMethodTypes).toHaveLength(1);
  });

  it('returns to an earlier version, and carries the connections that exist only now along as retired', () => {
    const earlier = create(CatalogueSchema, { connections: [connection('one', 'Then')], routes: [route(7)] });
    const undone = changed({ case: 'undoTo', value: 1 }, earlier);
    expect(undone.connections.map(({ id, name, retired }) => [id, name, retired])).toEqual([
      ['one', 'Then', false],
      ['two', '', true],
    ]);
    expect(ids(undone.routes)).toEqual([7]);
    expect(earlier.connections).toHaveLength(1);
  });

  it('leaves the catalogue in force as it is', () => {
    const before = structuredClone(CURRENT);
    changed({ case: 'retireConnection', value: 'one' });
    putRoute(route(3), 1);
    expect(equals(CatalogueSchema, CURRENT, before)).toBe(true);
  });

  it.each<[string, CatalogueChangeRequest]>([
    ['retire_connection', { case: 'retireConnection', value: 'x' }],
    ['remove_connection', { case: 'removeConnection', value: 'x' }],
    ['remove_route', { case: 'removeRoute', value: 9 }],
    ['remove_payment_method_type', { case: 'removePaymentMethodType', value: 'X' }],
    ['undo_to', { case: 'undoTo', value: 9 }],
    ['put_route.before', { case: 'putRoute', value: create(PutRouteSchema, { route: route(1), before: 9 }) }],
  ])('is refused if %s names nothing of the catalogue', (field, change) => {
    try {
      changed(change);
    } catch (error) {
      expect(error).toBeInstanceOf(ServiceError);
      expect((error as ServiceError).fields).toMatchObject([{ field, code: 'NOT_FOUND' }]);
      return;
    }
    throw new Error('was not refused');
  });
});

describe('the differences of two catalogues', () => {
  const linesOf = (after: typeof CURRENT, before = CURRENT) =>
    compareCatalogues(before, after).map(({ path, kind }) => `${kind} ${path}`);

  it('are none between equal catalogues, which have one hash', () => {
    const same = structuredClone(CURRENT);
    expect(linesOf(same)).toEqual([]);
    expect(catalogueHash(same)).toEqual(catalogueHash(CURRENT));
    expect(catalogueHash(putRoute(route(4)))).not.toEqual(catalogueHash(CURRENT));
  });

  it('name members by their ids, and the fields of members that both have', () => {
    const after = changed({ case: 'putConnection', value: connection('one', 'New', true) });
    expect(linesOf(after)).toEqual(['CHANGED connections[one].name', 'CHANGED connections[one].retired']);
    const [name] = compareCatalogues(CURRENT, after);
    expect([name?.before, name?.after?.kind.value]).toEqual([undefined, 'New']);
    expect(linesOf(changed({ case: 'removeRoute', value: 2 }))).toEqual(['REMOVED routes[2]']);
    expect(linesOf(putRoute(route(4), 1))).toEqual(['ADDED routes[4]']);
  });

  it('say which routes moved, as few as explain the new order', () => {
    expect(linesOf(putRoute(route(3), 1))).toEqual(['MOVED routes[3]']);
    const turned = { ...CURRENT, routes: CURRENT.routes.toReversed() };
    expect(linesOf(turned)).toHaveLength(2);
    const types = { ...CURRENT, paymentMethodTypes: CURRENT.paymentMethodTypes.toReversed() };
    expect(linesOf(types)).toEqual([]);
  });

  it('do not depend on the order of names within settings', () => {
    const withSettings = (settings: Record<string, string>) =>
      create(CatalogueSchema, { connections: [{ id: 'one', settings }] });
    const [a, b] = [withSettings({ x: '1', y: '2' }), withSettings({ y: '2', x: '1' })];
    expect(linesOf(a, b)).toEqual([]);
    expect(catalogueHash(a)).toEqual(catalogueHash(b));
    expect(linesOf(a, withSettings({ x: '1', y: '3' }))).toEqual(['CHANGED connections[one].settings']);
  });
});
