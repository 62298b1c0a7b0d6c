import { Secret } from '#src/secret.ts';
import { createHttpClient, type HttpClient, type HttpResult } from '../kit/http-client.ts';
import { bodyOf, fields, numberOf, textLike } from '../kit/provider-answer.ts';
import type { ProviderClient } from '../kit/provider-client.ts';
import { isErrorBody } from './answers.ts';
import type { PayPalSettings } from './settings.ts';
import { type ApiRequest, httpRequest, type Send } from './to-provider.ts';

/** A connection's client. Each request gets an access token within its call's deadline. */
type PayPalClient = ProviderClient<ApiRequest> & {
  /** Starts a call that verifies a notification. It uses no socket that a payment could need. */
  beginVerification(): Send;
  /** Starts a call that asks for the account. */
  beginAccount(): {
    /** Asks for an access token, whatever the client has. The token is used from now on. */
    renewToken(): Promise<RenewedToken>;
    readonly send: Send;
  };
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

  const deadlineFromNow = () => performance.now() + timeoutMs;

  function beginAt(via: HttpClient, deadlineAtMs = deadlineFromNow()): Send {
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
    beginAccount() {
      const deadlineAtMs = deadlineFromNow();
      return { renewToken: () => tokens.renew(deadlineAtMs), send: beginAt(client, deadlineAtMs) };
    },
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

/** Reason why there is no token. No business call was sent. */
type NoToken = { readonly because: 'unreachable' | 'turned_away'; readonly detail: string };

/** The answer to a request for a token, with the token in it. */
type RenewedToken = { readonly result: HttpResult; readonly token: Secret | NoToken };

/** The access token of a connection. */
type AccessTokens = {
  /** Returns the token, cached while valid. Never throws. Concurrent callers share one request to PayPal. */
  get(deadlineAtMs: number): Promise<Secret | NoToken>;
  /** Asks PayPal for a token, which replaces the cached one. Never throws. */
  renew(deadlineAtMs: number): Promise<RenewedToken>;
  /** Forgets a token that PayPal refused. */
  drop(token: Secret): void;
};

const TOKEN = /^[\x21-\x7e]{1,8192}$/;
/** A token is renewed when a tenth of its lifetime is left, and after 8 hours at the latest. */
const RENEWED_AT = 0.9;
const MAX_LIFE_S = 8 * 3_600;

/** Creates the cache of a connection's access token. */
export function createAccessTokens(
  client: Pick<HttpClient, 'request'>,
  { clientId, clientSecret }: Pick<PayPalSettings, 'clientId' | 'clientSecret'>,
): AccessTokens {
  let cached: { readonly token: Secret; readonly untilMs: number } | undefined;
  let asking: Promise<RenewedToken> | undefined;

  async function renew(deadlineAtMs: number): Promise<RenewedToken> {
    const askedAtMs = performance.now();
    const credentials = Buffer.from(`${clientId.reveal()}:${clientSecret.reveal()}`).toString('base64');
    const result = await client.request({
      method: 'POST',
      path: '/v1/oauth2/token',
      headers: {
        authorization: `Basic ${credentials}`,
        'content-type': 'application/x-www-form-urlencoded',
        accept: 'application/json',
      },
      body: 'grant_type=client_credentials',
      deadlineAtMs,
    });
    const read = readToken(result);
    if ('because' in read) return { result, token: read };
    const { token, lifeS } = read;
    cached = { token, untilMs: askedAtMs + Math.min(lifeS, MAX_LIFE_S) * RENEWED_AT * 1_000 };
    return { result, token };
  }

  return {
    async get(deadlineAtMs) {
      if (cached && performance.now() < cached.untilMs) return cached.token;
      asking ??= renew(deadlineAtMs).finally(() => {
        asking = undefined;
      });
      return (await asking).token;
    },
    renew,
    drop(token) {
      if (cached?.token === token) cached = undefined;
    },
  };
}

const readGrant = fields({
  access_token: textLike(TOKEN),
  token_type: textLike(/^bearer$/i),
  expires_in: numberOf,
});

function readToken(result: HttpResult): { readonly token: Secret; readonly lifeS: number } | NoToken {
  const { access_token: token, token_type: type, expires_in: lifeS = 0 } = readGrant(bodyOf(result));
  if (token !== undefined && type !== undefined && lifeS > 0) {
    return { token: new Secret(token), lifeS };
  }
  const fault = result.kind === 'answer' ? `the provider responded ${result.status}` : result.detail;
  const because = result.kind === 'not_sent' ? result.because : 'unreachable';
  return { because, detail: `no access token: ${fault}` };
}
