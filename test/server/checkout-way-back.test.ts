import { expect, it } from 'vitest';
import { TERMS } from '../customers/checkout.ts';
import { onService, server } from '../support/on-service.ts';
import { headersOne } from '../support/payment-requests.ts';

onService();

it.each([
  ['a link back to the shop', 'https://shop.example/back?a=1&b=2', ['https://shop.example/back?a=1&#38;b=2']],
  ['no link, if the session has no callback_url', '', []],
])('the checkout page shows %s before the payer pays', async (_what, callbackUrl, links) => {
  const response = await fetch(`${server.url}/v1/checkout/sessions`, {
    method: 'POST',
    headers: { ...headersOne(), 'content-type': 'application/json' },
    body: JSON.stringify({ ...TERMS, callback_url: callbackUrl }),
  });
  const { checkout_session: session } = (await response.json()) as { checkout_session: string };
  const page = await (await fetch(`${server.url}/checkout/${session}?lang=en`)).text();
  const found = [...page.matchAll(/<a href="([^"]*)">Back to the shop<\/a><\/p><\/form>/g)];
  expect(found.map(([, href]) => href)).toEqual(links);
});
