import { globSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import { beforeEach, describe, expect, it } from 'vitest';
import type { Catalogue } from '#gen/payments/v1/catalogue_pb.js';
import { findDoubts } from '#src/catalogue/find-doubts.ts';
import { openCatalogue } from '#src/catalogue/open-catalogue.ts';
import { checkCatalogueText, parseCatalogue, placeFaults } from '#src/catalogue/read-catalogue.ts';
import { createJudge } from '#src/catalogue/route-reach.ts';
import { optionsHere } from '#src/commands/open-here.ts';
import { readConfig } from '#src/config.ts';
import { change, SMALL } from '../support/small-catalogue.ts';

const ROOT = join(import.meta.dirname, '../..');

/** Secrets by the variables that the examples name. */
const SECRETS: Readonly<Record<string, string>> = {
  ONE_KEY: 'one',
  ADYEN_API_KEY: 'a',
  ADYEN_HMAC_KEY: '0'.repeat(64),
  STRIPE_API_KEY: 'sk_test_0123456789abcdef',
  STRIPE_LIVE_KEY: 'rk_live_0123456789abcdef',
  STRIPE_WEBHOOK_SECRET: 'whsec_0123456789abcdef',
  PAYPAL_CLIENT_ID: 'a',
  PAYPAL_CLIENT_SECRET: 'b',
  MERCADO_PAGO_ACCESS_TOKEN: 'TEST-1',
  MERCADO_PAGO_WEBHOOK_SECRET: '0123456789abcdef',
};

const config = readConfig({});
const options = { ...optionsHere(config), environment: (name: string) => SECRETS[name] ?? sandboxKey(name) };
const sandboxKey = optionsHere(config).environment;

/** Returns the doubts of a catalogue whose connections are open beside the sandbox. */
async function doubtsIn(catalogue: Catalogue, sandbox = true) {
  const opened = openCatalogue({ catalogue, version: 0 }, options);
  await opened.close();
  return findDoubts(catalogue, { connections: opened.connections, sandbox, hasAllSecrets: true });
}

/** Returns the doubts of a text as `path: message`. */
const doubtsOf = async (text: string, sandbox?: boolean) =>
  (await doubtsIn(parseCatalogue(text, 'test.yaml'), sandbox)).map(
    ({ field, message }) => `${field}: ${message}`,
  );

/** A catalogue with types, connections and routes, each as an item of YAML. */
function catalogue(types: string[], routes: string[], connections: string[] = [ONE]): string {
  const list = (items: string[]) => items.map((item) => `  - ${item}\n`).join('');
  return `payment_method_types:\n${list(types)}connections:\n${list(connections)}routes:\n${list(routes)}`;
}

const connection = (id: string, connector: string, settings: string, secrets: string) =>
  `{ id: ${id}, provider_id: ONE, connector: ${connector}, settings: ${settings}, secrets_from_environment: ${secrets} }`;
const NOTIFIED = '{ api_key: ONE_KEY, notification_secret: STRIPE_WEBHOOK_SECRET }';
const ONE = connection('one', 'sandbox', '{ base_url: $SANDBOX_URL }', NOTIFIED);
const STRIPE = connection(
  'stripe',
  'stripe',
  '{}',
  '{ api_key: STRIPE_API_KEY, webhook_secret: STRIPE_WEBHOOK_SECRET }',
);
const PAYPAL = connection(
  'paypal',
  'paypal',
  '{ base_url: "https://api-m.sandbox.paypal.com", webhook_ids: [8PT597110X687430LKGECATA] }',
  '{ client_id: PAYPAL_CLIENT_ID, client_secret: PAYPAL_CLIENT_SECRET }',
);
const CARD = '{ type: CARD, category: CARD, workflows: [DIRECT] }';
const WALLET = '{ type: WALLET_E, category: WALLET, workflows: [DIRECT, REDIRECT] }';
const BOLETO =
  '{ type: BOLETO, category: TICKET, workflows: [REDIRECT], countries: [BR], currencies: [BRL] }';
const EFECTY =
  '{ type: EFECTY, category: TICKET, workflows: [REDIRECT], countries: [CO], currencies: [COP] }';
let routes = 0;
beforeEach(() => {
  routes = 0;
});
const route = (condition: string, ...targets: string[]) =>
  `{ id: ${++routes}, condition: "${condition}", targets: [${targets.map((id) => `{ connection: ${id} }`).join(', ')}] }`;

describe('no doubt', () => {
  const files = ['config/sandbox-catalogue.yaml', ...globSync('config/examples/*.yaml', { cwd: ROOT })];
  it.each(files)('%s has none', async (file) => {
    const text = readFileSync(join(ROOT, file), 'utf8');
    expect(await doubtsOf(text)).toEqual([]);
  });

  it('the example in docs/routing.md gives none to the sandbox catalogue', async () => {
    const [, example = ''] =
      /```yaml\nroutes:\n([\s\S]*?)```/.exec(readFileSync(join(ROOT, 'docs/routing.md'), 'utf8')) ?? [];
    const text = readFileSync(join(ROOT, 'config/sandbox-catalogue.yaml'), 'utf8');
    expect(example).toContain('id: 7');
    const whole = text.replace('\nroutes:\n', `\nroutes:\n${example.replace('id: 7', 'id: 70')}`);
    expect(await doubtsOf(whole)).toEqual([]);
  });

  it('follows from a condition that other facts decide', async () => {
    const text = catalogue(
      [CARD, BOLETO],
      [
        route("amount > 5 && merchant_reference == 'a'", 'paypal'),
        route("time.getHours('UTC') < 6 || type == 'CARD'", 'one'),
        route("account_id != '1' && category != 'CARD'", 'one'),
      ],
      [ONE, PAYPAL],
    );
    const paypal = 'supports nothing that the route accepts (CARD, BOLETO)';
    expect(await doubtsOf(text)).toEqual([expect.stringContaining(paypal)]);
    expect(await doubtsOf(text.replace('connection: paypal', 'connection: one'))).toEqual([]);
  });
});

describe('a route', () => {
  it('after one that accepts every payment is never reached', async () => {
    const text = catalogue([CARD], [route('', 'one'), route("currency == 'BRL'", 'one')]);
    expect(await doubtsOf(text)).toEqual([
      'routes[1]: route 2 is never reached, since route 1 accepts every payment that it accepts; move it before that route, or remove it',
    ]);
  });

  it('is never reached if earlier ones together accept what it accepts', async () => {
    const all = [route("type == 'CARD'", 'one'), route("category != 'CARD'", 'one'), route('true', 'one')];
    expect(await doubtsOf(catalogue([CARD, BOLETO], all))).toEqual([
      'routes[2]: route 3 is never reached, since route 1, route 2 accept every payment that it accepts; move it before them, or remove it',
    ]);
    const one = all.map((text, i) => (i === 0 ? text.replace("type == 'CARD'", "country == 'BR'") : text));
    expect(await doubtsOf(catalogue([CARD, BOLETO], one))).toEqual([]);
  });

  it('accepts no offered payment method if its condition contradicts itself or no type fits it', async () => {
    const none = route("type == 'BOLETO' && workflow == 'DIRECT'", 'one');
    expect(await doubtsOf(catalogue([BOLETO], [none, route('', 'one')]))).toEqual([
      'routes[0]: route 1 accepts no payment method that the catalogue offers; change its condition, or remove it',
    ]);
  });

  it('without a target that is in use refuses its payments', async () => {
    expect(
      await doubtsOf(
        change('{ api_key: ONE_KEY }', `${NOTIFIED}\n    retired: true`).replace('timeout_ms: 1000', ''),
      ),
    ).toEqual(['routes[0].targets: of route 1 are all retired, so it refuses its payments']);
  });
});

describe('a target', () => {
  const unable = (path: string, id: string, types: string) =>
    `${path}.connection: ${id} supports nothing that the route accepts (${types}); remove the target, or change the condition`;

  it('that lacks every payment method of its route is doubtful, a target that lacks some is not', async () => {
    const connections = [ONE, STRIPE, PAYPAL];
    const text = catalogue(
      [CARD, WALLET, BOLETO, EFECTY],
      [
        route("type == 'EFECTY'", 'one', 'stripe'),
        route("category == 'CARD'", 'paypal', 'stripe'),
        route("type == 'WALLET_E' && workflow == 'REDIRECT'", 'stripe', 'paypal'),
        route("type == 'WALLET_E'", 'one', 'paypal'),
        route('', 'stripe', 'one'),
      ],
      connections,
    );
    expect(await doubtsOf(text)).toEqual([
      unable('routes[0].targets[1]', 'stripe', 'EFECTY'),
      unable('routes[1].targets[0]', 'paypal', 'CARD'),
      unable('routes[2].targets[0]', 'stripe', 'WALLET_E'),
      unable('routes[3].targets[1]', 'paypal', 'WALLET_E'),
    ]);
  });

  it('that offers a local method only in another country than its route is doubtful', async () => {
    const anywhere = BOLETO.replace('countries: [BR], currencies: [BRL]', 'countries: [AR, BR]');
    const text = catalogue([anywhere], [route("country == 'AR'", 'stripe'), route('', 'stripe')], [STRIPE]);
    expect(await doubtsOf(text)).toEqual([unable('routes[0].targets[0]', 'stripe', 'BOLETO')]);
  });

  it('of some accounts is judged like the others', async () => {
    const own = 'accounts: [{ account_ids: [a], targets: [{ connection: paypal }] }] }';
    const text = catalogue([CARD], [route('', 'one').replace(/}$/, `, ${own}`)], [ONE, PAYPAL]);
    expect(await doubtsOf(text)).toEqual([unable('routes[0].accounts[0].targets[0]', 'paypal', 'CARD')]);
  });

  it('that is reserved for accounts whose payments go elsewhere is doubtful', async () => {
    const reserved = (accounts: string) =>
      ONE.replace('connector:', `account_ids: [${accounts}], connector:`);
    const own = (target: string) =>
      route('', 'one', 'stripe').replace(
        /}$/,
        `, accounts: [{ account_ids: [a], targets: [{ connection: ${target} }] }] }`,
      );
    const doubts = (accounts: string, target: string) =>
      doubtsOf(catalogue([CARD], [own(target)], [reserved(accounts), STRIPE]));
    expect(await doubts('a', 'stripe')).toEqual([
      expect.stringMatching(/^routes\[0\]\.targets\[0\]\.connection: one is reserved for other accounts/),
    ]);
    expect(await doubts('b', 'one')).toEqual([
      expect.stringMatching(
        /^routes\[0\]\.accounts\[0\]\.targets\[0\]\.connection: one is reserved for other/,
      ),
    ]);
    expect(await doubts('a, b', 'one')).toEqual([]);
  });

  it('of a connection that could not be opened, or that is retired, is not judged', async () => {
    const text = catalogue([CARD], [route('', 'paypal', 'one')], [ONE, PAYPAL]);
    const read = parseCatalogue(text, 'test.yaml');
    const around = { connections: new Map(), sandbox: true, hasAllSecrets: false };
    expect(findDoubts(read, around)).toEqual([]);
    const retired = text.replace('{ id: paypal', '{ id: paypal, retired: true');
    expect(await doubtsOf(retired)).toEqual([]);
  });
});

