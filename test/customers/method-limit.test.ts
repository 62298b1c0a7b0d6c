import { beforeEach, describe, expect, it } from 'vitest';
import { ONE, type Response } from './calls.ts';
import { cardData, sentCard } from './checkout.ts';
import { call, checkout, onOwnServer, pay, server, tables } from './own-server.ts';

const CARD = '4539578763621486';
const OTHER = '5555555555554444';
const CHALLENGED = '4000000000003105';

onOwnServer();
let customer: string;

beforeEach(async () => {
  customer = await checkout.customer();
});

const path = () => `/v1/customers/${customer}/payment-methods`;
const enroll = (card: object = {}) =>
  call('POST', path(), { country: 'CO', card_data: { ...cardData(CARD), ...card } }, ONE);
const enrollWallet = () =>
  call('POST', path(), { type: 'WALLET_C_ENROLLMENT', country: 'CO', callback_url: 'https://shop.example' });
/** Simulates the payer pressing a button on the wallet's page. */
const press = (made: Response, action: string) =>
  fetch(`${made.json.redirect_url}/${action}`, { method: 'POST', redirect: 'manual' });
const comeBack = (id: string) =>
  fetch(`${server.url}/v1/enrollments/${id}/return?sandbox_status=agreed`, { redirect: 'manual' });
/** Gives the customer the given number of copies of a stored method. */
const copies = (id: string, number: number) =>
  tables.query(
    `INSERT INTO vaulted_token (account_id, customer_id, id, type, card, card_number, active)
     SELECT account_id, customer_id, gen_random_uuid(), type, card, card_number, true
     FROM vaulted_token, generate_series(1, $2) WHERE id = $1`,
    [id, number],
  );

describe('the limit of a hundred methods', () => {
  it('a new card beyond the limit is refused, even in a payment, but a stored card is accepted again', async () => {
    const { id } = (await enroll({ number: OTHER })).json;
    await copies(id, 9_999);
    expect((await enroll()).json.code).toBe('STORED_METHOD_LIMIT_REACHED');
    const refused = await pay({ ...sentCard(CARD), vault_on_success: true }, customer);
    expect([refused.status, refused.json.code]).toEqual([409, 'STORED_METHOD_LIMIT_REACHED']);
    expect((await enroll({ number: OTHER })).json.id).toBe(id);
    expect((await call('GET', path())).json.payment_methods.length).toBe(1_000);
  });

  it('a card that waits for its payment counts towards the limit', async () => {
    const { id } = (await enroll({ number: OTHER })).json;
    await copies(id, 98);
    const open = await pay({ ...sentCard(CHALLENGED), vault_on_success: true }, customer);
    expect(open.json.status).toBe('PENDING');
    const refused = await pay({ ...sentCard(CARD), vault_on_success: true }, customer);
    expect([refused.status, refused.json.code]).toEqual([409, 'STORED_METHOD_LIMIT_REACHED']);
    expect((await enroll()).json.code).toBe('STORED_METHOD_LIMIT_REACHED');
  });

  it('methods stored beyond the limit by concurrent payments are listed', async () => {
    const { id } = (await enroll({ number: OTHER })).json;
    await copies(id, 150);
    const ids = (await call('GET', path())).json.payment_methods.map((one: { id: string }) => one.id);
    expect([ids.length, ids.includes(id)]).toEqual([151, true]);
  });

  it('wallets whose payers have yet to agree count towards the limit, and all are listed once enrolled', async () => {
    await tables.query(
      `INSERT INTO vaulted_token (account_id, customer_id, id, type, connection_id, active)
       SELECT account_id, id, gen_random_uuid(), 'WALLET_C_ENROLLMENT', 'sandbox-one', true FROM customer, generate_series(1, 98)
       WHERE id = $1`,
      [customer],
    );
    const made = [await enrollWallet(), await enrollWallet()];
    expect((await enrollWallet()).json.code).toBe('STORED_METHOD_LIMIT_REACHED');
    for (const one of made) {
      await press(one, 'pay');
      await comeBack(one.json.id);
    }
    expect((await call('GET', path())).json.payment_methods.length).toBe(100);
    expect((await enrollWallet()).json.code).toBe('STORED_METHOD_LIMIT_REACHED');
  });
});
