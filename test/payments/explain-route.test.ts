import { create, type MessageInitShape } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import {
  CatalogueSchema,
  Choice,
  type ConnectionConfigSchema,
  type RouteSchema,
} from '#gen/payments/v1/catalogue_pb.js';
import {
  Connection_Circuit as Circuit,
  ExplainRouteResponse_Choice as ExplainedChoice,
} from '#gen/payments/v1/operator_service_pb.js';
import { Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { CircuitState } from '#src/connectors/guards/circuit.ts';
import { CARDS_ONLY, type Capabilities } from '#src/connectors/port/capabilities.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import { describeConnection, explainRoute } from '#src/payments/route/explain-route.ts';
import { createRouter } from '#src/routing/router.ts';
import type { VaultedToken } from '#src/store/tables/stored-objects.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import {
  ACCOUNT_ONE,
  cardPayment,
  VAULTED_CARD,
  walletPayment,
  withField,
} from '../support/payment-requests.ts';

type RouteInit = MessageInitShape<typeof RouteSchema>;

const decode = jsonDecoder(CreatePaymentRequestSchema);
const TIME = timestampFromDate(new Date('2026-01-02T03:04:05Z'));
const { DIRECT, REDIRECT } = Payment_Workflow;
const PAYMENT_METHOD_TYPES = [
  { type: 'CARD', category: Transaction_Category.CARD, workflows: [DIRECT] },
  { type: 'WALLET_B', category: Transaction_Category.WALLET, workflows: [DIRECT, REDIRECT] },
];
const to = (...connections: string[]) => connections.map((connection) => ({ connection }));

/** Explains a request with routes to connections a, b and c; those in `circuits` have a circuit breaker. */
function explain(
  routes: RouteInit[],
  request: object,
  options: {
    circuits?: Record<string, CircuitState>;
    rates?: Record<string, number>;
    key?: string;
    capabilities?: Record<string, Capabilities>;
    stored?: VaultedToken;
  } = {},
) {
  const circuits = Object.entries(options.circuits ?? {});
  const catalogue = create(CatalogueSchema, {
    connections: ['a', 'b', 'c'].map((id) => ({
      ...{ id, name: `Connection ${id}`, providerId: 'P', connector: 'sandbox' },
      circuitBreaker: { off: !circuits.some(([name]) => name === id) },
    })),
    paymentMethodTypes: PAYMENT_METHOD_TYPES,
    routes,
    bins: [{ prefix: '40128888', countryCode: 'CL', type: 'DEBIT' }],
  });
  const signals = {
    isAvailable: (id: string) => (options.circuits?.[id] ?? 'CLOSED') === 'CLOSED',
    approvalRate: (id: string) => options.rates?.[id] ?? 1,
  };
  return explainRoute(
    {
      version: 41,
      types: new Map(catalogue.paymentMethodTypes.map((type) => [type.type, type])),
      router: createRouter(catalogue, signals),
      bins: createBinTable(catalogue.bins),
      signals,
      connections: new Map(
        Object.entries(options.capabilities ?? {}).map(([id, capabilities]) => [id, { capabilities }]),
      ),
      health: new Map(circuits.map(([id, state]) => [id, { state: () => state }])),
    },
    decode(parseJson(Buffer.from(JSON.stringify(request)))),
    { idempotencyKey: options.key ?? '', time: TIME, stored: options.stored },
  );
}

const idsOf = ({ targets }: ReturnType<typeof explain>) => targets.map(({ connection }) => connection?.id);

describe('the facts', () => {
  it('an explanation states the facts of the payment, and of the card only those that the catalogue uses', () => {
    const { facts, ...others } = explain([{ id: 1, targets: to('a') }], cardPayment());
    expect(facts).toMatchObject({
      ...{ accountId: ACCOUNT_ONE, country: 'US', amount: { value: '10' }, currency: 'USD', type: 'CARD' },
      ...{ category: 'CARD', workflow: 'DIRECT', installments: 1, cardBrand: 'VISA', iin: '40128888' },
      ...{ issuerCountry: 'CL', issuerType: 'DEBIT', capture: true, vaulted: false, time: TIME },
    });
    const told = JSON.stringify({ facts, others }, (_name, value) => (typeof value === 'bigint' ? 0 : value));
    for (const secret of ['4012888888881881', '737', 'JORDAN']) expect(told).not.toContain(secret);
  });

  it('an explanation does not look up a vaulted card, and says so in a note', () => {
    const request = { ...cardPayment(), payment_method: { type: 'CARD', vaulted_token: VAULTED_CARD } };
    const { facts, notes } = explain([{ id: 1, targets: to('a') }], request);
    expect(facts).toMatchObject({ vaulted: true, cardBrand: '', iin: '', issuerCountry: '' });
    expect(notes).toEqual([expect.stringContaining('was not looked up')]);
  });
});