describe('a payment method type', () => {
  const everywhere = (type: string) =>
    `{ type: ${type}, category: CARD, workflows: [DIRECT], countries: [AR, BR, MX], currencies: [ARS, BRL, MXN, USD] }`;

  it('is accepted by no route', async () => {
    expect(await doubtsOf(catalogue([CARD, BOLETO], [route("type == 'CARD'", 'one')]))).toEqual([
      'payment_method_types[1]: BOLETO is accepted by no route, so its payments are refused; add a route, or remove it',
    ]);
    const abroad = catalogue(
      [CARD, everywhere('DEBIT')],
      [route("type == 'CARD' || country == 'CO'", 'one')],
    );
    expect(await doubtsOf(abroad)).toEqual([
      expect.stringMatching(/^payment_method_types\[1\]: DEBIT is accepted by no route/),
    ]);
  });

  it('is offered where no route accepts it: one doubt with examples', async () => {
    const text = catalogue(
      [everywhere('CARD'), everywhere('DEBIT')],
      [
        route("country == 'BR' && currency in ['BRL', 'USD']", 'one'),
        route("country == 'AR' && amount > 5", 'one'),
        route("type == 'DEBIT' && country == 'MX' && currency != 'USD'", 'one'),
      ],
    );
    const rest = 'so such payments are refused; add a route, or list fewer countries and currencies';
    expect(await doubtsOf(text)).toEqual([
      `payment_method_types[0]: CARD is offered in BR with ARS, in BR with MXN, in MX, where no route accepts it, ${rest}`,
      `payment_method_types[1]: DEBIT is offered in BR with ARS, in BR with MXN, in MX with USD, where no route accepts it, ${rest}`,
    ]);
    const fewer = text.replace("['BRL', 'USD']", "['BRL']");
    expect((await doubtsOf(fewer))[0]).toContain('in BR with ARS, in BR with MXN, in BR with USD and 1 more');
  });

  it('that lists no countries or currencies is judged by what it lists', async () => {
    const currencies = '{ type: CARD, category: CARD, workflows: [DIRECT], currencies: [BRL, USD] }';
    const routed = [route("country == 'BR'", 'one'), route("currency == 'BRL'", 'one')];
    expect(await doubtsOf(catalogue([CARD], routed))).toEqual([]);
    expect(await doubtsOf(catalogue([currencies], routed))).toEqual([]);
    expect(await doubtsOf(catalogue([currencies], routed.slice(1)))).toEqual([
      expect.stringContaining('is offered with USD, where no route accepts it'),
    ]);
  });

  it('with two workflows is accepted if one of them is', async () => {
    const one = catalogue([WALLET], [route("workflow == 'REDIRECT'", 'one')]);
    expect(await doubtsOf(one)).toEqual([]);
  });

  it('needs a route', async () => {
    const none = change('routes:', 'routes: []\nx:').replace(/x:\n(.*\n){4}/, '');
    expect(await doubtsOf(none.replace('{ api_key: ONE_KEY }', NOTIFIED))).toEqual([
      'routes: are missing, so every payment is refused',
    ]);
  });
});

