import { once } from 'node:events';
import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { buffer } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, vi } from 'vitest';
import { sandboxCatalogue } from './catalogues.ts';
import { onService, server } from './on-service.ts';
import { cardPayment, type RequestJson } from './payment-requests.ts';
import type { startTestServer } from './server.ts';

/** A proxy of the sandbox that can hold responses, so that a call stays in progress as long as a test needs. */
export type HeldProvider = {
  /** The sandbox's catalogue, with connections through this proxy and the longest allowed timeout. */
  readonly catalogue: string;
  /** Forwards calls to the sandbox of the service at `url`. */
  frontOf(url: string): void;
  /** Holds the responses to HELD payments from now on. @returns a function that releases them, and stops holding. */
  hold(): () => void;
  /**
   * Waits until this many responses have been held since `hold`; their payments have then been made at the provider.
   */
  hasHeld(count: number): Promise<void>;
  close(): Promise<void>;
};

const MARK = { merchant_reference: 'held' };
/** Marks a payment that the provider makes at once but responds to only while nothing is held. */
export const held = (request: RequestJson): RequestJson => ({ ...request, ...MARK });
export const HELD = held(cardPayment());

const PATH = '/sandbox';
const MAX_TIMEOUT_MS = 60_000;

/** The provider of the service under test. */
export let provider: HeldProvider;

/** Starts the service for a file's tests with a provider that can be held, and stops both after them. */
export function onHeldProvider(options: Parameters<typeof startTestServer>[0]): void {
  beforeAll(async () => {
    provider = await startHeldProvider();
  });
  afterAll(() => provider?.close());
  onService(() => ({ ...options, catalogue: provider.catalogue }));
  beforeAll(() => provider.frontOf(server.url));
}

/** Starts a proxy on its own port. */
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
      // The service behind it has stopped, or is still starting and looks up earlier payments.
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
