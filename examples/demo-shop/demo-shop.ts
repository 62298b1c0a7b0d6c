import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import { escapeHtml } from '#src/web/html.ts';

/** Settings of the demo shop. */
export type DemoShop = {
  /** URL of the service. */
  readonly service: string;
  readonly accountId: string;
  readonly publicKey: string;
  readonly secretKey: string;
};

/** Prices in cents. */
const GOODS = [
  { id: 'coffee', name: 'Coffee beans, 1 kg', cents: 2450 },
  { id: 'cup', name: 'Stoneware cup', cents: 1800 },
  { id: 'grinder', name: 'Hand grinder', cents: 7900 },
] as const;
const MAX_QUANTITY = 9;

/** Countries to which the shop delivers, with their currencies and the exchange rates for the prices. */
const COUNTRIES = {
  US: { name: 'United States', currency: 'USD', rate: 1 },
  BR: { name: 'Brazil', currency: 'BRL', rate: 5 },
  MX: { name: 'Mexico', currency: 'MXN', rate: 18 },
  CO: { name: 'Colombia', currency: 'COP', rate: 4000 },
} as const;

type Country = keyof typeof COUNTRIES;

/**
 * Creates a tiny shop as a merchant would write it. It opens a checkout session for a cart, sends the payer to the
 * checkout page, and reads the payment's status from the service when the payer returns. No card number passes through
 * the shop.
 */
export function createDemoShop(settings: DemoShop): FastifyInstance {
  const app = Fastify();
  /** Open orders by number. A real shop stores them. */
  const orders = new Map<string, Money>();
  app.addContentTypeParser(
    'application/x-www-form-urlencoded',
    { parseAs: 'string', bodyLimit: 10_000 },
    async (_request: unknown, body: string) => new URLSearchParams(body),
  );
  app.addHook('onRequest', async (_request, reply) => {
    reply.headers({
      'content-security-policy': `default-src 'none'; style-src 'unsafe-inline'; form-action 'self' ${new URL(settings.service).origin}`,
      'cache-control': 'no-store',
    });
    reply.type('text/html; charset=utf-8');
  });
  app.setErrorHandler((error: Error, _request, reply) =>
    reply.code(502).send(page('Something went wrong', `<p>${escapeHtml(error.message)}</p>${AGAIN}`)),
  );

  app.get('/', (_request, reply) => reply.send(page('The demo shop', CART)));

  app.post('/buy', async (request, reply) => {
    const form = request.body as URLSearchParams;
    const cart = GOODS.map((one) => ({ ...one, count: countOf(form.get(one.id)) })).filter(
      ({ count }) => count,
    );
    if (cart.length === 0) return reply.redirect('/', 303);
    const country = Object.hasOwn(COUNTRIES, form.get('country') ?? '')
      ? (form.get('country') as Country)
      : 'US';
    const { currency, rate } = COUNTRIES[country];
    const cents = cart.reduce((sum, one) => sum + one.cents * one.count, 0) * rate;
    const order = `demo-${randomUUID().slice(0, 8)}`;
    const amount = { currency, value: cents / 100 };
    if (orders.size >= MAX_ORDERS) orders.clear();
    orders.set(order, amount);
    const session = await call<{ checkout_session: string }>(settings, '/v1/checkout/sessions', {
      account_id: settings.accountId,
      merchant_order_id: order,
      payment_description: cart.map(({ name, count }) => `${count} × ${name}`).join(', '),
      country,
      amount,
      customer_id: await customerOf(settings),
      callback_url: `${request.protocol}://${request.host}/done`,
    });
    return reply.redirect(`${settings.service}/checkout/${session.checkout_session}`, 303);
  });

  // The URL is only a hint; the service knows the status.
  app.get<{ Querystring: { payment_id?: string } }>('/done', async (request, reply) => {
    const id = request.query.payment_id ?? '';
    const payment = await call<Paid>(settings, `/v1/payments/${encodeURIComponent(id)}`);
    const { merchant_order_id: order, status, sub_status: subStatus, amount } = payment;
    const isPaid = status === 'SUCCEEDED' && isSameMoney(amount, orders.get(order));
    const awaits = status === 'READY_TO_PAY' ? 'Your order awaits your payment' : 'Your order is not paid';
    const title = isPaid ? 'Thank you for your order' : awaits;
    const text = `Order ${order}: ${amount.value.toFixed(2)} ${amount.currency}, ${status}/${subStatus}.`;
    return reply.send(
      page(title, `<p>${escapeHtml(text)}</p><p>Payment <code>${escapeHtml(payment.id)}</code></p>${AGAIN}`),
    );
  });
  return app;
}

