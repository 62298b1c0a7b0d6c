import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { FAKE_ACCOUNT } from './connectors/adyen/fake-notifications.ts';
import { startFakeMercadoPago } from './connectors/mercado-pago/fake-mercado-pago.ts';
import { FAKE_SECRETS, startFakeProviders } from './support/fake-providers.ts';
import { cardPayment, headersOne, withField } from './support/payment-requests.ts';
import { loadScenarios, type Scenario } from './support/scenario.ts';
import { startTestServer, type TestServer } from './support/server.ts';

/*
 * The interface's scenarios and operations on their payments, through each provider's connector to its fake. Routing
 * skips a provider for requests that it does not support; without another connection, such a request is refused.
 */

const APPROVED = 'SUCCEEDED/APPROVED';
const SENT_AWAY = 'READY_TO_PAY/CREATED';
const CHALLENGED = 'PENDING/WAITING_ADDITIONAL_STEP';
/** The connection refuses the currency before anything is sent. */
const NO_SUCH_CURRENCY = 'ERROR/ERROR';
/** The request is refused, and the error names the unsupported feature. */
const passedOver = (asked: string) => `OPERATION_NOT_SUPPORTED: ${asked}`;
const CARDS = passedOver('card payments');
/** Every payer needs an e-mail address, and every card its security code. */
const WITHOUT_EMAIL = passedOver('card payments without it');
const REDIRECTS = passedOver('redirects to wallets');
/** The sandbox's wallet is enrolled at the sandbox's provider. */
const ENROLLED = passedOver("was enrolled at a connection outside this payment's route");

const PROVIDERS = ['adyen', 'stripe', 'paypal', 'mercado-pago'] as const;
type Provider = (typeof PROVIDERS)[number];

/**
 * The expected result of each scenario, keyed by the two digits of its name, at each provider in the order above. Local
 * methods and wallets' tokens are left to the conformance suite, which has their requests at each provider.
 */
const EXPECTED: Readonly<Record<string, readonly [string, string, string, string]>> = {
  '00': [APPROVED, APPROVED, CARDS, WITHOUT_EMAIL],
  '01': [SENT_AWAY, REDIRECTS, NO_SUCH_CURRENCY, NO_SUCH_CURRENCY],
  '02': [SENT_AWAY, REDIRECTS, SENT_AWAY, NO_SUCH_CURRENCY],
  '03': [ENROLLED, ENROLLED, ENROLLED, ENROLLED],
  '04': [SENT_AWAY, REDIRECTS, NO_SUCH_CURRENCY, SENT_AWAY],
  '05': [APPROVED, APPROVED, CARDS, NO_SUCH_CURRENCY],
  '06': [APPROVED, APPROVED, CARDS, NO_SUCH_CURRENCY],
  '07': [APPROVED, APPROVED, CARDS, NO_SUCH_CURRENCY],
  '08': [APPROVED, APPROVED, CARDS, NO_SUCH_CURRENCY],
  '09': [APPROVED, APPROVED, CARDS, NO_SUCH_CURRENCY],
  '10': [APPROVED, APPROVED, CARDS, WITHOUT_EMAIL],
  '11': [CHALLENGED, CHALLENGED, CARDS, passedOver('3-D Secure setups')],
  '12': [
    APPROVED,
    passedOver('stored credentials'),
    CARDS,
    passedOver('results of 3-D Secure from elsewhere'),
  ],
  '13': ['PENDING/AUTHORIZED', 'PENDING/AUTHORIZED', CARDS, WITHOUT_EMAIL],
  '14': ['VERIFIED/VERIFIED', passedOver('verifications'), CARDS, passedOver('verifications')],
};

const environment = (name: string) => (FAKE_SECRETS as Readonly<Record<string, string>>)[name];

let fakes: Awaited<ReturnType<typeof startFakeProviders>>;
let mercadoPago: Awaited<ReturnType<typeof startFakeMercadoPago>>;
const servers = new Map<Provider, TestServer>();

beforeAll(async () => {
  [fakes, mercadoPago] = await Promise.all([startFakeProviders(), startFakeMercadoPago('PEN')]);
  for (const provider of PROVIDERS) {
    servers.set(
      provider,
      await startTestServer({ catalogue: catalogueOf(provider), config: { environment } }),
    );
  }
});
afterAll(async () => {
  await Promise.all([...servers.values()].map((server) => server.close()));
  await mercadoPago?.close();
  await fakes?.close();
});

/** Sends every payment to one connection at one provider. */
function catalogueOf(provider: Provider): string {
  const wallets = ['WALLET_A_CHECKOUT_PRO', 'WALLET_B', 'WALLET_D'];
  const methods = wallets.map((type) => `${type}: ideal`).join(', ');
  const connection = {
    adyen: `settings: { base_url: '${fakes.adyen.url}', merchant_account: ${FAKE_ACCOUNT}, installments: true, redirect_methods: { ${methods} } }
    secrets_from_environment: { api_key: ADYEN_API_KEY, hmac_key: ADYEN_HMAC_KEY }`,
    stripe: `settings: { base_url: '${fakes.stripe.url}', installments: true }
    secrets_from_environment: { api_key: STRIPE_API_KEY }`,
    paypal: `settings: { base_url: '${fakes.paypal.url}' }
    secrets_from_environment: { client_id: PAYPAL_CLIENT_ID, client_secret: PAYPAL_CLIENT_SECRET }`,
    'mercado-pago': `settings: { base_url: '${mercadoPago.url}', country: PE }
    secrets_from_environment: { access_token: MERCADO_PAGO_ACCESS_TOKEN }`,
  }[provider];
  return `payment_method_types:
  - { type: CARD, category: CARD, workflows: [DIRECT] }
  - { type: WALLET_C_ENROLLMENT, category: WALLET, workflows: [DIRECT] }
${wallets.map((type) => `  - { type: ${type}, category: WALLET, workflows: [REDIRECT] }`).join('\n')}
connections:
  - id: only
    name: Only
    provider_id: ONLY
    connector: ${provider}
    ${connection}
routes:
  - { id: 1, targets: [{ connection: only }] }
`;
}

