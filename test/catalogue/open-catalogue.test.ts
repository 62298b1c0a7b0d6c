import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { type OpenedCatalogue, openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { parseCatalogue } from '#src/catalogue/read-catalogue.ts';
import type { Connector } from '#src/connectors/port/connector.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import { cardAttempt } from '../connectors/attempts.ts';
import { change, messageOf, SMALL } from '../support/small-catalogue.ts';

const retired: string[] = [];

type Over = {
  readonly apiKey?: string;
  readonly sandboxUrl?: string;
  readonly connectors?: readonly Connector[];
};

const open = (text: string, predecessor?: OpenedCatalogue, over: Over = {}) =>
  openCatalogue(
    { catalogue: parseCatalogue(text, 'test.yaml'), version: 0 },
    {
      connectors: over.connectors ?? CONNECTORS,
      environment: (name) => ({ ONE_KEY: over.apiKey ?? 'key-7391' })[name],
      variables: { SANDBOX_URL: over.sandboxUrl ?? 'http://127.0.0.1:1/sandbox' },
      maxInFlight: 1_000,
      identityKey: new Uint8Array(32),
      rates: createApprovalRates(),
      observer: {
        conditionFailed: () => {},
        circuitChanged: () => {},
        probeFailed: () => {},
        connectionRetired: (id) => retired.push(id),
      },
    },
    predecessor,
  );

it('an opened catalogue has its types, routes, issuers and connections', async () => {
  const catalogue = open(SMALL);
  expect([...catalogue.types.keys()]).toEqual(['CARD']);
  const chosen = catalogue.router.choose(create(RoutingFactsSchema, { type: 'CARD' }), 'seed');
  expect(chosen?.targets.map(({ id }) => id)).toEqual(['one']);
  expect(catalogue.bins('4111111111111111')?.issuerName).toBe('Bank');
  expect([...catalogue.connections.keys()]).toEqual(['one']);
  await catalogue.close();
});

it('an opened connection removes card numbers from outcomes', async () => {
  const echo: Connector = {
    ...sandboxConnector,
    connect: (settings, context) => ({
      ...sandboxConnector.connect(settings, context),
      pay: async () => ({ kind: 'unknown', detail: 'card 4111-1111-1111-1111', providerData: undefined }),
    }),
  };
  const catalogue = open(SMALL, undefined, { connectors: [echo] });
  expect(await catalogue.connections.get('one')?.pay(cardAttempt())).toMatchObject({
    detail: 'card [removed]-1111',
  });
  await catalogue.close();
});

it('a connection whose slots are all taken is not available, and payments are routed to another', async () => {
  const [, one = ''] = /connections:\n([\s\S]*)routes:/.exec(SMALL) ?? [];
  const two = change('routes:', `${one.replace('id: one', 'id: two\n    max_in_flight: 2')}routes:`).replace(
    '      - connection: one',
    '      - connection: two\n      - connection: one',
  );
  const catalogue = open(two);
  const facts = create(RoutingFactsSchema, { type: 'CARD' });
  const chosen = () => catalogue.router.choose(facts, 'seed')?.targets.map(({ id }) => id);
  expect(chosen()).toEqual(['two', 'one']);
  const release = catalogue.connections.get('two')?.slots?.take();
  expect(catalogue.signals.isAvailable('two')).toBe(false);
  expect(chosen()).toEqual(['one', 'two']);
  release?.();
  expect(chosen()).toEqual(['two', 'one']);
  await catalogue.close();
});

it('by default, one connection may have three quarters of the calls in flight, and its payments seven eighths of those', async () => {
  const catalogue = open(SMALL);
  const slots = catalogue.connections.get('one')?.slots;
  for (let taken = 0; taken < 656; taken++) expect(slots?.take()).toBeDefined();
  expect(slots?.take()).toBeUndefined();
  await catalogue.close();
});

describe('a catalogue that replaces another', () => {
  it('the next catalogue takes over unchanged connections and opens the changed ones', async () => {
    const before = open(SMALL);
    const same = open(change('condition: type', "condition: country == 'BR' && type"), before);
    expect(same.connections.get('one')).toBe(before.connections.get('one'));
    expect(same.health.get('one')).toBe(before.health.get('one'));
    const other = open(change('timeout_ms: 1000', 'timeout_ms: 2000'), same);
    expect(other.connections.get('one')).not.toBe(before.connections.get('one'));
    await before.close(same);
    await same.close(other);
    await other.close();
  });

  it('a change of agreed fees keeps the connection and its health', async () => {
    const before = open(SMALL);
    const fees = "    agreed_fees: [{ currency: USD, percent: '2.9' }]\n    connector: sandbox";
    const after = open(change('    connector: sandbox', fees), before);
    expect(after.catalogue.connections[0]?.agreedFees).toMatchObject([{ currency: 'USD', percent: '2.9' }]);
    expect(after.connections.get('one')).toBe(before.connections.get('one'));
    expect(after.health.get('one')).toBe(before.health.get('one'));
    await before.close(after);
    await after.close();
  });

  it('a removed connection remains reachable for look-ups', async () => {
    const before = open(change('id: one', 'id: old').replace('connection: one', 'connection: old'));
    const after = open(SMALL, before);
    expect(retired).toContain('old');
    await before.close(after);
    expect(after.connections.has('old')).toBe(false);
    expect(after.reachable.get('old')).toBe(before.connections.get('old'));
    await after.close();
  });

  it('a new catalogue cannot make a connection id point to a different account at a provider', async () => {
    const before = open(SMALL);
    const moved = change('$SANDBOX_URL', 'http://127.0.0.1:2/sandbox');
    expect(await messageOf(() => open(moved, before))).toBe(
      'connection one: now points to a different account (another URL, another account, or another credential that identifies the account); give that account another connection id',
    );
    const gone = open(change('id: one', 'id: two').replace('connection: one', 'connection: two'), before);
    expect(await messageOf(() => open(moved, gone))).toMatch(
      /connection one: now points to a different account/,
    );
    await gone.close();
  });

  it('a catalogue that cannot be opened leaves the previous one unchanged', async () => {
    const before = open(SMALL);
    expect(await messageOf(() => open(change('connector: sandbox', 'connector: bank'), before))).toMatch(
      /bank/,
    );
    expect(before.health.get('one')?.isAvailable()).toBe(true);
    await before.close();
  });
});

describe('the identity of a connection', () => {
  async function identityOf(text: string, over: Over = {}): Promise<string | undefined> {
    const catalogue = open(text, undefined, over);
    await catalogue.close();
    return catalogue.connections.get('one')?.identity;
  }
  const named = change('timeout_ms: 1000', 'timeout_ms: 1000, account_id: shop');

  it('a different credential changes a connection’s identity if no setting names the provider account', async () => {
    const identity = await identityOf(SMALL);
    expect(await identityOf(SMALL)).toBe(identity);
    expect(await identityOf(SMALL, { apiKey: 'key-7392' })).not.toBe(identity);
  });

  it('a different credential does not change a connection’s identity if a setting names the provider account', async () => {
    expect(await identityOf(named, { apiKey: 'key-7392' })).toBe(await identityOf(named));
    expect(await identityOf(named)).not.toBe(await identityOf(named.replace('shop', 'other')));
  });

  it('the identity of a connection contains no credential', async () => {
    expect(await identityOf(SMALL)).not.toContain('key-7391');
  });

  it('another port of the mounted sandbox does not change a connection’s identity', async () => {
    const sandboxUrl = 'http://127.0.0.1:2/sandbox';
    expect(await identityOf(SMALL, { sandboxUrl })).toBe(await identityOf(SMALL));
  });
});

describe('faults in the configuration of a connection', () => {
  it.each<[what: string, text: string, message: RegExp]>([
    [
      'an unknown connector',
      change('connector: sandbox', 'connector: bank'),
      /connection one: there is no connector "bank"/,
    ],
    [
      'a secret whose variable is not set',
      change('ONE_KEY', 'TWO_KEY'),
      /connection one: the environment variable TWO_KEY is not set/,
    ],
    ['an unknown setting', change('timeout_ms', 'time_out'), /connection one: .*time_out/],
    [
      'a setting out of range',
      change('timeout_ms: 1000', 'timeout_ms: 1'),
      /connection one: timeout_ms must be/,
    ],
    ['an invalid URL', change('$SANDBOX_URL', '$NOWHERE'), /connection one: base_url must be/],
    [
      'a missing secret',
      change('{ api_key: ONE_KEY }', '{}'),
      /connection one: the secret api_key is required/,
    ],
  ])('the error for %s names the connection', async (_what, text, message) => {
    const said = await messageOf(() => open(text));
    expect(said).toMatch(message);
    expect(said).not.toContain('key-7391');
  });
});
