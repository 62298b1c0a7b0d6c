import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import { RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import { chooseRoute, type Routed } from '#src/payments/route/choose-route.ts';
import { createRouter } from '#src/routing/router.ts';

const catalogue = create(CatalogueSchema, {
  connections: ['a', 'b'].map((id) => ({ id })),
  routes: [{ id: 1, targets: [{ connection: 'a' }, { connection: 'b' }] }],
});
const capabilities = { ...CARDS_ONLY, methods: ['PAYER_PAGE', 'WALLET'] };
const routed = {
  router: createRouter(catalogue, { isAvailable: () => true, approvalRate: () => 1 }),
  connections: new Map(['a', 'b'].map((id) => [id, { capabilities }])),
} as unknown as Routed;
const targetsOf = (at?: string, by = routed) => {
  const enrolled = at === undefined ? undefined : { at, token: 'token' };
  const { targets } = chooseRoute(by, {
    request: create(CreatePaymentRequestSchema),
    method: { by: 'wallet', type: 'WALLET', enrolled, cardType: undefined },
    facts: create(RoutingFactsSchema),
    seed: 'seed',
  });
  return targets.map(({ id }) => id);
};

it('a payment with an enrolled wallet goes only to the connection that enrolled it, whatever its place in the route', () => {
  expect([targetsOf('a'), targetsOf('b')]).toEqual([['a'], ['b']]);
});

it('a payment with a wallet that was not enrolled goes to every target of the route', () => {
  expect(targetsOf()).toEqual(['a', 'b']);
});

it('a payment with a wallet enrolled at a connection outside the route is refused', () => {
  expect(() => targetsOf('c')).toThrow('enrolled at a connection outside');
});

it('a payment that no route accepts is refused for its type', () => {
  const unrouted = create(CatalogueSchema, { connections: catalogue.connections });
  const router = createRouter(unrouted, { isAvailable: () => true, approvalRate: () => 1 });
  expect(() => targetsOf('a', { ...routed, router })).toThrow('is not accepted by any route');
});
