import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { JsonObject } from '@bufbuild/protobuf';
import { afterAll, expect, it } from 'vitest';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { CONNECTORS } from '#src/connectors/registry.ts';
import { Secret } from '#src/secret.ts';
import { FAKE_SECRETS } from '../support/fake-providers.ts';

const TABLE = join(import.meta.dirname, '../../docs/providers/README.md');
const BY_SETTING = 'if configured';

/** A connection of each real provider with every optional capability switched on, and one with none. */
type Settings = {
  readonly least: JsonObject;
  readonly most: JsonObject;
  /** Accounts that have other local methods than that of `least`. */
  readonly accounts?: readonly JsonObject[];
};
const SETTINGS: Readonly<Record<string, Settings>> = {
  adyen: {
    least: { base_url: 'https://checkout-test.adyen.com', merchant_account: 'Shop' },
    most: { installments: true, redirect_methods: { IDEAL: 'ideal' } },
  },
  'mercado-pago': {
    least: { country: 'AR' },
    most: { without_security_code: true, external_three_d_secure: true },
    accounts: [{ country: 'BR' }, { country: 'MX' }, { country: 'CO' }],
  },
  paypal: { least: {}, most: { webhook_ids: ['8PT597110X687430LKGECATA'] } },
  stripe: { least: {}, most: { installments: true, apple_pay_tokens: true } },
};
const SECRETS: Readonly<Record<string, readonly (keyof typeof FAKE_SECRETS)[]>> = {
  adyen: ['ADYEN_API_KEY', 'ADYEN_HMAC_KEY'],
  'mercado-pago': ['MERCADO_PAGO_ACCESS_TOKEN', 'MERCADO_PAGO_WEBHOOK_SECRET'],
  paypal: ['PAYPAL_CLIENT_ID', 'PAYPAL_CLIENT_SECRET'],
  stripe: ['STRIPE_API_KEY', 'STRIPE_WEBHOOK_SECRET'],
};

const opened: ProviderConnection[] = [];
afterAll(() => Promise.all(opened.map((connection) => connection.close())));

function open(name: string, settings: JsonObject): ProviderConnection {
  const connector = CONNECTORS.find((one) => one.name === name);
  if (!connector) throw new Error(`no connector ${name}`);
  const prefix = name.replaceAll('-', '_').length + 1;
  const secrets = Object.fromEntries(
    (SECRETS[name] ?? []).map((variable) => [
      variable.toLowerCase().slice(prefix),
      new Secret(FAKE_SECRETS[variable]),
    ]),
  );
  const connection = connector.connect(settings, { providerId: name.toUpperCase(), secrets });
  opened.push(connection);
  return connection;
}

/** Names of types in the table, in its order. */
const TYPES: Readonly<Record<string, string>> = {
  ...{ PIX: 'Pix', BOLETO: 'boleto', OXXO: 'OXXO', SPEI: 'SPEI', PSE: 'PSE', EFECTY: 'Efecty' },
  ...{ APPLE_PAY: 'Apple Pay', GOOGLE_PAY: 'Google Pay' },
};

/** Rows that list types, read from a connection. */
const TYPE_ROWS: Readonly<Record<string, (connection: ProviderConnection) => readonly string[]>> = {
  '[local methods](../local-methods.md#methods-and-providers)': ({ capabilities }) =>
    Object.keys(capabilities.localMethods),
  'tokens of wallets': ({ capabilities }) => capabilities.walletTokens,
};

/** Rows of the table: each capability, read from a connection. */
const ROWS: Readonly<Record<string, (connection: ProviderConnection) => boolean | string>> = {
  cards: ({ capabilities }) => capabilities.methods.includes('CARD'),
  'redirect payments': ({ capabilities }) => capabilities.methods.includes('PAYER_PAGE'),
  'authorization only': ({ capabilities }) => capabilities.authorization,
  'captures of one authorization': ({ capabilities: { captures } }) => captures > 0 && String(captures),
  cancel: ({ capabilities }) => capabilities.cancel,
  'cancel before the payer acts': ({ capabilities }) => capabilities.close,
  'partial refunds': ({ capabilities }) => capabilities.refunds,
  'verification of a card': ({ capabilities }) => capabilities.verify,
  installments: ({ capabilities }) => capabilities.installments,
  '3-D Secure with a challenge': ({ capabilities }) => capabilities.challenge,
  'external 3-D Secure results': ({ capabilities }) => capabilities.externalThreeDSecure,
  'stored credentials': ({ capabilities }) => capabilities.storedCredentials,
  'soft descriptor': ({ capabilities }) => capabilities.softDescriptor,
  notifications: ({ readNotification }) => readNotification !== undefined,
  'resolution of unknown outcomes': ({ lookUp, technicalCancel, repeatOperation }) =>
    lookUp
      ? 'look-up'
      : ['notification', technicalCancel && 'technical cancel', repeatOperation && 'repeated operation']
          .filter(Boolean)
          .join(', '),
};

function cell(name: string, read: (connection: ProviderConnection) => boolean | string): string {
  const { least = {}, most = {} } = SETTINGS[name] ?? {};
  const value = read(open(name, { ...least, ...most }));
  if (value === false) return '–';
  if (value !== read(open(name, least))) return BY_SETTING;
  return value === true ? 'yes' : String(value);
}

function typesCell(name: string, read: (connection: ProviderConnection) => readonly string[]): string {
  const { least = {}, most = {}, accounts = [] } = SETTINGS[name] ?? {};
  const plain = [least, ...accounts].flatMap((settings) => read(open(name, settings)));
  const all = [...plain, ...read(open(name, { ...least, ...most }))];
  const inWords = (types: readonly string[]) =>
    Object.keys(TYPES)
      .flatMap((type) => (types.includes(type) ? [TYPES[type]] : []))
      .join(', ');
  const further = inWords(all.filter((type) => !plain.includes(type)));
  return [inWords(plain), further && `${further} ${BY_SETTING}`].filter(Boolean).join('; ') || '–';
}

it("docs/providers/README.md lists the connectors' actual capabilities", () => {
  const names = CONNECTORS.map(({ name }) => name).filter((name) => name !== 'sandbox');
  const rowOf = (row: string, cells: readonly string[]) => `| ${row} | ${cells.join(' | ')} |`;
  const rows = Object.entries(ROWS).map(([row, read]) =>
    rowOf(
      row,
      names.map((name) => cell(name, read)),
    ),
  );
  const typeRows = Object.entries(TYPE_ROWS).map(([row, read]) =>
    rowOf(
      row,
      names.map((name) => typesCell(name, read)),
    ),
  );
  rows.splice(2, 0, ...typeRows);
  const documented = readFileSync(TABLE, 'utf8')
    .split('\n')
    .filter((line) => line.startsWith('| ') && !line.startsWith('| |'));
  expect(documented).toEqual(rows);
});

it.each(Object.keys(SETTINGS))('every connection to %s has the capabilities of its connector', (name) => {
  const connector = CONNECTORS.find((one) => one.name === name);
  const { capabilities } = open(name, SETTINGS[name]?.least ?? {});
  for (const [capability, value] of Object.entries(connector?.capabilities ?? {})) {
    if (typeof value === 'function' || value === false) continue;
    const own: unknown = capabilities[capability as keyof typeof capabilities];
    if (Array.isArray(value)) expect(own, capability).toEqual(expect.arrayContaining(value));
    else if (capability !== 'localMethods') expect(own, capability).toBe(value);
  }
});