describe('routes', () => {
  const routes = [
    { id: 3, name: 'Brazil', condition: "category == 'CARD' && country == 'BR'", targets: to('a') },
    { id: 1, name: 'Large', condition: 'amount >= 100', targets: to('b') },
    { id: 2, name: 'Chile', condition: "issuer_country == 'CL'", targets: to('c', 'a') },
    { id: 4, name: 'The rest', targets: to('b') },
  ];

  it('routes are listed up to the chosen one, each with the condition that fails', () => {
    const explanation = explain(routes, cardPayment());
    expect(explanation.routes).toMatchObject([
      { id: 3, name: 'Brazil', taken: false, whyNot: 'country == "BR" does not hold (country is "US")' },
      { id: 1, name: 'Large', taken: false, whyNot: expect.stringMatching(/^amount >= 100 .*10/) },
      { id: 2, name: 'Chile', taken: true, whyNot: '' },
    ]);
    expect(idsOf(explanation)).toEqual(['c', 'a']);
  });

  it('all routes are listed if none is chosen', () => {
    const explanation = explain(routes.slice(0, 2), cardPayment());
    expect(explanation.routes.map(({ taken }) => taken)).toEqual([false, false]);
    expect([explanation.targets, explanation.maxAttempts]).toEqual([[], 0]);
  });

  it('a request that the catalogue does not offer is refused with the same error as a payment', () => {
    expect(() => explain(routes, withField(cardPayment(), 'payment_method.type', 'PIX'))).toThrow(
      'payment_method.type: is not offered',
    );
  });
});

describe('targets', () => {
  const split = {
    id: 1,
    choice: Choice.SPLIT,
    targets: [
      { connection: 'a', weight: 70 },
      { connection: 'b', weight: 30 },
      { connection: 'c', weight: 0 },
    ],
    failover: { softDeclines: true, maxAttempts: 2 },
  };

  it('targets chosen by weight are those that the router chooses with the same key', () => {
    const seen = new Set<string | undefined>();
    for (let i = 0; i < 40; i++) {
      const explanation = explain([split], cardPayment(), { key: `key-${i}` });
      const catalogue = create(CatalogueSchema, {
        connections: ['a', 'b', 'c'].map((id) => ({ id })),
        routes: [split],
      });
      const signals = { isAvailable: () => true, approvalRate: () => 1 };
      if (!explanation.facts) throw new Error('no facts');
      const chosen = createRouter(catalogue, signals).choose(explanation.facts, `${ACCOUNT_ONE}\nkey-${i}`);
      expect(idsOf(explanation)).toEqual(chosen?.targets.map(({ id }) => id));
      expect(new Map(explanation.targets.map(({ connection, weight }) => [connection?.id, weight]))).toEqual(
        new Map([
          ['a', 70],
          ['b', 30],
          ['c', 0],
        ]),
      );
      seen.add(idsOf(explanation)[0]);
    }
    expect([...seen].sort()).toEqual(['a', 'b']);
  });

  it('targets are listed with their settings in the route', () => {
    expect(explain([split], cardPayment())).toMatchObject({
      choice: ExplainedChoice.SPLIT,
      ...{ maxAttempts: 2, softDeclines: true, smartRouting: true, monitors: false, accountOverride: false },
    });
    expect(
      explain([{ id: 1, targets: to('a', 'b') }], cardPayment(), { circuits: { b: 'CLOSED' } }),
    ).toMatchObject({
      choice: ExplainedChoice.PRIORITY,
      ...{ maxAttempts: 2, softDeclines: false, smartRouting: false, monitors: true },
    });
  });

  it('targets have neither weights nor rates when they are tried in the listed order', () => {
    const [first] = explain([{ id: 1, targets: to('a', 'b') }], cardPayment()).targets;
    expect([first?.weight, first?.approvalRate]).toEqual([undefined, undefined]);
  });

  it('targets chosen by approval rate are listed with their rates', () => {
    const route = { id: 1, choice: Choice.SUCCESS_RATE, targets: to('a', 'b') };
    const explanation = explain([route], cardPayment(), { rates: { a: 0.5, b: 0.75 }, key: 'k' });
    expect(explanation.choice).toBe(ExplainedChoice.SUCCESS_RATE);
    expect(explanation.targets).toMatchObject([
      { connection: { id: 'b' }, approvalRate: 0.75 },
      { connection: { id: 'a' }, approvalRate: 0.5 },
    ]);
  });

  it.each([
    ['OPEN', Circuit.OPEN],
    ['HALF_OPEN', Circuit.HALF_OPEN],
  ] as const)('targets whose circuit is %s come last', (state, circuit) => {
    const explanation = explain([{ id: 1, targets: to('a', 'b') }], cardPayment(), {
      circuits: { a: state },
    });
    expect(explanation.targets).toMatchObject([
      { connection: { id: 'b', circuit: Circuit.UNGUARDED, available: true } },
      { connection: { id: 'a', circuit, available: false } },
    ]);
    expect(explanation.smartRouting).toBe(true);
  });

  it('targets may differ by account', () => {
    const accounts = [{ accountIds: ['other', ACCOUNT_ONE], targets: to('c'), choice: Choice.PRIORITY }];
    const explanation = explain([{ ...split, accounts }], cardPayment());
    expect(idsOf(explanation)).toEqual(['c']);
    expect(explanation).toMatchObject({
      accountOverride: true,
      maxAttempts: 1,
      choice: ExplainedChoice.PRIORITY,
    });
    expect(
      explain([{ ...split, accounts }], { ...cardPayment(), account_id: 'nobody' }).accountOverride,
    ).toBe(false);
  });

  it('for an enrolled wallet, only the connection that enrolled it is listed, whatever its place and health', () => {
    const routes = [{ id: 1, targets: to('a', 'b') }];
    const payment_method = { type: 'WALLET_B', vaulted_token: VAULTED_CARD };
    const enrolled = { ...walletPayment(), payment_method, workflow: 'DIRECT' };
    const stored = {
      ...{ id: VAULTED_CARD, type: 'WALLET_B', card: undefined, customerId: undefined },
      ...{ providerToken: 'token', connectionId: 'b' },
    };
    expect(explain(routes, enrolled, { circuits: { b: 'OPEN' }, stored })).toMatchObject({
      targets: [{ connection: { id: 'b' } }],
      passedOver: [{ connection: { id: 'a' }, lacks: [expect.stringContaining('enrolled elsewhere')] }],
      maxAttempts: 1,
      notes: [expect.stringContaining('Only the connection that enrolled')],
    });
    expect(explain(routes, enrolled)).toMatchObject({
      maxAttempts: 2,
      notes: [expect.stringContaining('was not looked up')],
    });
    expect(explain(routes, walletPayment())).toMatchObject({ maxAttempts: 2, notes: [] });
  });
});

