import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { sandboxCatalogue } from './catalogues.ts';
import { onService, server } from './on-service.ts';
import { cardPayment, type RequestJson } from './payment-requests.ts';
import type { startTestServer } from './server.ts';

/** A front of the sandbox that can keep answers back: a call is under way for as long as a test wants it to be. */
export type HeldProvider = {
  /** The sandbox's catalogue, with connections that go by this front and wait for it as long as any may. */
  readonly catalogue: string;
  /** Has it pass calls on to the sandbox of the service at `url`. */
  frontOf(url: string): void;
  /** Keeps back the answers to HELD payments from now on. @returns a function that gives them, and later ones at once. */
  hold(): () => void;
  /** Waits until so many answers have been kept back since `hold`, of payments that are made at the provider. */
  hasHeld(count: number): Promise<void>;
  close(): Promise<void>;
};

const MARK = { merchant_reference: 'held' };
/** Makes a payment one that the provider makes at once, and answers only when nothing is held. */
export const held = (request: RequestJson): RequestJson => ({ ...request, ...MARK });
export const HELD = held(cardPayment());

const PATH = '/sandbox';
const MAX_TIMEOUT_MS = 60_000;

/** The provider of the service that a file's tests call. */
export let provider: HeldProvider;

/** Starts the service for a file's tests, with a provider that can be held, and ends both after them. */
export function onHeldProvider(options: Parameters<typeof startTestServer>[0]): void {
  beforeAll(async () => {
    provider = await startHeldProvider();
  });
  afterAll(() => provider?.close());
  onService(() => ({ ...options, catalogue: provider.catalogue }));
  beforeAll(() => provider.frontOf(server.url));
}

/** Starts a front on a port of its own. */
export async function startHeldProvider(): Promise<HeldProvider> {
  let origin = '';
  let free = Promise.resolve();
  let held = 0;
  const front = http.createServer(async (request, response) => {
    const body = await buffer(request);
    const { method, headers, url } = request;
    try {
      const passed = http.request(`${origin}${url}`, { method, headers }).end(body);
      const [answer] = (await once(passed, 'response')) as [http.IncomingMessage];
      const bytes = await buffer(answer);
      if (body.includes(`"${MARK.merchant_reference}"`)) {
        held += 1;
        await free;
      }
      response.writeHead(answer.statusCode ?? 0, answer.headers).end(bytes);
    } catch {
      // The service behind it was ended, or is only being started and asks about earlier payments.
      response.destroy();
    }
  });
  await new Promise<void>((resolve) => front.listen(0, '127.0.0.1', resolve));
  const { port } = front.address() as AddressInfo;
  return {
    catalogue: sandboxCatalogue(MAX_TIMEOUT_MS).replaceAll('$SANDBOX_URL', `http://127.0.0.1:${port}${PATH}`),
    frontOf(url) {
      origin = url;
    },
    hold() {
      const given = Promise.withResolvers<void>();
      free = given.promise;
      held = 0;
      return given.resolve;
    },
    hasHeld: (count) => vi.waitFor(() => expect(held).toBeGreaterThanOrEqual(count)),
    close: () =>
      new Promise<void>((resolve) => {
        front.close(() => resolve());
        front.closeAllConnections();
      }),
  };
}
