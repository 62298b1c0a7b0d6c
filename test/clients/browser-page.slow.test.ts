import { createReadStream } from 'node:fs';
import type { RequestListener } from 'node:http';
import { join } from 'node:path';
import type { Browser, Page } from 'puppeteer-core';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { type Call, restCalls } from '../customers/calls.ts';
import { cardData, checkoutCalls } from '../customers/checkout.ts';
import { startBrowser } from '../support/browser.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { type Site, startSite } from '../support/site.ts';

/*
 * A shop's page on its own origin in a real browser, which enforces the service's CORS headers. The page loads
 * Connect's browser client and the generated code as npm delivers them, through an import map instead of a bundler.
 */
const ROOT = join(import.meta.dirname, '../..');
const PUBLIC_KEY = 'pk_sandbox_one';
const [CONNECT, PROTOBUF] = ['/node_modules/@connectrpc', '/node_modules/@bufbuild/protobuf/dist/esm'];
const IMPORTS = {
  '@connectrpc/connect-web': `${CONNECT}/connect-web/dist/esm/index.js`,
  '@connectrpc/connect': `${CONNECT}/connect/dist/esm/index.js`,
  '@connectrpc/connect/protocol': `${CONNECT}/connect/dist/esm/protocol/index.js`,
  '@connectrpc/connect/protocol-connect': `${CONNECT}/connect/dist/esm/protocol-connect/index.js`,
  '@connectrpc/connect/protocol-grpc-web': `${CONNECT}/connect/dist/esm/protocol-grpc-web/index.js`,
  '@bufbuild/protobuf': `${PROTOBUF}/index.js`,
  '@bufbuild/protobuf/codegenv2': `${PROTOBUF}/codegenv2/index.js`,
  '@bufbuild/protobuf/wire': `${PROTOBUF}/wire/index.js`,
  '@bufbuild/protobuf/wkt': `${PROTOBUF}/wkt/index.js`,
  '@bufbuild/protobuf/reflect': `${PROTOBUF}/reflect/index.js`,
};
/** The page's code: tokenizes a card and pays a session with the token. */
const SCRIPT = `
  import { createClient } from '@connectrpc/connect';
  import { createConnectTransport, createGrpcWebTransport } from '@connectrpc/connect-web';
  import { TokenService } from '/gen/payments/v1/token_service_pb.js';
  import { Payment_Status } from '/gen/payments/v1/payment_pb.js';
  import { CheckoutService } from '/gen/payments/v1/checkout_service_pb.js';
  window.pay = async ({ protocol, baseUrl, publicKey, checkoutSession, cardData }) => {
    const transport = (protocol === 'Connect' ? createConnectTransport : createGrpcWebTransport)({ baseUrl });
    const headers = { 'public-api-key': publicKey };
    const withKey = { ...headers, 'x-idempotency-key': crypto.randomUUID() };
    const { token } = await createClient(TokenService, transport)
      .createCheckoutToken({ checkoutSession, cardData }, { headers });
    const { status } = await createClient(CheckoutService, transport)
      .createCheckoutPayment({ checkoutSession, paymentMethod: { token } }, { headers: withKey });
    return Payment_Status[status];
  };`;
const PAGE = `<!doctype html><title>Shop</title>
  <script type="importmap">${JSON.stringify({ imports: IMPORTS })}</script>
  <script type="module">${SCRIPT}</script>`;

const showPage: RequestListener = (request, response) => {
  if (request.url === '/') {
    response.setHeader('content-type', 'text/html').end(PAGE);
    return;
  }
  response.setHeader('content-type', 'text/javascript');
  createReadStream(join(ROOT, request.url ?? ''))
    .on('error', () => response.writeHead(404).end())
    .pipe(response);
};
let shop: Site;
let browser: Browser;
let call: Call;

onService();
beforeAll(async () => {
  shop = await startSite(showPage);
  browser = await startBrowser();
  await tables.query(
    `UPDATE account SET allowed_origins = '{${shop.url}}' WHERE id = '11111111-1111-4111-8111-111111111111'`,
  );
  call = restCalls(server.url);
});
afterAll(async () => {
  await browser?.close();
  shop?.close();
});

type Protocol = 'Connect' | 'gRPC-Web';

/** Makes the page pay a session. @returns the status in the response, or the error. */
function payOn(page: Page, protocol: Protocol, checkoutSession: string): Promise<string> {
  const { number, expiration_month, expiration_year, security_code, holder_name } = cardData();
  const cardInput = {
    number,
    expirationMonth: expiration_month,
    expirationYear: expiration_year,
    securityCode: security_code,
    holderName: holder_name,
  };
  const input = {
    protocol,
    checkoutSession,
    baseUrl: server.url,
    publicKey: PUBLIC_KEY,
    cardData: cardInput,
  };
  return page.evaluate(`window.pay(${JSON.stringify(input)}).catch(String)`) as Promise<string>;
}

describe.each(['Connect', 'gRPC-Web'] as const)('a shop’s page in %s', (protocol) => {
  it('a page can tokenize a card and pay a session only from an origin that the account allows', async () => {
    const page = await browser.newPage();
    const session = await checkoutCalls(call).openSession();
    await page.goto(shop.url.replace('127.0.0.1', 'localhost'));
    expect(await payOn(page, protocol, session)).toContain(
      'the account does not allow calls from pages of this origin',
    );
    await page.goto(shop.url);
    expect(await payOn(page, protocol, session)).toBe('SUCCEEDED');
    const { json } = await call('GET', `/v1/checkout/sessions/${session}/payment`);
    expect(json.status).toBe('SUCCEEDED');
    await page.close();
  });
});
