import { describe, expect, it } from 'vitest';
import { readSettings } from '#src/connectors/adyen/settings.ts';
import { Secret } from '#src/secret.ts';
import { connectAdyen, SECRETS } from './adyen-under-test.ts';

const SETTINGS = {
  base_url: 'https://x-checkout-live.adyenpayments.com/checkout/',
  merchant_account: 'ShopECOM',
};

describe('the settings of an Adyen connection', () => {
  it("Adyen's optional settings have defaults", () => {
    expect(readSettings(SETTINGS, SECRETS)).toMatchObject({
      origin: 'https://x-checkout-live.adyenpayments.com',
      basePath: '/checkout',
      timeoutMs: 20_000,
      merchantAccount: 'ShopECOM',
      installments: false,
      methods: { pages: new Map() },
      hmacKeys: [SECRETS.hmac_key],
    });
  });

  it('the identity of an Adyen connection contains its base URL and its merchant account', async () => {
    const connection = connectAdyen(SETTINGS);
    expect(connection.identity).toBe('https://x-checkout-live.adyenpayments.com/checkout ShopECOM');
    await connection.close();
  });

  it.each([
    ['base_url', 'ftp://x'],
    ['base_url', 'https://user:word@x'],
    ['base_url', 'https://checkout-test.adyen.com/v72'],
    ['base_url', undefined],
    ['merchant_account', ''],
    ['merchant_account', 'a:b'],
    ['merchant_account', undefined],
    ['timeout_ms', 99],
    ['timeout_ms', '1000'],
    ['installments', 'yes'],
    ['redirect_methods', ['ideal']],
    ['redirect_methods', { IDEAL: 1 }],
    ['redirect_methods', { IDEAL: '../x' }],
    ['methods', { BOLETO: 'Boleto' }],
    ['methods', { '': 'ideal' }],
    ['colour', 'green'],
  ])('an invalid Adyen setting is rejected with a message that names it: %s is %j', (name, value) => {
    const { [name]: _left, ...rest } = SETTINGS as Record<string, string>;
    const settings = value === undefined ? rest : { ...SETTINGS, [name]: value };
    expect(() => readSettings(settings, SECRETS)).toThrow(name);
  });

  it.each([
    ['api_key', undefined],
    ['api_key', 'two words'],
    ['hmac_key', undefined],
    ['hmac_key', 'not-hexadecimal'],
    ['hmac_key_next', '44782DEF'],
    ['password', 'hunter2-hunter2'],
  ])(
    'an invalid Adyen secret is rejected with a message that names it but omits its value: %s',
    (name, value) => {
      const secrets: Record<string, Secret> = { ...SECRETS };
      delete secrets[name];
      if (value !== undefined) secrets[name] = new Secret(value);
      let message = '';
      try {
        readSettings(SETTINGS, secrets);
      } catch (error) {
        message = String(error);
      }
      expect(message).toContain(name);
      for (const secret of Object.values(secrets)) expect(message).not.toContain(secret.reveal());
    },
  );
});
