import { once } from 'node:events';
import { createServer, type RequestListener } from 'node:http';
import type { AddressInfo } from 'node:net';

/** A site other than the service, such as the merchant's shop. */
export type Site = { readonly url: string; close(): void };

const showShop: RequestListener = (_request, response) => {
  response.setHeader('content-type', 'text/html').end('<!doctype html><title>Shop</title>');
};

/** Starts a site on a free port. @param show shows the page; by default, it is a shop's page to which payers return. */
export async function startSite(show: RequestListener = showShop): Promise<Site> {
  const server = createServer(show).listen(0, '127.0.0.1');
  await once(server, 'listening');
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    close() {
      server.closeAllConnections();
      server.close();
    },
  };
}
