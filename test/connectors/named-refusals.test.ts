import { afterAll, beforeAll, expect, it } from 'vitest';
import { adyenConnector } from '#src/connectors/adyen/connector.ts';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Connector } from '#src/connectors/port/connector.ts';
import { sandboxConnector } from '#src/connectors/sandbox/connector.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { Secret } from '#src/secret.ts';
import { type Site, startSite } from '../support/site.ts';
import { SECRETS as ADYEN } from './adyen/adyen-under-test.ts';
import { FAKE_ACCOUNT } from './adyen/fake-notifications.ts';
import { cardAttempt, redirectAttempt } from './attempts.ts';
import { cardInPesos } from './mercado-pago/conforming-cards.ts';
import { attemptInPesos, SECRETS as MERCADO_PAGO } from './mercado-pago/mercado-pago-under-test.ts';
import { SECRETS as PAYPAL } from './paypal/paypal-under-test.ts';
import { connect } from './under-test.ts';

/* The reason that each provider gives for a refused request, in its own words. */

let site: Site;
let answer: { status: number; body: object };
beforeAll(async () => {
  site = await startSite((request, response) => {
    const isToken = request.url === '/v1/oauth2/token';
    const token = { access_token: 'A21AA', token_type: 'Bearer', expires_in: 32_400 };
    response
      .writeHead(isToken ? 200 : answer.status, { 'content-type': 'application/json' })
      .end(JSON.stringify(isToken ? token : answer.body));
  });
});
afterAll(() => site.close());

type At = readonly [Connector, object, Readonly<Record<string, Secret>>, () => PaymentAttempt];

const STRIPE: At = [stripeConnector, {}, { api_key: new Secret('sk_test_x') }, cardAttempt];
const AT_ADYEN: At = [adyenConnector, { merchant_account: FAKE_ACCOUNT }, ADYEN, cardAttempt];
const AT_PAYPAL: At = [paypalConnector, {}, PAYPAL, redirectAttempt];
const AT_MERCADO_PAGO: At = [mercadoPagoConnector, { country: 'AR' }, MERCADO_PAGO, attemptInPesos];
const CARD_AT_MERCADO_PAGO: At = [mercadoPagoConnector, { country: 'AR' }, MERCADO_PAGO, cardInPesos];
const SANDBOX: At = [sandboxConnector, {}, { api_key: new Secret('sandbox_key_of_the_test') }, cardAttempt];

const byStripe = (error: object) => ({ error: { type: 'invalid_request_error', message: 'no', ...error } });
const byAdyen = (message: string) => ({ status: 422, errorCode: '137', message, errorType: 'validation' });
const byPayPal = (...details: object[]) => ({ name: 'INVALID_REQUEST', message: 'no', details });
const byMercadoPago = (message: string, cause: object[] = []) => ({ message, status: 400, cause });
const bySandbox = (param: string | null) => ({ error: { type: 'invalid_request', message: 'no', param } });

it.each<[string, At, number, object, string]>([
  ['Stripe with a parameter', STRIPE, 400, byStripe({ param: 'card[exp_year]' }), 'card[exp_year]'],
  ['Stripe with a code', STRIPE, 400, byStripe({ code: 'amount_too_small' }), 'amount_too_small'],
  ['Stripe without a reason', STRIPE, 404, byStripe({}), ''],
  ['Adyen with a field', AT_ADYEN, 422, byAdyen("Required field 'returnUrl' is not provided."), 'returnUrl'],
  ['Adyen with a code', AT_ADYEN, 422, byAdyen("Invalid amount specified: '12,0'"), '137'],
  [
    'PayPal with a pointer',
    AT_PAYPAL,
    400,
    byPayPal({ field: '/purchase_units/0/amount/value', issue: 'X', value: '12,0' }),
    '/purchase_units/0/amount/value',
  ],
  [
    'PayPal with an issue',
    AT_PAYPAL,
    422,
    byPayPal({ issue: 'PAYEE_ACCOUNT_RESTRICTED' }),
    'PAYEE_ACCOUNT_RESTRICTED',
  ],
  ['Mercado Pago with a message', AT_MERCADO_PAGO, 400, byMercadoPago('unit_price invalid'), 'unit_price'],
  [
    'Mercado Pago with a cause',
    AT_MERCADO_PAGO,
    400,
    byMercadoPago('bad', [{ code: 1, description: 'payer.email ana@example.com is invalid' }]),
    'payer.email',
  ],
  ['Mercado Pago without a reason', AT_MERCADO_PAGO, 400, byMercadoPago('12,0 is not valid'), ''],
  [
    "Mercado Pago with the cause of a card's refusal",
    CARD_AT_MERCADO_PAGO,
    400,
    byMercadoPago('bad', [{ code: 'E302', description: 'invalid parameter security_code 987' }]),
    'security_code',
  ],
  ['the sandbox with a parameter', SANDBOX, 400, bySandbox('card.number'), 'card.number'],
  ['the sandbox without a reason', SANDBOX, 400, bySandbox(null), ''],
  ['Stripe with a value in place of a name', STRIPE, 400, byStripe({ param: 'ana@example.com, Ana' }), ''],
])(
  'a refusal names the refused field or code, if any: %s',
  async (_of, [connector, settings, secrets, attempt], status, body, refused) => {
    answer = { status, body };
    const connection = connect(connector, { base_url: site.url, ...settings }, secrets);
    const outcome = await connection.pay(attempt());
    expect(outcome).toMatchObject({ kind: 'not_sent', because: 'turned_away', refused });
    await connection.close();
  },
);

it.each([401, 403, 429])(
  'a refusal of all requests on a connection does not count as a refusal of this request: %i',
  async (status) => {
    answer = { status, body: byStripe({ param: 'card' }) };
    const [connector, settings, secrets, attempt] = STRIPE;
    const connection = connect(connector, { base_url: site.url, ...settings }, secrets);
    expect(await connection.pay(attempt())).not.toHaveProperty('refused');
    await connection.close();
  },
);
