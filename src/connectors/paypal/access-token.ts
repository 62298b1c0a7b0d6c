import type { HttpClient, HttpResult } from '#src/connectors/http-client.ts';
import { bodyOf, fields, numberOf, textLike } from '#src/connectors/provider-answer.ts';
import { Secret } from '#src/secret.ts';
import type { PayPalSettings } from './settings.ts';

/** Reason why there is no token. No business call was sent. */
export type NoToken = { readonly because: 'unreachable' | 'turned_away'; readonly detail: string };

/** The access token of a connection. */
export type AccessTokens = {
  /** Returns the token, cached while valid. Never throws. Concurrent callers share one request to PayPal. */
  get(deadlineAtMs: number): Promise<Secret | NoToken>;
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
  let asking: Promise<Secret | NoToken> | undefined;

  async function ask(deadlineAtMs: number): Promise<Secret | NoToken> {
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
    if ('because' in read) return read;
    cached = {
      token: read.token,
      untilMs: askedAtMs + Math.min(read.lifeS, MAX_LIFE_S) * RENEWED_AT * 1_000,
    };
    return read.token;
  }

  return {
    async get(deadlineAtMs) {
      if (cached && performance.now() < cached.untilMs) return cached.token;
      asking ??= ask(deadlineAtMs).finally(() => {
        asking = undefined;
      });
      return asking;
    },
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