describe('a connection', () => {
  const ADYEN = connection(
    'adyen',
    'adyen',
    '{ base_url: "https://checkout-test.adyen.com", merchant_account: A }',
    '{ api_key: ADYEN_API_KEY, hmac_key: ADYEN_HMAC_KEY }',
  );
  const LIVE = [
    STRIPE.replace('STRIPE_API_KEY', 'STRIPE_LIVE_KEY'),
    PAYPAL.replace('api-m.sandbox.paypal', 'api-m.paypal'),
    ADYEN.replace('checkout-test.adyen.com', 'abc-checkout-live.adyenpayments.com/checkout'),
  ];
  const of = (...connections: string[]) => catalogue([CARD], [route('', 'one')], [ONE, ...connections]);

  it.each([STRIPE, PAYPAL, ADYEN])('of a test account stands beside the sandbox: %s', async (test) => {
    expect(await doubtsOf(of(test))).toEqual([]);
  });

  it.each(LIVE)('that moves real money is doubtful beside the sandbox: %s', async (live) => {
    const doubts = await doubtsOf(of(live));
    expect(doubts).toEqual([
      expect.stringMatching(/^connections\[1\]: \w+ moves real money, and SANDBOX is on/),
    ]);
    expect(JSON.stringify(doubts)).not.toContain('0123');
    expect(await doubtsOf(of(live), false)).toEqual([]);
    expect(await doubtsOf(of(live.replace('provider_id', 'retired: true, provider_id')))).toEqual([]);
  });

  it('gets no notifications if nothing verifies them', async () => {
    expect(await doubtsOf(SMALL)).toEqual([
      expect.stringMatching(/^connections\[0\]: one gets no notifications/),
    ]);
  });
});

