import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, it, vi } from 'vitest';
import { SANDBOX_OPERATOR_KEY, SANDBOX_OPERATOR_READ_KEY } from '#src/config.ts';
import { type Merchant, merchantOne, type Operator, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';
import { type Receiver, startReceiver, status } from '../webhooks/receiver.ts';

let operator: Operator;
let merchant: Merchant;
let shop: Receiver;
let webhookId: string;

onService();
beforeAll(async () => {
  operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  merchant = merchantOne(server);
  shop = await startReceiver(status(500));
  const made = await merchant.call('/v1/webhooks', { url: shop.url, events: ['payment.purchase'] });
  webhookId = String(made.id);
});
afterAll(() => shop?.close());

const path = (account = ACCOUNT_ONE, webhook = webhookId) => `/webhooks/${account}/${webhook}`;
const pageOf = async (account?: string, webhook?: string) =>
  (await operator.get(path(account, webhook))).text();

/** Makes a payment whose event the receiver refuses until delivery is given up. */
async function fail(): Promise<string> {
  const { id } = await merchant.pay();
  await vi.waitFor(async () => {
    const gaveUp = await tables.query(
      `UPDATE delivery SET status = 'FAILED', due_at = NULL
       WHERE webhook_id = $1 AND response_status = 500 AND event_id IN (SELECT id FROM event WHERE payment_id = $2)
       RETURNING 1`,
      [webhookId, id],
    );
    expect(gaveUp).toHaveLength(1);
  }, 60_000);
  return id;
}

it('an operator finds a failing webhook from the overview, and has its failed deliveries sent again', async () => {
  const id = await fail();
  expect(await (await operator.get('')).text()).toContain(`href="/dashboard${path()}"`);
  const page = await pageOf();
  expect(page).toContain(`href="/dashboard/payments/${ACCOUNT_ONE}/${id}"`);
  expect(page).toMatch(/[1-9] attempts? · answered 500 · HTTP_STATUS/);
  const before = shop.received.length;
  shop.answer(status(204));
  const sent = await operator.post(`${path()}/redeliver-failed`, { hours: '1' });
  expect([sent.status, sent.headers.get('location')]).toEqual([303, `/dashboard${path()}?did=redeliver`]);
  await shop.has(before + 1);
  expect(shop.received.at(-1)?.json.data.payment.id).toBe(id);
  expect(await (await operator.get(`${path()}?did=redeliver`)).text()).toContain(
    'The failed deliveries are being sent again.',
  );
  const audit = await tables.query('SELECT action, detail FROM audit_log WHERE subject = $1', [webhookId]);
  expect(audit).toContainEqual({ action: 'redeliver-failed', detail: 'of the last hour' });
  shop.answer(status(500));
});

it('a read-only operator sees the webhook without a form, and cannot send anything', async () => {
  await fail();
  const reader = await signIn(server, SANDBOX_OPERATOR_READ_KEY);
  expect(await (await reader.get(path())).text()).not.toContain('redeliver-failed');
  expect((await reader.post(`${path()}/redeliver-failed`, { hours: '1' })).status).toBe(403);
});

it('a disabled webhook is shown as disabled, with nothing to send', async () => {
  await tables.query("UPDATE webhook SET active = false, disabled_reason = 'GONE' WHERE id = $1", [
    webhookId,
  ]);
  const page = await pageOf();
  expect(page).toMatch(/OFF<\/span> GONE/);
  expect(page).not.toContain('redeliver-failed');
  const refused = await operator.post(`${path()}/redeliver-failed`, { hours: '1' });
  expect(refused.status).toBe(409);
  await tables.query('UPDATE webhook SET active = true, disabled_reason = NULL WHERE id = $1', [webhookId]);
});

it('a webhook of another account, an unknown one and a malformed ID are not found', async () => {
  for (const [account, webhook] of [
    [ACCOUNT_TWO, webhookId],
    [ACCOUNT_ONE, randomUUID()],
    [ACCOUNT_ONE, 'x'],
    ['x', webhookId],
  ]) {
    expect((await operator.get(path(account, webhook))).status).toBe(404);
  }
});

it('the deliveries of a webhook are shown in pages, newest first', async () => {
  await tables.query(
    `INSERT INTO delivery (account_id, id, webhook_id, event_id, status, due_at)
     SELECT $1, ('00000000-0000-7000-8000-' || lpad(n::text, 12, '0'))::uuid, $2, gen_random_uuid(), 'DELIVERED', NULL
     FROM generate_series(1, 120) n`,
    [ACCOUNT_ONE, webhookId],
  );
  const rows = (text: string) => (text.match(/<tr><td class="nowrap">/g) ?? []).length;
  const seen: number[] = [];
  for (let next: string | undefined = path(); next; ) {
    const text = await (await operator.get(next)).text();
    seen.push(rows(text));
    next = /href="\/dashboard([^"]+before=[^"]+)"/.exec(text)?.[1];
  }
  expect([seen.slice(0, 2), seen.length]).toEqual([[50, 50], 3]);
});
