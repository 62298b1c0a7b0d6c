import { describe, expect, it } from 'vitest';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { readSettings } from '#src/connectors/stripe/settings.ts';
import { Secret } from '#src/secret.ts';

const secrets = { api_key: new Secret('sk_test_abc') };

describe("the settings of Stripe's connector", () => {
  it("Stripe's settings have defaults for everything except the key", () => {
    expect(readSettings({}, secrets)).toMatchObject({
      origin: 'https://api.stripe.com',
      timeoutMs: 20_000,
      accountId: undefined,
      isLive: false,
      webhookSecrets: [],
      installments: false,
      requestThreeDSecure: 'automatic',
      applePayTokens: false,
      localMethods: new Map([
        ['PIX', 'pix'],
        ['BOLETO', 'boleto'],
        ['OXXO', 'oxxo'],
        ['SPEI', 'customer_balance'],
      ]),
    });
  });

  it.each([
    ['timeout_ms', { timeout_ms: 99 }],
    ['timeout_ms', { timeout_ms: 60_001 }],
    ['timeout_ms', { timeout_ms: '100' }],
    ['base_url', { base_url: 'ftp://api.stripe.com' }],
    ['base_url', { base_url: 'https://api.stripe.com/v1' }],
    ['base_url', { base_url: 'https://user:pass@api.stripe.com' }],
    ['account_id', { account_id: 'one' }],
    ['installments', { installments: 'yes' }],
    ['request_three_d_secure', { request_three_d_secure: 'never' }],
    ['apple_pay_tokens', { apple_pay_tokens: 'yes' }],
    ['methods', { methods: { PSE: 'pse' } }],
    ['methods', { methods: { '': 'pix' } }],
    ['no setting api_key', { api_key: 'sk_test_abc' }],
  ])("Stripe's invalid settings are rejected by name: %s, %j", (name, settings) => {
    expect(() => readSettings(settings, secrets)).toThrow(name);
  });

  it.each([
    ['api_key', {}],
    ['api_key', { api_key: new Secret('pk_test_publishable') }],
    ['api_key', { api_key: new Secret('sk_test_with space') }],
    ['webhook_secret', { ...secrets, webhook_secret: new Secret('abc_hidden') }],
    ['webhook_secret_next', { ...secrets, webhook_secret_next: new Secret('abc_hidden') }],
    ['no secret webhook_key', { ...secrets, webhook_key: new Secret('whsec_hidden') }],
  ])("Stripe's settings require valid secrets: %s", (name, given) => {
    expect(() => readSettings({}, given as Record<string, Secret>)).toThrow(name);
    expect(() => readSettings({}, given as Record<string, Secret>)).not.toThrow(/hidden|publishable|space/);
  });

  it("Stripe's settings identify the account by its ID or its key, and separate live from test mode", async () => {
    const open = (settings: object, key: string) =>
      stripeConnector.connect(
        { ...settings },
        { providerId: 'STRIPE', secrets: { api_key: new Secret(key) } },
      );
    const named = open({ account_id: 'acct_1' }, 'rk_live_abc');
    const unnamed = open({}, 'sk_test_abc');
    expect([named.identity, named.accountNamedBy]).toEqual(['https://api.stripe.com live acct_1', undefined]);
    expect(unnamed.identity).toBe('https://api.stripe.com test ');
    expect(unnamed.accountNamedBy?.reveal()).toBe('sk_test_abc');
    expect(named.readNotification).toBeUndefined();
    await Promise.all([named.close(), unnamed.close()]);
  });

  it("Stripe's settings decide whether installments are supported", async () => {
    for (const installments of [true, false]) {
      const connection = stripeConnector.connect({ installments }, { providerId: 'STRIPE', secrets });
      expect(connection.capabilities.installments).toBe(installments);
      await connection.close();
    }
  });
});