const ALL_WELL = { isAvailable: () => true, approvalRate: () => 1 };

it('explaining a route reveals no setting and no secret of a connection', () => {
  const definition = create(CatalogueSchema, {
    connections: [
      {
        ...{ id: 'a', name: 'A', providerId: 'P', connector: 'sandbox' },
        settings: { base_url: 'http://inside' },
        secretsFromEnvironment: { api_key: 'SECRET_NAME' },
      } satisfies MessageInitShape<typeof ConnectionConfigSchema>,
    ],
  }).connections[0];
  if (!definition) throw new Error('no connection');
  expect(describeConnection(definition, ALL_WELL, new Map([['a', { state: () => 'CLOSED' }]]))).toEqual({
    $typeName: 'payments.v1.Connection',
    ...{
      id: 'a',
      name: 'A',
      providerId: 'P',
      connector: 'sandbox',
      circuit: Circuit.CLOSED,
      available: true,
      retired: false,
      accountIds: [],
      secrets: [],
    },
  });
});

describe('targets that do not support the request', () => {
  const request = withField(cardPayment(), 'payment_method.detail.card.installments', 3);
  const able = { ...CARDS_ONLY, installments: true };

  it('targets that do not support the request are passed over, with the fields that they lack', () => {
    const capabilities = { a: CARDS_ONLY, b: able };
    const explanation = explain([{ id: 1, targets: to('a', 'b', 'c') }], request, { capabilities });
    // Nothing is known about c.
    expect(idsOf(explanation)).toEqual(['b', 'c']);
    expect(explanation).toMatchObject({ maxAttempts: 2, smartRouting: false });
    expect(explanation.passedOver).toMatchObject([{ connection: { id: 'a' }, lacks: ['installments'] }]);
  });

  it('no attempt is listed if no target of the route supports the request', () => {
    const explanation = explain([{ id: 1, targets: to('a') }], request, { capabilities: { a: CARDS_ONLY } });
    expect(explanation).toMatchObject({
      targets: [],
      maxAttempts: 0,
      passedOver: [{ connection: { id: 'a' } }],
    });
  });

  it('targets with limited capabilities are listed normally for requests that they support', () => {
    const explanation = explain([{ id: 1, targets: to('a') }], cardPayment(), {
      capabilities: { a: CARDS_ONLY },
    });
    expect(explanation).toMatchObject({ targets: [{ connection: { id: 'a' } }], passedOver: [] });
  });
});
