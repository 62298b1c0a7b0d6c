import { randomUUID } from 'node:crypto';
import { describe, expect, it } from 'vitest';
import { ONE, PUBLIC_ONE } from './calls.ts';
import { cardData, sentCard } from './checkout.ts';
import { call, checkout, onOwnServer, tables } from './own-server.ts';

const CARD = '4539578763621486';
const DECLINED_CARD = '4000000000000002';
/** Its answer is lost, and the look-up finds it approved. */
const LATE_CARD = '4000000000002008';
const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;
const MAX_TOKENS = 20;

onOwnServer();

/** The fingerprints that a response shows, without repetition. */
const fingerprints = (text: string) => [
  ...new Set([...text.matchAll(/"fingerprint":\s*"([^"]*)"/g)].map(([, value]) => value)),
];
const pay = (number: string, method: object = {}) =>
  call(
    'POST',
    '/v1/payments',
    {
      ...{ account_id: '11111111-1111-4111-8111-111111111111', merchant_order_id: 'order-1', country: 'US' },
      ...{ amount: { currency: 'USD', value: 10 }, payment_method: { ...sentCard(number), ...method } },
    },
    { ...ONE, 'x-idempotency-key': randomUUID() },
  );
const enroll = (customer: string) =>
  call('POST', `/v1/customers/${customer}/payment-methods`, { card_data: cardData(CARD), country: 'US' });

describe('card fingerprints', () => {
  it('the public key reads only brand, last four digits and expiry of a stored card', async () => {
    const customer = await checkout.customer();
    await enroll(customer);
    const session = await checkout.openSession({ customer_id: customer });
    const listed = await call(
      'GET',
      `/v1/checkout/sessions/${session}/payment-methods`,
      undefined,
      PUBLIC_ONE,
    );
    const stored = listed.json.filter(({ vaulted_token }: { vaulted_token: string }) => vaulted_token !== '');
    expect(stored.map(({ card_data }: { card_data: object }) => card_data)).toEqual([
      { brand: 'VISA', lfd: CARD.slice(-4), expiration_month: 12, expiration_year: 30 },
    ]);
    expect(listed.text).not.toContain(CARD.slice(0, 6));
  });

  it('no token call returns a fingerprint, with either key', async () => {
    const session = await checkout.openSession();
    const path = `/v1/checkout/sessions/${session}/token`;
    for (const headers of [PUBLIC_ONE, ONE]) {
      const made = await call('POST', path, { card_data: cardData(CARD) }, headers);
      expect([made.status, fingerprints(made.text)]).toEqual([201, ['']]);
    }
    const made = await call('POST', '/v1/tokens', { card_data: cardData(CARD) });
    expect([made.status, fingerprints(made.text)]).toEqual([201, ['']]);
  });

  it('a session gives at most 20 tokens, however many calls arrive at once, and can still be paid', async () => {
    const session = await checkout.openSession();
    const path = `/v1/checkout/sessions/${session}/token`;
    const key = { ...PUBLIC_ONE, 'x-idempotency-key': randomUUID() };
    const first = await call('POST', path, { card_data: cardData(CARD) }, key);
    const made = await Promise.all(
      Array.from({ length: MAX_TOKENS + 5 }, () =>
        call('POST', path, { card_data: cardData(CARD) }, PUBLIC_ONE),
      ),
    );
    const refused = made.filter(({ status }) => status !== 201);
    expect(refused.length).toBe(6);
    for (const { status, json } of refused) {
      expect([status, json.code]).toEqual([404, 'CHECKOUT_SESSION_NOT_FOUND']);
      expect(json.detail).toContain('has had 20 tokens, the maximum');
    }
    const again = await call('POST', path, { card_data: cardData(CARD) }, key);
    expect([again.status, again.json]).toEqual([201, first.json]);
    expect((await checkout.payAsBrowser(session, { token: first.json.token })).json.status).toBe('SUCCEEDED');
  });

  it('a record shows the fingerprint of a card that its provider approved, and none of a declined card', async () => {
    const [approved, again] = [await pay(CARD), await pay(CARD)];
    expect(fingerprints(approved.text)).toEqual([expect.stringMatching(UUID)]);
    expect(fingerprints(again.text)).toEqual(fingerprints(approved.text));
    expect(fingerprints((await pay(DECLINED_CARD)).text)).toEqual(['']);
    const session = await checkout.openSession();
    const byToken = await checkout.pay(session, { token: await checkout.token(session, CARD) });
    expect(fingerprints(byToken.text)).toEqual(fingerprints(approved.text));
  });

  it('a record shows the fingerprint once a lost approval is found', async () => {
    const { json, text } = await pay(LATE_CARD);
    expect([json.status, fingerprints(text)]).toEqual(['PENDING', ['']]);
    const read = () => call('GET', `/v1/payments/${json.id}`);
    await expect.poll(async () => (await read()).json.status, { timeout: 15_000 }).toBe('SUCCEEDED');
    expect(fingerprints((await read()).text)).toEqual([expect.stringMatching(UUID)]);
  });

  it('a stored card shows its fingerprint once a payment with it is approved', async () => {
    const customer = await checkout.customer();
    const enrolled = await enroll(customer);
    expect(fingerprints(enrolled.text)).toEqual(['']);
    const vaulted = { type: 'CARD', vaulted_token: enrolled.json.id, detail: undefined };
    const paid = await pay(CARD, vaulted);
    expect(fingerprints(paid.text)).toEqual([expect.stringMatching(UUID)]);
    const read = await call('GET', `/v1/customers/${customer}/payment-methods/${enrolled.json.id}`);
    expect(fingerprints(read.text)).toEqual(fingerprints(paid.text));
    const events = await tables.query(
      "SELECT count(*)::integer AS known FROM vaulted_token WHERE id = $1 AND position(fingerprint::text IN encode(card, 'escape')) > 0",
      [enrolled.json.id],
    );
    expect(events).toEqual([{ known: 0 }]);
  });
});
