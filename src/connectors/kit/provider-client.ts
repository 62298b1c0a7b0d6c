import type { Secret } from '#src/secret.ts';
import type { ProviderConnection } from '../port/connector.ts';
import {
  createHttpClient,
  type HttpClientOptions,
  type HttpRequest,
  type HttpResult,
} from './http-client.ts';

/** Sends one request of a call, within the call's deadline. */
export type SendTarget<Target> = (target: Target) => Promise<HttpResult>;

/** An HTTP client for a connector. A target is a request without credentials; the client adds them. */
export type ProviderClient<Target> = {
  /** Starts a call: all its requests share one deadline. */
  begin(): SendTarget<Target>;
  /** Waits for requests in flight, then closes every socket. */
  close(): Promise<void>;
};

/** Names under which the record shows a connection's responses. */
export type ShownAs = { readonly providerId: string; readonly accountId: string | undefined };

/** Everything that one call of a connection needs. */
export type ProviderCall<Target, Settings> = {
  readonly send: SendTarget<Target>;
  readonly settings: Settings;
  readonly shownAs: ShownAs;
};

/**
 * Identifies the account at a provider by address and id or, without an id, by the credential.
 *
 * @param address an origin, and whatever else distinguishes accounts with the same id.
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

/** Opens a client. @param toRequest adds the parts common to every request, including any secret. */
export function openProviderClient<Target>(
  options: Pick<HttpClientOptions, 'origin' | 'timeoutMs'> & Partial<HttpClientOptions>,
  toRequest: (target: Target) => HttpRequest,
): ProviderClient<Target> {
  const client = createHttpClient({ maxResponseBytes: MAX_RESPONSE_BYTES, ...options });
  return {
    begin() {
      const deadlineAtMs = performance.now() + options.timeoutMs;
      return (target) => client.request({ ...toRequest(target), deadlineAtMs });
    },
    close: () => client.close(),
  };
}
