import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { CatalogueSchema, Choice, type RouteSchema } from '#gen/payments/v1/catalogue_pb.js';
import { RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import type { Signals } from '#src/routing/order-targets.ts';
import { createRouter } from '#src/routing/router.ts';

type RouteInit = MessageInitShape<typeof RouteSchema>;
type Facts = MessageInitShape<typeof RoutingFactsSchema>;

const ALL_WELL: Signals = { isAvailable: () => true, approvalRate: () => 1 };
const to = (...connections: string[]) => connections.map((connection) => ({ connection }));

function routerOf(routes: RouteInit[], signals = ALL_WELL) {
  const connections = ['a', 'b', 'c', 'd'].map((id) => ({ id, circuitBreaker: { off: id !== 'd' } }));
  return createRouter(create(CatalogueSchema, { connections, routes }), signals);
}

const choose = (router: ReturnType<typeof routerOf>, facts: Facts, seed = 'seed') =>
  router.choose(create(RoutingFactsSchema, facts), seed);

/** Returns how many of the given number of payments try each connection first. */
function firstsOf(
  router: ReturnType<typeof routerOf>,
  payments: number,
  facts: Facts = {},
): Record<string, number> {
  const firsts: Record<string, number> = {};
  for (let i = 0; i < payments; i++) {
    const id = choose(router, facts, `payment-${i}`)?.targets[0]?.id ?? '';
    firsts[id] = (firsts[id] ?? 0) + 1;
  }
  return firsts;
}

describe('route choice', () => {
  const router = routerOf([
    { id: 1, condition: "type == 'CARD' && country == 'BR' && currency == 'BRL'", targets: to('a') },
    { id: 2, condition: "type in ['CARD', 'PIX'] && country in ['BR', 'MX']", targets: to('b') },
    { id: 3, condition: "currency == 'USD' && amount >= 1000", targets: to('c') },
    { id: 4, condition: "card_brand == 'VISA' && issuer_country != country", targets: to('a', 'b') },
    { id: 5, targets: to('d') },
  ]);

  it.each<[Facts, number, string[]]>([
    [{ type: 'CARD', country: 'BR', currency: 'BRL' }, 1, ['a']],
    [{ type: 'CARD', country: 'BR', currency: 'USD', amount: { value: '1000.00' } }, 2, ['b']],
    [{ type: 'PIX', country: 'MX', currency: 'MXN' }, 2, ['b']],
    [{ type: 'CARD', country: 'US', currency: 'USD', amount: { value: '1000.00' } }, 3, ['c']],
    [{ type: 'CARD', country: 'US', currency: 'USD', amount: { value: '999.99' } }, 5, ['d']],
    [{ country: 'US', cardBrand: 'VISA', issuerCountry: 'CL' }, 4, ['a', 'b']],
    [{ country: 'US', cardBrand: 'VISA', issuerCountry: 'US' }, 5, ['d']],
    [{}, 5, ['d']],
  ])('the first matching route for %j is %i, with the targets %j', (facts, id, targets) => {
    const chosen = choose(router, facts);
    expect(chosen?.route.id).toBe(id);
    expect(chosen?.targets.map((target) => target.id)).toEqual(targets);
  });

  it('the router chooses no route if no route’s condition holds', () => {
    const one = routerOf([{ id: 1, condition: "country == 'BR'", targets: to('a') }]);
    expect(choose(one, { country: 'US' })).toBeUndefined();
  });
});

describe('targets', () => {
  it('priority targets are tried in the listed order, which does not count as smart routing', () => {
    const router = routerOf([{ id: 1, targets: to('c', 'a', 'b') }]);
    expect(choose(router, {})?.targets.map(({ id }) => id)).toEqual(['c', 'a', 'b']);
    expect(choose(router, {})?.smart).toBe(false);
  });

  const split: RouteInit = {
    id: 1,
    choice: Choice.SPLIT,
    targets: [
      { connection: 'a', weight: 60 },
      { connection: 'b', weight: 30 },
      { connection: 'c', weight: 10 },
      { connection: 'd', weight: 0 },
    ],
  };

  it('a split sends first attempts to targets in proportion to their weights', () => {
    const { a = 0, b = 0, c = 0, d = 0 } = firstsOf(routerOf([split]), 10_000);
    expect(Math.abs(a - 6_000)).toBeLessThan(250);
    expect(Math.abs(b - 3_000)).toBeLessThan(250);
    expect(Math.abs(c - 1_000)).toBeLessThan(250);
    expect(d).toBe(0);
  });

  it('a split gives one payment the same order of targets at every try, with targets of weight 0 last', () => {
    const router = routerOf([split]);
    const tries = Array.from({ length: 20 }, () =>
      choose(router, {}, 'one payment')?.targets.map(({ id }) => id),
    );
    expect(new Set(tries.map(String)).size).toBe(1);
    expect(tries[0]?.at(-1)).toBe('d');
    expect(choose(router, {})?.smart).toBe(true);
  });

  it('adding a target to a split keeps the order of the others', () => {
    const targets = [
      { connection: 'a', weight: 1 },
      { connection: 'b', weight: 1 },
    ];
    const two = routerOf([{ id: 1, choice: Choice.SPLIT, targets }]);
    const three = routerOf([
      { id: 1, choice: Choice.SPLIT, targets: [...targets, { connection: 'c', weight: 1 }] },
    ]);
    for (let i = 0; i < 1_000; i++) {
      const before = choose(two, {}, `payment-${i}`)?.targets.map(({ id }) => id);
      const after = choose(three, {}, `payment-${i}`)?.targets.map(({ id }) => id);
      expect(after?.filter((id) => id !== 'c')).toEqual(before);
    }
  });

  it('targets are ordered by approval rate for the card, but at random for about a twentieth of payments', () => {
    const approvalRate = (id: string, { cardBrand }: { cardBrand: string }) =>
      id === (cardBrand === 'VISA' ? 'b' : 'a') ? 0.9 : 0.8;
    const router = routerOf([{ id: 1, choice: Choice.SUCCESS_RATE, targets: to('a', 'b', 'c') }], {
      ...ALL_WELL,
      approvalRate,
    });
    const visa = firstsOf(router, 10_000, { cardBrand: 'VISA' });
    expect(visa.b).toBeGreaterThan(9_500);
    expect(visa.a).toBeGreaterThan(100);
    expect(visa.c).toBeGreaterThan(100);
    expect(firstsOf(router, 100, { cardBrand: 'MASTERCARD' }).a).toBeGreaterThan(85);
    expect(choose(router, {})?.smart).toBe(true);
  });

  it('targets with an open circuit come last, which counts as smart routing', () => {
    const router = routerOf([{ id: 1, targets: to('a', 'b', 'c') }], {
      ...ALL_WELL,
      isAvailable: (id: string) => id !== 'a',
    });
    expect(choose(router, {})?.targets.map(({ id }) => id)).toEqual(['b', 'c', 'a']);
    expect(choose(router, {})?.smart).toBe(true);
  });

  it('targets keep their order if all circuits are open, or only that of the last target', () => {
    for (const isAvailable of [() => false, (id: string) => id !== 'b']) {
      const router = routerOf([{ id: 1, targets: to('a', 'b') }], { ...ALL_WELL, isAvailable });
      expect(choose(router, {})?.targets.map(({ id }) => id)).toEqual(['a', 'b']);
      expect(choose(router, {})?.smart).toBe(false);
    }
  });

  it('a payment that only one target can take goes only there, whatever the weights and circuits', () => {
    const router = routerOf([{ ...split, choice: Choice.SPLIT }], {
      ...ALL_WELL,
      isAvailable: (id: string) => id !== 'a',
    });
    for (let i = 0; i < 50; i++) {
      const chosen = router.choose(create(RoutingFactsSchema), `payment-${i}`, ({ id }) => id === 'a');
      expect(chosen?.maxAttempts).toBe(1);
      expect(chosen?.targets.map(({ id }) => id)).toEqual(['a']);
    }
  });

  it('a route is monitored if one of its targets has a circuit breaker', () => {
    expect(choose(routerOf([{ id: 1, targets: to('a', 'd') }]), {})?.monitored).toBe(true);
    expect(choose(routerOf([{ id: 1, targets: to('a', 'b') }]), {})?.monitored).toBe(false);
  });

  it('an account with its own targets uses them and their failover', () => {
    const router = routerOf([
      {
        id: 1,
        targets: to('a', 'b'),
        failover: { softDeclines: true },
        accounts: [{ accountIds: ['x', 'y'], targets: to('c'), failover: {} }],
      },
    ]);
    const usual = choose(router, { accountId: 'z' });
    expect([usual?.targets.length, usual?.maxAttempts, usual?.softDeclines]).toEqual([2, 2, true]);
    const own = choose(router, { accountId: 'y' });
    expect([own?.targets[0]?.id, own?.maxAttempts, own?.softDeclines]).toEqual(['c', 1, false]);
  });

  it('a route is tried up to its maxAttempts, and each target at most once', () => {
    const attempts = (maxAttempts?: number) =>
      choose(routerOf([{ id: 1, targets: to('a', 'b', 'c'), failover: { maxAttempts } as never }]), {})
        ?.maxAttempts;
    expect([attempts(1), attempts(2), attempts(9), attempts()]).toEqual([1, 2, 3, 3]);
  });
});