it('a doubt has its place in the text', async () => {
  const text = change(
    'condition:',
    "description: a\n    condition: type == 'CARD'\n  - id: 2\n    condition:",
  );
  const doubts = await doubtsIn(
    parseCatalogue(text.replace('- id: 1\n', '- id: 1\n    targets: [{ connection: one }]\n'), 'test.yaml'),
  );
  expect(checkCatalogueText(SMALL).faults).toEqual([]);
  expect(placeFaults(text, doubts).map(({ line, path }) => `${line} ${path}`)).toContain('16 routes[1]');
});

it('the work is limited: what is left then counts as possible', async () => {
  const { holds, isSpent } = createJudge(1);
  const [one] = parseCatalogue(SMALL, 'test.yaml').routes;
  if (!one) throw new Error('no route');
  expect(holds(one, { country: 'BR' })).toBeUndefined();
  expect(holds(one, { type: 'PIX' })).toBe(false);
  expect(holds(one, { type: 'PIX', country: 'BR' })).toBe(false);
  expect(isSpent()).toBe(true);
  expect(holds(one, { type: 'CARD' })).toBeUndefined();
});

it('of a thousand routes and types, as many conditions are evaluated as the limit allows', () => {
  const types = Array.from({ length: 1_000 }, (_, i) => everywhereType(i));
  const around = { connections: new Map(), sandbox: true, hasAllSecrets: true };
  const judged = (condition: string) => {
    const some = Array.from({ length: 1_000 }, () => route(condition, 'one'));
    return findDoubts(parseCatalogue(catalogue(types, some), 'test.yaml'), around);
  };
  expect(judged("amount > 5 && country == 'BR'")).toHaveLength(1_000);
  // Too many conditions to evaluate.
  expect(judged("type != 'T1' && country == 'BR'")).toEqual([]);
});

const everywhereType = (i: number) =>
  `{ type: T${i}, category: CARD, workflows: [DIRECT], countries: [AR, BR, MX], currencies: [ARS, BRL, MXN, USD] }`;
