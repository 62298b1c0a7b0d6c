import type { Secret } from '#src/secret.ts';
import type { ProviderConnection } from './connector.ts';
import {
  createHttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpResult,
} from './http-client.ts';

/** Sends one request of a call, within the call's deadline. */
export type SendTarget<Target> = (target: Target) => Promise<HttpResult>;

/** An HTTP client for a connector, whose targets are its requests without their credentials. */
export type ProviderClient<Target> = {
  /** Begins a call: all its requests share one deadline. */
  begin(): SendTarget<Target>;
  /** Waits for requests in flight, then closes every socket. */
  close(): Promise<void>;
};

/** Names under which the record shows a connection's answers. */
export type ShownAs = { readonly providerId: string; readonly accountId: string | undefined };

/** All that one call of a connection needs. */
export type ProviderCall<Target, Settings> = {
  readonly send: SendTarget<Target>;
  readonly settings: Settings;
  readonly shownAs: ShownAs;
};

/**
 * Names the account at a provider: by its address and id; without an id, by the credential.
 *
 * @param address where it is: an origin, and what else tells accounts with the same id apart.
 */
export function accountAt(
  address: readonly string[],
  accountId: string | undefined,
  credential: Secret,
): Pick<ProviderConnection, 'identity' | 'accountNamedBy'> {
  return {
    identity: [...address, accountId ?? ''].join(' '),
    accountNamedBy: accountId === undefined ? credential : undefined,
  };
}

const MAX_RESPONSE_BYTES = 256 * 1024;
const MAX_CONNECTIONS = 64;

/** Opens a client. @param toRequest adds what every request carries: it may reveal a secret. */
export function openProviderClient<Target>(
  options: Pick<HttpClientOptions, 'origin' | 'timeoutMs'> & Partial<HttpClientOptions>,
  toRequest: (target: Target) => HttpRequest,
): ProviderClient<Target> {
  const limits = { maxResponseBytes: MAX_RESPONSE_BYTES, maxConnections: MAX_CONNECTIONS };
  const client = createHttpClient({ ...limits, ...options });
  return {
    begin() {
      const deadlineAtMs = performance.now() + options.timeoutMs;
      return (target) => client.request({ ...toRequest(target), deadlineAtMs });
    },
    close: () => client.close(),
  };
}
