import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { Secret } from '#src/secret.ts';

const TOKEN = 'APP_USR-a-secret-token';
const WEBHOOK_SECRET = 'a-secret-signature';

function connect(settings: JsonObject, secrets: Record<string, string> = {}) {
  const all = Object.entries({ access_token: TOKEN, ...secrets }).map(([name, text]) => [
    name,
    new Secret(text),
  ]);
  return mercadoPagoConnector.connect(
    { country: 'AR', ...settings },
    { providerId: 'MERCADO_PAGO', secrets: Object.fromEntries(all) },
  );
}

describe('the settings of a Mercado Pago connection', () => {
  it("Mercado Pago's settings require only a country and an access token", async () => {
    const connection = connect({});
    expect(connection).toMatchObject({
      identity: 'https://api.mercadopago.com ',
      accountNamedBy: new Secret(TOKEN),
      deadlineMs: 20_000,
      complete: undefined,
      readNotification: undefined,
      capabilities: {
        methods: ['CARD', 'PAYER_PAGE'],
        authorization: true,
        captures: 1,
        storedCredentials: false,
        externalThreeDSecure: false,
        refunds: 'several',
      },
    });
    await connection.close();
  });

  it("Mercado Pago's settings identify the account, so that its token can be renewed", async () => {
    const connection = connect({ account_id: '123456789' }, { webhook_secret: WEBHOOK_SECRET });
    expect(connection).toMatchObject({
      identity: 'https://api.mercadopago.com 123456789',
      accountNamedBy: undefined,
      readNotification: expect.any(Function),
    });
    await connection.close();
  });

  it.each<[string, JsonObject, Record<string, string>]>([
    ['country', { country: 'US' }, {}],
    ['country', { country: 1 }, {}],
    ['base_url', { base_url: 'ftp://api.mercadopago.com' }, {}],
    ['base_url', { base_url: 'https://api.mercadopago.com/v1' }, {}],
    ['timeout_ms', { timeout_ms: 99 }, {}],
    ['timeout_ms', { timeout_ms: '1000' }, {}],
    ['account_id', { account_id: 123456789 }, {}],
    ['binary_mode', { binary_mode: 'yes' }, {}],
    ['statement_descriptor', { statement_descriptor: 'fourteen chars' }, {}],
    ['excluded_payment_types', { excluded_payment_types: 'ticket' }, {}],
    ['excluded_payment_types', { excluded_payment_types: ['Ticket!'] }, {}],
    ['methods', { methods: { PIX: 'Pix!' } }, {}],
    ['methods', { methods: ['pix'] }, {}],
    ['without_security_code', { without_security_code: 'yes' }, {}],
    ['external_three_d_secure', { external_three_d_secure: 1 }, {}],
    ['setting acount_id', { acount_id: '1' }, {}],
    ['access_token', {}, { access_token: 'sk_test_secret' }],
    ['webhook_secret', {}, { webhook_secret: 'short' }],
    ['webhook_secret_next', {}, { webhook_secret_next: 'with a space in it' }],
    ['secret client_secret', {}, { client_secret: TOKEN }],
  ])(
    "Mercado Pago's invalid settings and secrets are rejected with a message that names them: %s",
    (name, settings, secrets) => {
      const refused = () => connect(settings, secrets);
      expect(refused).toThrow(name);
      for (const secret of [TOKEN, ...Object.values(secrets)]) {
        expect(refused).not.toThrow(secret);
      }
    },
  );
});

describe('the local methods of a Mercado Pago account', () => {
  const offered = (country: string, methods: JsonObject = {}) =>
    connect({ country, methods }).capabilities.localMethods;

  it.each([
    ['BR', ['PIX', 'BOLETO'], 'BRL'],
    ['CO', ['PSE', 'EFECTY'], 'COP'],
    ['MX', ['OXXO'], 'MXN'],
    ['AR', [], 'ARS'],
  ])('an account in %s offers %j', (country, types, currency) => {
    const methods = offered(country);
    expect(Object.keys(methods)).toEqual(types);
    for (const method of Object.values(methods)) {
      expect(method).toMatchObject({ countries: [country], currencies: [currency] });
      expect(method.needs).toContain('customer_payer.email');
    }
  });

  it('only Pix and boleto can be closed while nobody has paid', () => {
    const all = { ...offered('BR', { LOTERICA: 'pec' }), ...offered('CO'), ...offered('MX') };
    const closable = Object.entries(all).filter(([, { close }]) => close);
    expect(closable.map(([type]) => type)).toEqual(['PIX', 'BOLETO']);
  });

  it('only Pix can be refunded, in parts and for 90 days', () => {
    expect(offered('BR').PIX).toMatchObject({ refunds: 'several', refundableDays: 90 });
    for (const method of [offered('BR').BOLETO, ...Object.values({ ...offered('CO'), ...offered('MX') })])
      expect(method?.refunds).toBe('none');
  });

  it('the setting adds methods, and gives other names to those that are known', () => {
    const methods = offered('AR', { RAPIPAGO: 'rapipago', PIX: 'pix' });
    expect(methods.RAPIPAGO).toMatchObject({ countries: ['AR'], currencies: ['ARS'], refunds: 'none' });
    expect(methods.PIX).toMatchObject({ countries: ['AR'], refunds: 'several' });
    expect(offered('CO', { TRANSFER: 'pse' }).TRANSFER?.needs).toEqual(offered('CO').PSE?.needs);
    expect(offered('BR', { BOLETO: 'pec' }).BOLETO?.documents).toBeUndefined();
  });
});
