import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CatalogueSchema } from '../../gen/payments/config/catalogue_pb.js';
import { createRouter } from '../../src/payments/routing.ts';

const route = createRouter(
  create(CatalogueSchema, {
    connections: [{ id: 'a' }, { id: 'b' }],
    routes: [
      { id: 1, types: ['CARD'], countries: ['BR'], currencies: ['BRL'], connection: 'a' },
      { id: 2, types: ['CARD', 'PIX'], countries: ['BR', 'MX'], connection: 'b' },
      { id: 3, currencies: ['USD'], connection: 'a' },
      { id: 4, types: ['CARD'], currencies: ['USD'], connection: 'b' },
    ],
  }),
);

it.each([
  ['CARD', 'BR', 'BRL', 1, 'a'],
  ['CARD', 'BR', 'USD', 2, 'b'],
  ['PIX', 'MX', 'MXN', 2, 'b'],
  // The first that matches, not the closest.
  ['CARD', 'US', 'USD', 3, 'a'],
  ['WALLET', 'DE', 'USD', 3, 'a'],
])('sends %s in %s in %s by route %i to connection %s', (type, country, currency, id, connection) => {
  const chosen = route({ type, country, currency });
  expect([chosen?.route.id, chosen?.connection.id]).toEqual([id, connection]);
});

it('knows when there is no route', () => {
  expect(route({ type: 'CARD', country: 'US', currency: 'EUR' })).toBeUndefined();
});
