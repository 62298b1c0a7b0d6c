import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, beforeEach, expect, it } from 'vitest';
import { run } from '#src/commands/retention.ts';
import { type Call, ONE, restCalls } from '../customers/calls.ts';
import { cardData, checkoutCalls, sentCard } from '../customers/checkout.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment } from '../support/payment-requests.ts';
import { outputOf, runCommand } from '../support/run-command.ts';
import { earlier } from '../support/tables.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';

const CARD = '4539578763621486';
const OTHER = '5555555555554444';
/** A card whose payment is reported as approved by a look-up some time after the call. */
const PENDING_CARD = '4000000000002008';

let shop: Receiver;
let call: Call;
let customer: string;

onService();
beforeAll(async () => {
  shop = await startReceiver();
  call = restCalls(server.url);
  await call('POST', '/v1/webhooks', { url: shop.url, events: ['enrollment.unenroll'] });
});
afterAll(() => shop?.close());
beforeEach(async () => {
  await tables.query('DELETE FROM vaulted_token');
  customer = await checkoutCalls(call).customer();
});

const environment = () => ({ DATABASE_URL: server.databaseUrl, ACTOR: 'the night run' });
const retention = (...args: string[]) => outputOf(run, environment(), ...args);

const enroll = async (number: string): Promise<string> =>
  (await call('POST', `/v1/customers/${customer}/payment-methods`, { card_data: cardData(number) })).json.id;
const pay = async (method: object) => {
  const body = {
    ...cardPayment(),
    payment_method: { type: 'CARD', ...method },
    customer_payer: { id: customer },
  };
  return (await call('POST', '/v1/payments', body, { ...ONE, 'x-idempotency-key': randomUUID() })).json;
};
const age = (days: number) => {
  const aged = (column: string) => `${column} = ${earlier(column, `${days} days`)}`;
  return tables.query(
    `UPDATE vaulted_token SET ${aged('created_at')}, ${aged('updated_at')}, ${aged('last_used_at')}`,
  );
};
const rows = () =>
  tables.query('SELECT id, status, active, card_number IS NOT NULL AS sealed FROM vaulted_token ORDER BY id');

it('retention unenrolls a payment method that has long been unused, erases its ciphertext, and later deletes it', async () => {
  const [unused, used] = [await enroll(CARD), await enroll(OTHER)];
  await age(40);
  expect((await pay({ vaulted_token: used })).status).toBe('SUCCEEDED');
  const all = await rows();
  expect(await retention('--methods', '32', '--dry-run')).toBe(
    'methods due        1\nended_methods due  0\n',
  );
  expect(await rows()).toEqual(all);
  expect(await retention('--methods', '32')).toBe('methods        1\nended_methods  0\n');
  expect(await rows()).toEqual([
    { id: unused, status: 'UNENROLLED', active: false, sealed: false },
    { id: used, status: 'ENROLLED', active: true, sealed: true },
  ]);
  const [event] = await shop.has(1);
  expect(event?.json.data.payment_method).toMatchObject({ id: unused, status: 'UNENROLLED' });
  expect((await pay({ vaulted_token: unused })).code).toBe('VAULTED_TOKEN_NOT_FOUND');
  expect(await retention('--methods', '32')).toBe('methods        0\nended_methods  0\n');

  await age(33);
  expect((await pay({ vaulted_token: used })).status).toBe('SUCCEEDED');
  expect(await retention('--methods', '32')).toBe('methods        0\nended_methods  1\n');
  expect((await rows()).map(({ id }) => id)).toEqual([used]);
});

it('retention keeps an old card that awaits its payment, and unenrolls many methods in several steps', async () => {
  const paid = await pay({ ...sentCard(PENDING_CARD), vault_on_success: true });
  expect(paid.status).toBe('PENDING');
  const id = await enroll(CARD);
  await tables.query(
    `INSERT INTO vaulted_token (account_id, id, type, card, card_number, active, status)
     SELECT account_id, gen_random_uuid(), type, card, card_number, true, 'ENROLLED'
     FROM vaulted_token, generate_series(1, 1100) WHERE id = $1`,
    [id],
  );
  await age(400);
  await tables.query(`UPDATE vaulted_token SET active = false WHERE id <> $1 AND customer_id IS NOT NULL`, [
    id,
  ]);
  expect(await retention('--methods', '365')).toBe('methods        1101\nended_methods  0\n');
  const left = await tables.query("SELECT customer_id FROM vaulted_token WHERE status = 'ENROLLED'");
  expect(left).toEqual([{ customer_id: customer }]);
});

it('retention refuses to unenroll payment methods after fewer than 32 days', async () => {
  expect(await runCommand(run, environment(), '--methods', '31')).toMatchObject({
    code: 2,
    stderr: expect.stringMatching(/32 to/),
  });
});
