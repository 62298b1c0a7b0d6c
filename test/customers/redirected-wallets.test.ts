import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { walletPayment } from '../support/payment-requests.ts';
import { ONE } from './calls.ts';
import { call, checkout, onOwnServer, tables } from './own-server.ts';

const TYPE = 'WALLET_E';

onOwnServer();

const redirect = (token: string, customer: string) =>
  call(
    'POST',
    '/v1/payments',
    {
      ...walletPayment(),
      ...{ country: 'CO', amount: { currency: 'COP', value: 9000 }, workflow: 'REDIRECT' },
      ...{ customer_payer: { id: customer }, payment_method: { type: TYPE, vaulted_token: token } },
    },
    { ...ONE, 'x-idempotency-key': randomUUID() },
  );

it('a REDIRECT with an enrolled wallet sends the payer to the page, wherever the wallet is enrolled, and notes its use', async () => {
  const customer = await checkout.customer();
  const path = `/v1/customers/${customer}/payment-methods`;
  const made = await call('POST', path, { type: TYPE, country: 'CO' }, ONE);
  await fetch(`${made.json.redirect_url}/pay`, { method: 'POST', redirect: 'manual' });
  const method = async () => (await call('GET', `${path}/${made.json.id}`)).json;
  await expect.poll(async () => (await method()).status).toBe('ENROLLED');
  await tables.query("UPDATE vaulted_token SET connection_id = 'elsewhere' WHERE id = $1", [made.json.id]);

  const paid = await redirect(made.json.id, customer);
  expect(paid.json).toMatchObject({
    ...{ status: 'READY_TO_PAY', workflow: 'REDIRECT', payment_method: { vaulted_token: made.json.id } },
  });
  expect((await method()).last_successfully_used_at).toBeNull();
  const { redirect_url } = paid.json.payment_method.payment_method_detail.wallet;
  await fetch(`${redirect_url}/pay`, { method: 'POST', redirect: 'manual' });
  const read = () => call('GET', `/v1/payments/${paid.json.id}`);
  await expect.poll(async () => (await read()).json.status).toBe('SUCCEEDED');
  expect((await method()).last_successfully_used_at).toMatch(/Z$/);
  expect((await redirect(made.json.id, await checkout.customer())).json.code).toBe(
    'INVALID_CUSTOMER_FOR_TOKEN',
  );
});
