import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import { Secret } from '#src/secret.ts';
import { SECRETS } from './paypal-under-test.ts';

function connect(settings: JsonObject, secrets: Record<string, Secret> = SECRETS) {
  return paypalConnector.connect(settings, { providerId: 'PAYPAL', secrets });
}

describe("PayPal's settings", () => {
  it("PayPal's settings are all optional except the secrets", async () => {
    const connection = connect({});
    expect(connection.identity).toBe('https://api-m.paypal.com ');
    expect(connection.accountNamedBy).toBe(SECRETS.client_id);
    expect(connection.readNotification).toBeUndefined();
    // PayPal forgets an order after three hours.
    expect(connection.capabilities.redirectValidMinutes).toBe(170);
    await connection.close();
  });

  it("PayPal's settings identify the account, so that the credentials can be replaced", async () => {
    const connection = connect({ account_id: '7ABCDEFGHJKLM' });
    expect(connection.identity).toBe('https://api-m.paypal.com 7ABCDEFGHJKLM');
    expect(connection.accountNamedBy).toBeUndefined();
    await connection.close();
  });

  it.each<[string, JsonObject]>([
    ['base_url', { base_url: 'ftp://paypal.com' }],
    ['base_url', { base_url: 'https://user:key@api-m.paypal.com' }],
    ['base_url', { base_url: 'https://api-m.paypal.com/v2' }],
    ['timeout_ms', { timeout_ms: 1 }],
    ['account_id', { account_id: 'me@example.com' }],
    ['webhook_ids', { webhook_ids: 'one' }],
    ['webhook_ids', { webhook_ids: ['a', 'b', 'c'] }],
    ['webhook_ids', { webhook_ids: ['with "quotes"'] }],
    ['brand_name', { brand_name: '' }],
    ['locale', { locale: 'Spanish' }],
    ['send_shipping_address', { send_shipping_address: 'yes' }],
    ['colour', { colour: 'red' }],
  ])('an invalid PayPal setting is rejected with a message that names it: %s in %j', (name, settings) => {
    expect(() => connect(settings)).toThrow(name);
  });

  it.each(['client_id', 'client_secret'])(
    "PayPal's settings without a valid %s are rejected, and its value is not shown",
    (name) => {
      expect(() => connect({}, { ...SECRETS, [name]: undefined as unknown as Secret })).toThrow(name);
      const wrong = { ...SECRETS, [name]: new Secret('with space') };
      expect(() => connect({}, wrong)).toThrow(name);
      expect(() => connect({}, wrong)).not.toThrow('with space');
      expect(() => connect({}, { ...SECRETS, other: new Secret('x') })).toThrow('other');
    },
  );
});