type Paid = {
  readonly id: string;
  readonly merchant_order_id: string;
  readonly status: string;
  readonly sub_status: string;
  readonly amount: Money;
};

type Money = { readonly currency: string; readonly value: number };

const MAX_ORDERS = 1_000;

/** A payment counts only if it has the amount of its order: anyone could make one of 0.01 that names the order. */
function isSameMoney(paid: Money, owed: Money | undefined): boolean {
  return paid.currency === owed?.currency && paid.value === owed.value;
}

function countOf(text: string | null): number {
  const count = Number(text);
  return Number.isInteger(count) && count > 0 && count <= MAX_QUANTITY ? count : 0;
}

const CUSTOMER = {
  merchant_customer_id: 'demo-shop-ana',
  first_name: 'Ana',
  last_name: 'Gómez',
  email: 'ana@example.com',
};

/** Returns the id of the shop's only customer, which is created on the first visit. */
async function customerOf(settings: DemoShop): Promise<string> {
  const path = `/v1/customers?merchant_customer_id=${CUSTOMER.merchant_customer_id}`;
  const { id } = await call<{ id: string }>(settings, path).catch(() =>
    call<{ id: string }>(settings, '/v1/customers', CUSTOMER),
  );
  return id;
}

async function call<T>({ service, publicKey, secretKey }: DemoShop, path: string, body?: object): Promise<T> {
  const response = await fetch(service + path, {
    method: body ? 'POST' : 'GET',
    headers: {
      'public-api-key': publicKey,
      'private-secret-key': secretKey,
      ...(body && { 'content-type': 'application/json' }),
    },
    ...(body && { body: JSON.stringify(body) }),
  });
  const json = (await response.json()) as T & { readonly detail?: string };
  if (!response.ok) throw new Error(json.detail ?? `the service responded with ${response.status}`);
  return json;
}

const AGAIN = '<p><a href="/">Back to the shop</a></p>';
const CART = `<form method="post" action="/buy">
<table>${GOODS.map(({ id, name, cents }, i) => `<tr><th scope="row"><label for="${id}">${name}</label></th><td>${(cents / 100).toFixed(2)}</td><td><input id="${id}" name="${id}" type="number" min="0" max="${MAX_QUANTITY}" value="${i < 2 ? 1 : 0}"></td></tr>`).join('')}</table>
<p><label>Deliver to <select name="country">${Object.entries(COUNTRIES)
  .map(([code, { name, currency }]) => `<option value="${code}">${name} (${currency})</option>`)
  .join('')}</select></label></p>
<button>Check out</button></form>
<h2>Cards to pay with</h2>
<p>No money moves here. Any future date and any security code will do.</p>
<table><tr><td><code>4111 1111 1111 1111</code></td><td>approved</td></tr>
<tr><td><code>4000 0000 0000 9995</code></td><td>declined, insufficient funds</td></tr>
<tr><td><code>4000 0000 0000 3105</code></td><td>asks for 3-D Secure</td></tr></table>
<h2>Other ways to pay</h2>
<p>Carts for Brazil can be paid with Pix or a boleto, those for Mexico with SPEI or OXXO, and those for Colombia with PSE or Efecty. The page with the code links to the simulated provider’s page, where you can pay the code or let it expire.</p>`;

const STYLE = `:root { color-scheme: light dark; font: 16px/1.5 system-ui, sans-serif; }
body { max-width: 32rem; margin: 0 auto; padding: 2rem 1rem; }
h2 { margin-top: 2.5rem; font-size: 1.1rem; }
table { width: 100%; border-collapse: collapse; }
th, td { padding: .5rem 0; text-align: left; font-weight: 400; border-bottom: 1px solid light-dark(#d9dce3, #3b404b); }
td:last-child { text-align: right; }
input, select { font: inherit; padding: .35rem; }
input[type=number] { width: 4rem; }
button { width: 100%; padding: .8rem; border: 0; border-radius: .5rem; font: inherit; font-weight: 600; color: #fff; background: #7a3e1d; cursor: pointer; }`;

function page(title: string, content: string): string {
  return `<!doctype html><html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width, initial-scale=1"><title>${escapeHtml(title)}</title><style>${STYLE}</style></head><body><h1>${escapeHtml(title)}</h1>${content}</body></html>`;
}
