import { afterEach, describe, expect, it, vi } from 'vitest';
import type { HttpResult } from '#src/connectors/kit/http-client.ts';
import { createAccessTokens } from '#src/connectors/paypal/paypal-client.ts';
import { Secret } from '#src/secret.ts';
import { SECRETS } from './paypal-under-test.ts';

const HOUR_S = 3_600;
const GRANT = { access_token: 'A21AA', token_type: 'Bearer', expires_in: 9 * HOUR_S };

afterEach(() => void vi.restoreAllMocks());

function answer(body: object, status = 200): HttpResult {
  return { kind: 'answer', status, headers: {}, body: Buffer.from(JSON.stringify(body)) };
}

/** Access tokens from a PayPal that answers every request in the same way, on a clock that stands still. */
function tokensFrom(result: HttpResult) {
  let asked = 0;
  let nowS = 1_000;
  vi.spyOn(performance, 'now').mockImplementation(() => nowS * 1_000);
  const request = async () => {
    asked += 1;
    return result;
  };
  const tokens = createAccessTokens(
    { request },
    { clientId: SECRETS.client_id, clientSecret: SECRETS.client_secret },
  );
  return {
    get: () => tokens.get(Number.POSITIVE_INFINITY),
    drop: tokens.drop,
    asked: () => asked,
    wait: (seconds: number) => {
      nowS = 1_000 + seconds;
    },
  };
}

describe("the lifetime of PayPal's access token", () => {
  it.each([
    ['a tenth of its lifetime is left', 1_000, 900],
    ['a tenth of eight hours is left, however long it lives', 90 * HOUR_S, 0.9 * 8 * HOUR_S],
  ])("PayPal's access token is used until %s, and then requested again", async (_when, expires_in, lifeS) => {
    const { get, asked, wait } = tokensFrom(answer({ ...GRANT, expires_in }));
    const first = await get();
    expect(first).toEqual(new Secret('A21AA'));
    wait(lifeS - 1);
    expect(await get()).toBe(first);
    expect(asked()).toBe(1);
    wait(lifeS);
    expect(await get()).not.toBe(first);
    expect(asked()).toBe(2);
  });

  it("PayPal's access token is requested again once dropped, but not for a token dropped earlier", async () => {
    const { get, drop, asked } = tokensFrom(answer(GRANT));
    const first = await get();
    if (!(first instanceof Secret)) throw new Error('no token');
    drop(first);
    const second = await get();
    drop(first);
    expect(await get()).toBe(second);
    expect(asked()).toBe(2);
  });
});

describe("responses without an access token of PayPal's", () => {
  it.each<[string, HttpResult]>([
    ['no token', answer({ ...GRANT, access_token: undefined })],
    ['an empty token', answer({ ...GRANT, access_token: '' })],
    ['a token that would end its header', answer({ ...GRANT, access_token: 'A21AA\r\nx: y' })],
    ['another kind of token', answer({ ...GRANT, token_type: 'MAC' })],
    ['a kind that only contains the right one', answer({ ...GRANT, token_type: 'not Bearer' })],
    ['no lifetime', answer({ ...GRANT, expires_in: undefined })],
    ['a lifetime that is over', answer({ ...GRANT, expires_in: 0 })],
    ['an error status', answer(GRANT, 401)],
    ['no response', { kind: 'unknown', detail: 'awaiting the response: DEADLINE' }],
  ])(
    "a response of PayPal's gives no access token if it has %s, and the next call asks again",
    async (_, result) => {
      const { get, asked } = tokensFrom(result);
      for (const times of [1, 2]) {
        expect(await get()).toMatchObject({ because: 'unreachable' });
        expect(asked()).toBe(times);
      }
    },
  );

  it("a request for PayPal's access token that our own limit turned away does not count against PayPal", async () => {
    const { get } = tokensFrom({ kind: 'not_sent', detail: 'before sending: X', because: 'turned_away' });
    expect(await get()).toMatchObject({ because: 'turned_away' });
  });
});
