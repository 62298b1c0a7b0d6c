import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { tryProvider } from '#tools/try-provider.ts';
import { startFakeMercadoPago } from '../connectors/mercado-pago/fake-mercado-pago.ts';
import { FAKE_SECRETS, startFakeProviders } from '../support/fake-providers.ts';

const home = mkdtempSync(join(tmpdir(), 'try-provider-'));
const catalogue = join(home, 'catalogue.yaml');
let fakes: Awaited<ReturnType<typeof startFakeProviders>>;

beforeAll(async () => {
  fakes = await startFakeProviders();
  writeFileSync(catalogue, fakes.catalogue());
});
afterAll(async () => {
  await fakes?.close();
  rmSync(home, { recursive: true });
});

async function tried(
  provider: string,
  over: { catalogue?: string | undefined; secrets?: Readonly<Record<string, string>> } = {},
): Promise<{ readonly differing: number; readonly lines: readonly string[] }> {
  const secrets: Readonly<Record<string, string>> = { ...FAKE_SECRETS, ...over.secrets };
  const lines: string[] = [];
  const options = { provider, catalogue, isTestAccount: false, ...over };
  const environment = (name: string) => secrets[name];
  return { differing: await tryProvider({ ...options, environment }, (line) => lines.push(line)), lines };
}

it.each([
  [
    'adyen',
    [
      ...['purchase', 'refund of a second part', 'capture of half the amount', 'cancel', 'declined card'],
      ...['PIX', 'BOLETO', 'OXXO', 'PSE'].flatMap((type) => [type, `the same ${type} under the same key`]),
    ],
  ],
  [
    'stripe',
    [
      ...['look-up by our id alone', 'close of a purchase that was never sent', 'capture of half the amount'],
      ...['token of GOOGLE_PAY', 'PIX', 'the same SPEI under the same key', 'close of BOLETO'],
      'look-up of OXXO before anybody has paid',
    ],
  ],
  ['paypal', ['payer redirected', 'look-up before anybody has paid', 'close of the redirect']],
  [
    'mercado-pago',
    [
      ...['purchase', 'look-up by our id alone', 'refund of a second part', 'capture of half the amount'],
      ...['cancel', 'declined card', 'close of a purchase that was never sent', 'payer redirected'],
      ...['look-up before anybody has paid', 'close of the redirect'],
    ],
  ],
])(
  'try-provider confirms every expectation about %s when run against the provider’s fake',
  async (provider, names) => {
    const { differing, lines } = await tried(provider);
    expect(lines.filter((line) => line.startsWith('DIFFERS'))).toEqual([]);
    expect(differing).toBe(0);
    for (const name of ['probe', ...names]) expect(lines.join('\n')).toContain(`ok       ${name}: `);
    expect(lines.at(-1)).toBe('Everything is as expected.');
  },
);

it.each([
  ['BR', 'BRL', ['PIX', 'the same BOLETO under the same key', 'close of PIX']],
  ['CO', 'COP', ['banks of PSE', 'PSE', 'look-up of EFECTY before anybody has paid']],
  ['MX', 'MXN', ['OXXO']],
])(
  'try-provider tries the local methods of a Mercado Pago account in %s',
  async (country, currency, names) => {
    const fake = await startFakeMercadoPago(currency);
    const file = join(home, `${country}.yaml`);
    const example = readFileSync(
      join(import.meta.dirname, '../../config/examples/mercado-pago.yaml'),
      'utf8',
    );
    writeFileSync(
      file,
      example.replace('country: BR\n', `country: ${country}\n      base_url: ${fake.url}\n`),
    );
    try {
      const { differing, lines } = await tried('mercado-pago', { catalogue: file });
      expect(lines.filter((line) => line.startsWith('DIFFERS'))).toEqual([]);
      expect(differing).toBe(0);
      for (const name of ['payer redirected', ...names])
        expect(lines.join('\n')).toContain(`ok       ${name}: `);
    } finally {
      await fake.close();
    }
  },
);

it('try-provider reports each difference between an expectation and the provider’s behavior', async () => {
  const { differing, lines } = await tried('stripe', { secrets: { STRIPE_API_KEY: 'sk_test_another' } });
  expect(differing).toBeGreaterThan(0);
  expect(lines).toContainEqual(
    expect.stringMatching(/^DIFFERS {2}purchase: expected approved; got not_sent: .*401/),
  );
  expect(lines.at(-1)).toBe(`${differing} differ from the expected outcome.`);
});

it.each([
  ["Stripe's live key", 'stripe', { secrets: { STRIPE_API_KEY: 'sk_live_key' } }],
  [
    "Stripe's restricted live key at the default URL",
    'stripe',
    { catalogue: undefined, secrets: { STRIPE_API_KEY: 'rk_live_key' } },
  ],
  ['a Mercado Pago key that does not show whether it is live', 'mercado-pago', { catalogue: undefined }],
] as const)('try-provider refuses %s, and sends nothing', async (_name, provider, over) => {
  const before = [fakes.stripe.requests.length, fakes.mercadoPago.requests.length];
  await expect(tried(provider, over)).rejects.toThrow(/not certainly a test environment; nothing was sent/);
  expect([fakes.stripe.requests.length, fakes.mercadoPago.requests.length]).toEqual(before);
});

it.each([
  ['adyen', 'https://checkout-test.adyen.com', 'https://x-checkout-live.adyenpayments.com/checkout'],
  ['paypal', 'https://api-m.sandbox.paypal.com', 'https://api-m.paypal.com'],
])("try-provider refuses %s's live URL", async (provider, _test, live) => {
  const file = join(home, `${provider}.yaml`);
  const { url } = provider === 'adyen' ? fakes.adyen : fakes.paypal;
  writeFileSync(file, fakes.catalogue().replace(url, live));
  await expect(tried(provider, { catalogue: file })).rejects.toThrow(/nothing was sent/);
});

it.each([
  ['stripe', {}, /^connection \S+: set STRIPE_API_KEY and STRIPE_WEBHOOK_SECRET .*; nothing was sent$/],
  [
    'stripe',
    { STRIPE_API_KEY: 'sk_live_key' },
    /^connection \S+: set STRIPE_WEBHOOK_SECRET .*; nothing was sent$/,
  ],
  [
    'stripe',
    { STRIPE_API_KEY: 'sk_live_key', STRIPE_WEBHOOK_SECRET: 'whsec_a' },
    /nothing was sent\. Set STRIPE_API_KEY to a test key \(sk_test_… or rk_test_…\)$/,
  ],
  ['adyen', {}, /set ADYEN_API_KEY and ADYEN_HMAC_KEY /],
  ['paypal', { PAYPAL_CLIENT_ID: 'a' }, /set PAYPAL_CLIENT_SECRET /],
  ['mercado-pago', {}, /set MERCADO_PAGO_ACCESS_TOKEN and MERCADO_PAGO_WEBHOOK_SECRET /],
  [
    'mercado-pago',
    { MERCADO_PAGO_ACCESS_TOKEN: 'APP_USR-1', MERCADO_PAGO_WEBHOOK_SECRET: 'a' },
    /Set MERCADO_PAGO_ACCESS_TOKEN to a token of a test account, and add --test-account$/,
  ],
])('try-provider %s with %j names the variable to set', async (provider, secrets, message) => {
  const environment = (name: string) => (secrets as Record<string, string>)[name];
  const options = { provider, isTestAccount: false, environment };
  await expect(tryProvider(options, () => {})).rejects.toThrow(message);
});

it('try-provider prints its usage for an unknown provider', async () => {
  await expect(tried('acme')).rejects.toThrow(/Usage: npm run try-provider/);
});
