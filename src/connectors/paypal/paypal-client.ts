import { createHttpClient, type HttpClient, type HttpResult } from '#src/connectors/http-client.ts';
import { bodyOf } from '#src/connectors/provider-answer.ts';
import type { ProviderClient } from '#src/connectors/provider-client.ts';
import { Secret } from '#src/secret.ts';
import { createAccessTokens } from './access-token.ts';
import { isErrorBody } from './answers.ts';
import type { PayPalSettings } from './settings.ts';
import { type ApiRequest, httpRequest, type Send } from './to-provider.ts';

/** A connection's client. Each request gets an access token within its call's deadline. */
export type PayPalClient = ProviderClient<ApiRequest> & {
  /** Starts a call that verifies a notification. It uses no socket that a payment could need. */
  beginVerification(): Send;
};

const MAX_RESPONSE_BYTES = 512 * 1024;
/** Few, since anyone can post a forged notification. */
const MAX_VERIFICATIONS_IN_FLIGHT = 32;

/** Opens a client. */
export function openPayPalClient(settings: PayPalSettings, proxy?: Secret): PayPalClient {
  const { origin, timeoutMs } = settings;
  const limits = { origin, timeoutMs, maxResponseBytes: MAX_RESPONSE_BYTES, proxy };
  const client = createHttpClient(limits);
  const verifier = createHttpClient({ ...limits, maxInFlight: MAX_VERIFICATIONS_IN_FLIGHT });
  const tokens = createAccessTokens(client, settings);

  function beginAt(via: HttpClient): Send {
    const deadlineAtMs = performance.now() + timeoutMs;

    async function sendOnce(request: ApiRequest): Promise<{ result: HttpResult; token?: Secret }> {
      const token = await tokens.get(deadlineAtMs);
      if (!(token instanceof Secret)) return { result: { kind: 'not_sent', ...token } };
      return { result: await via.request({ ...httpRequest(request, token), deadlineAtMs }), token };
    }

    return async (request) => {
      const first = await sendOnce(request);
      if (!first.token || !isTokenRefused(first.result)) return first.result;
      // PayPal does not carry out a request with an unknown token, so it is sent once more with a new token.
      tokens.drop(first.token);
      return (await sendOnce(request)).result;
    };
  }

  return {
    begin: () => beginAt(client),
    beginVerification: () => beginAt(verifier),
    close: async () => {
      await Promise.all([client.close(), verifier.close()]);
    },
  };
}

/** Returns true if a response is an error in PayPal's own form that refuses the token. */
function isTokenRefused(result: HttpResult): boolean {
  const body = bodyOf(result, 401);
  return body !== undefined && isErrorBody(body);
}