// biome-ignore lint/suspicious/noExplicitAny: the record, as a merchant's code sees it.
type Json = any;

async function post(provider: Provider, path: string, body: string, keys: object = {}): Promise<Json> {
  const response = await fetch(`${servers.get(provider)?.url}/v1/payments${path}`, {
    method: 'POST',
    headers: { ...headersOne(randomUUID()), ...keys, 'content-type': 'application/json' },
    body,
  });
  return response.json();
}

async function get(provider: Provider, id: string): Promise<Json> {
  const url = `${servers.get(provider)?.url}/v1/payments/${id}`;
  return (await fetch(url, { headers: headersOne() })).json();
}

const endOf = ({ status, sub_status, code, detail }: Json) =>
  code
    ? `${code}: ${/(?:requests |offers |(?=was enrolled))([^,;]+)[,;]/.exec(detail)?.[1]}`
    : `${status}/${sub_status}`;

describe.each(PROVIDERS)('scenarios through %s', (provider) => {
  it.each(loadScenarios().filter(({ name }) => name.slice(0, 2) in EXPECTED))(
    '$name',
    async ({ name, request, keys }: Scenario) => {
      const expected = EXPECTED[name.slice(0, 2)]?.[PROVIDERS.indexOf(provider)];
      expect(endOf(await post(provider, '', request, keys))).toBe(expected);
    },
  );
});

it('the record of a payment or operation that the provider refused names the refused field', async () => {
  const { stripe } = fakes;
  const refusing = (param: string) => {
    const error = { type: 'invalid_request_error', message: 'Invalid: 13', param };
    return { answer: { status: 400, body: { error } } };
  };
  const request = JSON.stringify(cardPayment('4242424242424242'));
  stripe.fail(/methods$/, refusing('card[exp_month]'));
  const refused = await post('stripe', '', request);
  expect(endOf(refused)).toBe('ERROR/ERROR');
  expect(refused.transactions).toMatchObject({
    status: 'ERROR',
    response_code: 'REQUEST_REFUSED',
    response_message: 'Provider refused the request: card[exp_month]',
  });
  const paid = await post('stripe', '', request);
  stripe.fail(/refunds$/, refusing('amount'));
  const refund = await post('stripe', `/${paid.id}/refund`, JSON.stringify({ merchant_reference: 'one' }));
  expect(refund.transactions).toMatchObject({
    status: 'ERROR',
    response_code: 'REQUEST_REFUSED',
    response_message: 'Provider refused the request: amount',
  });
});

describe.each(['adyen', 'stripe'] as const)('operations through %s', (provider) => {
  async function pay(capture: boolean): Promise<string> {
    const request = withField(cardPayment('4242424242424242'), 'payment_method.detail.card.capture', capture);
    const record = await post(provider, '', JSON.stringify(request));
    expect(endOf(record)).toBe(APPROVED);
    await told();
    return record.id;
  }

  /** Adyen only acknowledges an operation; a notification then reports that it is done. */
  const told = () => (provider === 'adyen' ? fakes.tellAdyens(servers.get(provider)?.url ?? '', 'only') : []);

  async function operate(id: string, verb: string, value?: number): Promise<void> {
    const merchant_reference = `${verb} ${value}`;
    const amount = value === undefined ? undefined : { currency: 'USD', value };
    const operated = await post(provider, `/${id}/${verb}`, JSON.stringify({ merchant_reference, amount }));
    expect(operated.transactions?.status).toBe(provider === 'adyen' ? 'PENDING' : 'SUCCEEDED');
    await told();
  }

  const becomes = (id: string, state: string) =>
    expect.poll(async () => endOf(await get(provider, id))).toBe(state);

  it('part of an authorization is captured, and part of that is refunded', async () => {
    const id = await pay(false);
    await operate(id, 'capture', 8);
    await becomes(id, 'SUCCEEDED/PARTIALLY_CAPTURED');
    await operate(id, 'refund', 3);
    await becomes(id, 'SUCCEEDED/PARTIALLY_REFUNDED');
    expect((await get(provider, id)).amount).toMatchObject({ captured: 8, refunded: 3 });
  });

  it('an authorization is canceled', async () => {
    const id = await pay(false);
    await operate(id, 'cancel');
    await becomes(id, 'CANCELED/CANCELED');
  });

  it('a purchase is refunded in parts, down to the last cent', async () => {
    const id = await pay(true);
    await operate(id, 'refund', 9.99);
    await becomes(id, 'SUCCEEDED/PARTIALLY_REFUNDED');
    await operate(id, 'refund', 0.01);
    await becomes(id, 'REFUNDED/REFUNDED');
  });
});
