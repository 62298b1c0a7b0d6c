import { randomUUID } from 'node:crypto';
import { beforeAll, describe, expect, it } from 'vitest';
import type { PublicKeyMay } from '#src/store/tables/accounts.ts';
import { type Call, restCalls } from '../customers/calls.ts';
import { checkoutCalls, sentCard, TERMS } from '../customers/checkout.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, walletPayment } from '../support/payment-requests.ts';

onService();

let call: Call;
let nth = 0;
beforeAll(() => {
  call = restCalls(server.url);
});

/** Sets what the public key may do. @returns a new public key, because the service caches the settings of known ones. */
async function allow(may: PublicKeyMay): Promise<Record<string, string>> {
  const key = `pk_may_${nth++}`;
  await tables.query('UPDATE account SET public_key_may = $2 WHERE id = $1', [ACCOUNT_ONE, may]);
  await tables.query('INSERT INTO public_key (public_key, account_id) VALUES ($1, $2)', [key, ACCOUNT_ONE]);
  return { 'public-api-key': key };
}
const pay = (headers: Record<string, string>, change: object = {}) =>
  call(
    'POST',
    '/v1/payments',
    { ...walletPayment(), ...change },
    { ...headers, 'x-idempotency-key': randomUUID() },
  );
const withSecret = (headers: Record<string, string>) => ({
  ...headers,
  'private-secret-key': 'sk_sandbox_one',
});

describe('what the public key alone may do', () => {
  it.each(['SESSIONS', 'NOTHING'] as const)(
    'with public_key_may %s, the public key alone makes no payment of its own amount, and the refusal names the setting',
    async (may) => {
      const headers = await allow(may);
      const cheap = { amount: { currency: 'COP', value: 0.01 } };
      for (const change of [cheap, {}, { payment_method: sentCard() }]) {
        const refused = await pay(headers, change);
        expect([refused.status, refused.json.code]).toEqual([403, 'AUTHORIZATION_REQUIRED']);
        expect(refused.json.detail).toContain(`public_key_may is ${may}`);
      }
      expect((await pay(withSecret(headers))).status).toBe(201);
    },
  );

  it.each([
    ['NOTHING', 403],
    ['SESSIONS', 201],
    ['PAYMENTS', 201],
  ] as const)(
    'with public_key_may %s, a session’s payment with the public key alone gets %i',
    async (may, status) => {
      const headers = await allow(may);
      const checkout = checkoutCalls(call);
      const session = await checkout.openSession();
      const path = `/v1/checkout/sessions/${session}`;
      const read = await call('GET', path, undefined, headers);
      expect(read.status).toBe(status === 403 ? 403 : 200);
      const body = { payment_method: { type: 'WALLET_B' } };
      const paid = await call('POST', `${path}/payments`, body, {
        ...headers,
        'x-idempotency-key': randomUUID(),
      });
      expect(paid.status).toBe(status);
      if (status === 403) return expect(paid.json.code).toBe('AUTHORIZATION_REQUIRED');
      const record = await call('GET', `/v1/payments/${paid.json.id}`);
      expect(record.json).toMatchObject({
        created_with: 'PUBLIC_KEY',
        amount: { value: TERMS.amount.value },
      });
    },
  );

  it('a record and its event say that a payment was created with the public key alone, and nothing otherwise', async () => {
    const webhook = { url: 'http://127.0.0.1:9/', events: ['payment.purchase'] };
    expect((await call('POST', '/v1/webhooks', webhook)).status).toBe(201);
    const headers = await allow('PAYMENTS');
    const [alone, both] = [await pay(headers), await pay(withSecret(headers))];
    expect([alone.status, alone.json.created_with]).toEqual([201, 'PUBLIC_KEY']);
    expect('created_with' in both.json).toBe(false);
    const again = await call('GET', `/v1/payments/${alone.json.id}`);
    expect(again.json.created_with).toBe('PUBLIC_KEY');
    const events = await tables.query(
      "SELECT encode(record, 'escape') AS record FROM event WHERE payment_id = $1",
      [alone.json.id],
    );
    expect(events.map(({ record }) => String(record).includes('PUBLIC_KEY'))).toEqual([true]);
  });

  it('a new account lets the public key alone only pay sessions', async () => {
    const id = randomUUID();
    await tables.query("INSERT INTO account (id, name) VALUES ($1, 'New')", [id]);
    const found = await tables.query('SELECT public_key_may FROM account WHERE id = $1', [id]);
    expect(found).toEqual([{ public_key_may: 'SESSIONS' }]);
  });
});
