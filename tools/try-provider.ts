import { join } from 'node:path';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import { openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { readArguments } from '#src/commands/command-line.ts';
import { explainFailure } from '#src/commands/explain-failure.ts';
import { readConfig } from '#src/config.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { createApprovalRates } from '#src/routing/approval-rates.ts';
import { type Checked, checkProvider, type TestValues } from './provider-checks.ts';

const USAGE = `Usage: npm run try-provider -- <provider> [--catalogue <file>] [--connection <id>] [--test-account]

Makes a short list of calls at a provider's TEST environment, and prints the outcomes and how they differ from our
expectations. No real money moves; live keys are refused. The secrets come from the environment, as for the service.

  <provider>       adyen, mercado-pago, paypal or stripe
  --catalogue      a catalogue with your connection (config/examples/<provider>.yaml)
  --connection     its id, if the catalogue has several connections to the provider
  --test-account   confirms a test account at Mercado Pago, whose tokens do not distinguish it from a real one`;

const CARD = { holderName: 'JORDAN WHITFIELD', expirationMonth: 3, expirationYear: 30, securityCode: '737' };

/** An answer of Google Pay that contains Stripe's test token for a card. */
const STRIPES_GOOGLE_PAY = JSON.stringify({
  paymentMethodData: { tokenizationData: { token: JSON.stringify({ id: 'tok_visa', object: 'token' }) } },
});

/** Test cards and currencies of each provider, from their documentation. */
const TEST_VALUES: Readonly<Record<string, TestValues>> = {
  adyen: {
    currency: 'EUR',
    country: 'NL',
    approved: { ...CARD, number: '4111111111111111' },
    declined: { ...CARD, number: '4111111111111111', holderName: 'NOT_ENOUGH_BALANCE', iso8583Code: '51' },
    triesLocalMethods: true,
  },
  'mercado-pago': {
    ...{ currency: 'ARS', country: 'AR', walletType: 'MERCADO_PAGO', triesLocalMethods: true },
    canClose: false,
  },
  paypal: { currency: 'USD', country: 'US', walletType: 'PAYPAL' },
  stripe: {
    currency: 'USD',
    country: 'US',
    approved: { ...CARD, number: '4242424242424242' },
    declined: { ...CARD, number: '4000000000009995', iso8583Code: '51' },
    walletToken: { type: 'GOOGLE_PAY', token: STRIPES_GOOGLE_PAY },
    triesLocalMethods: true,
  },
};

/** Currencies of Mercado Pago's accounts, whose country the connection's settings name. */
const CURRENCIES: Readonly<Record<string, string>> = {
  ...{ AR: 'ARS', BR: 'BRL', CL: 'CLP', CO: 'COP', MX: 'MXN', PE: 'PEN', UY: 'UYU' },
};

/** Mercado Pago's test cards by the account's country. The cardholder's name decides what becomes of a payment. */
const MERCADO_PAGO_CARDS: Readonly<Record<string, string>> = {
  ...{ AR: '5031755734530604', BR: '5031433215406351', CL: '5416752602582580', CO: '5254133674403564' },
  MX: '5474925432670366',
};

function mercadoPagoCards(country: string): Pick<TestValues, 'approved' | 'declined'> {
  const number = MERCADO_PAGO_CARDS[country];
  if (number === undefined) return {};
  const card = { number, securityCode: '123', expirationMonth: 11, expirationYear: 30 };
  return {
    approved: { ...card, holderName: 'APRO' },
    declined: { ...card, holderName: 'FUND', iso8583Code: '51' },
  };
}

/** Returns the test values for a connection: those of its account's country, if the account has one. */
function valuesFor(values: TestValues, { connector, settings }: ConnectionConfig): TestValues {
  const country = typeof settings?.country === 'string' ? settings.country : values.country;
  const cards = connector === 'mercado-pago' ? mercadoPagoCards(country) : {};
  return { ...values, ...cards, country, currency: CURRENCIES[country] ?? values.currency };
}

/** Error for a trial that did not run. The message gives the reason. */
class TryError extends Error {}

/** Options for a trial, from the command line. */
export type TryOptions = {
  readonly provider: string;
  readonly catalogue?: string | undefined;
  readonly connection?: string | undefined;
  readonly isTestAccount: boolean;
  /** Reads an environment variable. */
  readonly environment: (name: string) => string | undefined;
};

/**
 * Tries a provider.
 *
 * @returns the number of checks with an unexpected outcome.
 * @throws TryError, before anything is sent, if the provider is unknown or its environment is not certainly a test
 * environment.
 */
export async function tryProvider(options: TryOptions, print: (line: string) => void): Promise<number> {
  const { provider, environment } = options;
  const values = TEST_VALUES[provider];
  if (!values) throw new TryError(`there are no test values for the provider ${provider}\n${USAGE}`);
  const file = options.catalogue ?? join(import.meta.dirname, `../config/examples/${provider}.yaml`);
  const catalogue = readCatalogue(file);
  const definition = catalogue.connections.find(
    ({ connector, id }) => connector === provider && (options.connection ?? id) === id,
  );
  if (!definition) throw new TryError(`${file} has no matching connection to ${provider}`);
  requireSecrets(definition, options);
  refuseLive(definition, options);

  const only = { ...catalogue, connections: [definition], routes: [] };
  const opened = openCatalogue(
    { catalogue: only, version: 0 },
    {
      connectors: CONNECTORS,
      environment,
      variables: {},
      maxInFlight: 100,
      identityKey: new Uint8Array(32),
      rates: createApprovalRates(),
      observer: {
        conditionFailed: () => {},
        circuitChanged: () => {},
        probeFailed: () => {},
        connectionRetired: () => {},
      },
    },
  );
  try {
    const connection = opened.connections.get(definition.id);
    if (!connection) throw new Error(`connection ${definition.id} was not opened`);
    print(`${definition.name} (${provider}), connection ${definition.id}: ${connection.identity}`);
    let differing = 0;
    for await (const checked of checkProvider(connection, valuesFor(values, definition))) {
      if (!checked.isAsBelieved) differing += 1;
      print(lineOf(checked));
    }
    print(differing === 0 ? 'Everything is as expected.' : `${differing} differ from the expected outcome.`);
    return differing;
  } finally {
    await opened.close();
  }
}

function lineOf({ name, believed, seen, isAsBelieved }: Checked): string {
  return isAsBelieved ? `ok       ${name}: ${seen}` : `DIFFERS  ${name}: expected ${believed}; got ${seen}`;
}

function requireSecrets({ id, secretsFromEnvironment }: ConnectionConfig, options: TryOptions): void {
  const unset = Object.values(secretsFromEnvironment).filter((name) => !options.environment(name));
  if (unset.length === 0) return;
  const names = unset.sort().join(' and ');
  const page = `docs/providers/${options.provider}.md`;
  throw new TryError(`connection ${id}: set ${names} in the environment, as ${page} says; nothing was sent`);
}

const LOOPBACK: ReadonlySet<string> = new Set(['127.0.0.1', 'localhost', '[::1]']);
const TEST_HOSTS: Readonly<Record<string, string>> = {
  adyen: 'checkout-test.adyen.com',
  paypal: 'api-m.sandbox.paypal.com',
};

/**
 * Refuses any environment that is not certainly a test environment, judged by the URL or, if all environments share a
 * URL, by the key.
 */
function refuseLive(definition: ConnectionConfig, options: TryOptions): void {
  const { provider, environment, isTestAccount } = options;
  const baseUrl = definition.settings?.base_url;
  const host = typeof baseUrl === 'string' ? URL.parse(baseUrl)?.hostname : undefined;
  const secret = (name: string) => environment(definition.secretsFromEnvironment[name] ?? '') ?? '';
  const isStripeTest = provider === 'stripe' && /^[sr]k_test_/.test(secret('api_key'));
  const isMercadoPagoTest =
    provider === 'mercado-pago' && (isTestAccount || secret('access_token').startsWith('TEST-'));
  const isTestHost = host !== undefined && (host === TEST_HOSTS[provider] || LOOPBACK.has(host));
  const isLiveKey = provider === 'stripe' && /^[sr]k_live_/.test(secret('api_key'));
  if (!isLiveKey && (isTestHost || isStripeTest || isMercadoPagoTest)) return;
  const { api_key: apiKey, access_token: accessToken } = definition.secretsFromEnvironment;
  const advice: Readonly<Record<string, string>> = {
    stripe: `${apiKey} to a test key (sk_test_… or rk_test_…)`,
    'mercado-pago': `${accessToken} to a token of a test account, and add --test-account`,
  };
  const toSet = advice[provider] ?? `base_url in the catalogue to https://${TEST_HOSTS[provider]}`;
  throw new TryError(
    `connection ${definition.id} is not certainly a test environment; nothing was sent. Set ${toSet}`,
  );
}

async function main(): Promise<void> {
  const { positionals, values } = readArguments(USAGE, {
    allowPositionals: true,
    options: {
      catalogue: { type: 'string' },
      connection: { type: 'string' },
      'test-account': { type: 'boolean', default: false },
    },
  });
  const [provider] = positionals;
  if (provider === undefined) {
    console.log(USAGE);
    return;
  }
  const { catalogue, connection, 'test-account': isTestAccount } = values;
  const { environment } = readConfig();
  const options = { provider, catalogue, connection, isTestAccount, environment };
  const differing = await tryProvider(options, (line) => console.log(line));
  process.exitCode = differing === 0 ? 0 : 1;
}

if (import.meta.main) {
  main().catch((error: unknown) => {
    console.error(error instanceof TryError ? error.message : explainFailure(error));
    process.exitCode = 1;
  });
}
