import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { RoutingFactsSchema } from '#gen/payments/v1/routing_facts_pb.js';
import { type OpenedCatalogue, openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { parseCatalogue } from '#src/catalogue/read-catalogue.ts';
import type { Connector } from '#src/connectors/connector.ts';
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
    parseCatalogue(text, 'test.yaml'),
    {
      connectors: over.connectors ?? CONNECTORS,
      environment: (name) => ({ ONE_KEY: over.apiKey ?? 'key-7391' })[name],
      variables: { SANDBOX_URL: over.sandboxUrl ?? 'http://127.0.0.1:1/sandbox' },
      identityKey: new Uint8Array(32),
      rates: createApprovalRates(),
      observer: {
        conditionFailed: () => {},
        circuitChanged: () => {},
        connectionRetired: (id) => retired.push(id),
      },
    },
    predecessor,
  );

it('opens, with its types, routes and issuers', async () => {
  const catalogue = open(SMALL);
  expect([...catalogue.types.keys()]).toEqual(['CARD']);
  const chosen = catalogue.router.choose(create(RoutingFactsSchema, { type: 'CARD' }), 'seed');
  expect(chosen?.targets.map(({ id }) => id)).toEqual(['one']);
  expect(catalogue.bins('4111111111111111')?.issuerName).toBe('Bank');
  expect([...catalogue.connections.keys()]).toEqual(['one']);
  await catalogue.close();
});

it('opens its connections so that no provider gets card data into an outcome', async () => {
  const echo: Connector = {
    name: 'sandbox',
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

describe('a catalogue that follows another', () => {
  it('takes over the connections that are defined as before, and opens the others anew', async () => {
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

  it('keeps what left it, for look-ups, until the end', async () => {
    const before = open(change('id: one', 'id: old').replace('connection: one', 'connection: old'));
    const after = open(SMALL, before);
    expect(retired).toContain('old');
    await before.close(after);
    expect(after.connections.has('old')).toBe(false);
    expect(after.reachable.get('old')).toBe(before.connections.get('old'));
    await after.close();
  });

  it('may not let an id point to a different account at a provider', async () => {
    const before = open(SMALL);
    const moved = change('$SANDBOX_URL', 'http://127.0.0.1:2/sandbox');
    expect(await messageOf(() => open(moved, before))).toBe(
      'connection one: now points to a different account (its address, its account, or the credential that names it); give that account another connection id',
    );
    const gone = open(change('id: one', 'id: two').replace('connection: one', 'connection: two'), before);
    expect(await messageOf(() => open(moved, gone))).toMatch(
      /connection one: now points to a different account/,
    );
    await gone.close();
  });

  it('leaves the one before as it is when it cannot be opened', async () => {
    const before = open(SMALL);
    expect(await messageOf(() => open(change('connector: sandbox', 'connector: bank'), before))).toMatch(
      /bank/,
    );
    expect(before.health.get('one')?.isAvailable()).toBe(true);
    await before.close();
  });
});

describe('the identity of a connection, by which open outcomes find it after a restart,', () => {
  async function identityOf(text: string, over: Over = {}): Promise<string | undefined> {
    const catalogue = open(text, undefined, over);
    await catalogue.close();
    return catalogue.connections.get('one')?.identity;
  }
  const named = change('timeout_ms: 1000', 'timeout_ms: 1000, account_id: shop');

  it('is another under another credential, where only that names the account', async () => {
    const identity = await identityOf(SMALL);
    expect(await identityOf(SMALL)).toBe(identity);
    expect(await identityOf(SMALL, { apiKey: 'key-7392' })).not.toBe(identity);
  });

  it('stays the same under another credential, where a setting names the account', async () => {
    expect(await identityOf(named, { apiKey: 'key-7392' })).toBe(await identityOf(named));
    expect(await identityOf(named)).not.toBe(await identityOf(named.replace('shop', 'other')));
  });

  it('holds no credential', async () => {
    expect(await identityOf(SMALL)).not.toContain('key-7391');
  });

  it('stays the same when the mounted sandbox listens on another port', async () => {
    const sandboxUrl = 'http://127.0.0.1:2/sandbox';
    expect(await identityOf(SMALL, { sandboxUrl })).toBe(await identityOf(SMALL));
  });
});

describe('what is wrong with a connection is said with its place:', () => {
  it.each<[what: string, text: string, message: RegExp]>([
    [
      'an unknown connector',
      change('connector: sandbox', 'connector: bank'),
      /connection one: there is no connector "bank"/,
    ],
    [
      'a secret that is not set',
      change('ONE_KEY', 'TWO_KEY'),
      /connection one: the environment variable TWO_KEY is not set/,
    ],
    ['an unknown setting', change('timeout_ms', 'time_out'), /connection one: .*time_out/],
    [
      'a setting out of range',
      change('timeout_ms: 1000', 'timeout_ms: 1'),
      /connection one: timeout_ms must be/,
    ],
    ['an address that is none', change('$SANDBOX_URL', '$NOWHERE'), /connection one: base_url must be/],
    [
      'a secret that is missing',
      change('{ api_key: ONE_KEY }', '{}'),
      /connection one: the secret api_key is required/,
    ],
  ])('%s', async (_what, text, message) => {
    const said = await messageOf(() => open(text));
    expect(said).toMatch(message);
    expect(said).not.toContain('key-7391');
  });
});
