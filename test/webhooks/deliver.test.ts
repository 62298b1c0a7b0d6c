import { randomBytes } from 'node:crypto';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import { resealAll } from '#src/commands/reseal.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { changeWebhook, rotateSecret } from '#src/webhooks/manage-webhooks.ts';
import { NO_ANSWER, type Receiver, startReceiver, status, verify } from './receiver.ts';
import { openWebhookWorld, type WebhookWorld } from './webhook-world.ts';

let world: WebhookWorld;
const receivers: Receiver[] = [];

beforeEach(async () => {
  world = await openWebhookWorld();
});
afterEach(async () => {
  for (const receiver of receivers.splice(0)) await receiver.close();
  await world.close();
});

async function receiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...args);
  receivers.push(started);
  return started;
}

const deliveries = () =>
  world.tables.query('SELECT status, attempts, error, response_status, due_at FROM delivery ORDER BY id');
const settled = (count = 1) =>
  vi.waitFor(async () => {
    const rows = await deliveries();
    expect(rows).toHaveLength(count);
    expect(rows.every(({ due_at }) => due_at === null)).toBe(true);
    return rows;
  });

it('an event is delivered once, with a signature that the Standard Webhooks library verifies', async () => {
  const shop = await receiver();
  const account = await world.addAccount();
  const { secret } = await world.addWebhook(account, shop.url);
  await world.start();
  const payment = await world.change(account);
  await shop.has(1);
  expect(await settled()).toMatchObject([{ status: 'DELIVERED', attempts: 1, response_status: 204 }]);
  expect(shop.received).toHaveLength(1);
  const [message] = shop.received;
  if (!message) throw new Error('nothing was received');
  expect(verify(secret, message)).toEqual(message.json);
  expect(() => verify(secret, { ...message, text: `${message.text} ` })).toThrow();
  expect(message.json).toMatchObject({
    type: 'payment',
    type_event: 'payment.purchase',
    account_id: account,
    version: 2,
    retry: 0,
    sequence: 1,
    data: { payment: { id: payment, description: 'payment.purchase', status: 'STATUS_UNSPECIFIED' } },
  });
  expect(message.headers['webhook-id']).toBe(message.json.id);
  expect(message.headers['content-type']).toBe('application/json');
  expect(world.errors).toEqual([]);
});

it('an event is written only if an active webhook of the account subscribes to it', async () => {
  const [account, other] = [await world.addAccount(), await world.addAccount()];
  await world.addWebhook(account, 'http://127.0.0.1:9/', ['payment.refund']);
  const { webhook } = await world.addWebhook(account, 'http://127.0.0.1:9/');
  await world.tables.query('UPDATE webhook SET active = false WHERE id = $1', [webhook.id]);
  await world.change(account);
  await world.change(other);
  expect(await world.tables.query('SELECT id FROM event')).toEqual([]);
  await world.change(account, 'payment.refund');
  expect(await world.tables.query('SELECT type FROM event')).toEqual([{ type: 'payment.refund' }]);
});

it('the events of a payment are numbered', async () => {
  const shop = await receiver();
  const account = await world.addAccount();
  await world.addWebhook(account, shop.url, ['payment.purchase', 'payment.refund']);
  await world.start();
  const payment = await world.change(account);
  await world.change(account, 'payment.refund', payment);
  await world.change(account, 'payment.refund', payment);
  const sequences = (await shop.has(3)).map(({ json }) => json.sequence);
  expect(sequences.sort()).toEqual([1, 2, 3]);
});

it('a delivery is retried after an error, a redirect and a timeout, each time signed, with the same id', async () => {
  const shop = await receiver((response, message, nth) => {
    if (nth === 1) response.writeHead(500).end('no');
    else if (nth === 2) response.writeHead(307, { location: '/elsewhere' }).end();
    else if (nth > 3) status(200)(response, message, nth);
  });
  const account = await world.addAccount();
  const { secret } = await world.addWebhook(account, shop.url);
  await world.start({ timeoutMs: 1_500 });
  await world.change(account);
  expect(await settled()).toMatchObject([{ status: 'DELIVERED', attempts: 4, error: null }]);
  expect(world.results).toEqual(['HTTP_STATUS', 'HTTP_STATUS', 'TIMEOUT', 'DELIVERED']);
  expect(shop.received.map(({ json }) => json.retry)).toEqual([0, 1, 2, 3]);
  expect(new Set(shop.received.map(({ json }) => json.id)).size).toBe(1);
  for (const message of shop.received) verify(secret, message);
});

it('a delivery that fails every attempt is FAILED, and its webhook is failing until a success', async () => {
  const shop = await receiver(status(503));
  const account = await world.addAccount();
  await world.addWebhook(account, shop.url);
  await world.start();
  await world.change(account);
  expect(await settled()).toMatchObject([
    { status: 'FAILED', attempts: 4, error: 'HTTP_STATUS', response_status: 503 },
  ]);
  const failing = () => world.tables.query('SELECT failing_since IS NOT NULL AS failing FROM webhook');
  expect(await failing()).toEqual([{ failing: true }]);
  shop.answer(status(200));
  await world.change(account);
  await settled(2);
  expect(await failing()).toEqual([{ failing: false }]);
});

it('a webhook whose receiver answers 410 is turned off, and its open deliveries end', async () => {
  const shop = await receiver(status(500));
  const account = await world.addAccount();
  await world.addWebhook(account, shop.url);
  await world.start({ retryScheduleS: [60] });
  await world.change(account);
  await shop.has(1);
  shop.answer(status(410));
  await world.change(account);
  await shop.has(2);
  expect(await settled(2)).toMatchObject([
    { status: 'FAILED', error: 'WEBHOOK_OFF' },
    { status: 'FAILED', error: 'HTTP_STATUS', response_status: 410 },
  ]);
  expect(await world.tables.query('SELECT active, disabled_reason FROM webhook')).toEqual([
    { active: false, disabled_reason: 'GONE' },
  ]);
  await world.change(account);
  expect(await world.tables.query('SELECT count(*)::int AS n FROM event')).toEqual([{ n: 2 }]);
});

it('events are signed with two secrets during a rotation, and only with the new one afterwards', async () => {
  const shop = await receiver();
  const account = await world.addAccount();
  const { webhook, secret: old } = await world.addWebhook(account, shop.url);
  const { secret } = await rotateSecret(world.deps, account, webhook.id);
  await world.start();
  await world.change(account);
  const [both] = await shop.has(1);
  if (!both) throw new Error('nothing was received');
  verify(old, both);
  verify(secret, both);
  await world.tables.query("UPDATE webhook SET previous_secret_until = now() - interval '1 s'");
  await world.change(account);
  const alone = (await shop.has(2))[1];
  if (!alone) throw new Error('nothing was received');
  verify(secret, alone);
  expect(() => verify(old, alone)).toThrow();
});

it('events are signed with secrets that were resealed under another vault key', async () => {
  const shop = await receiver();
  const account = await world.addAccount();
  const { webhook, secret: old } = await world.addWebhook(account, shop.url);
  const { secret } = await rotateSecret(world.deps, account, webhook.id);
  await changeWebhook(world.deps, account, webhook.id, {
    credentials: { apiKey: 'key-of-the-shop', secret: '', hmacKey: '' },
  });
  const next = cardVault(new Map([...[['test-2', randomBytes(32)] as const], ['test-1', world.vaultKey]]));
  expect(await resealAll(world.deps.database, next)).toMatchObject({ resealed: 3, unreadable: 0 });
  expect(await resealAll(world.deps.database, next)).toMatchObject({ resealed: 0, current: 3 });
  await world.start({}, { vault: next });
  await world.change(account);
  const [message] = await shop.has(1);
  if (!message) throw new Error('nothing was received');
  verify(old, message);
  verify(secret, message);
  expect(message.headers['x-api-key']).toBe('key-of-the-shop');
});

it('a delivery fails with SECRET_UNREADABLE, unsent, if the vault cannot open the secret', async () => {
  const shop = await receiver();
  const account = await world.addAccount();
  await world.addWebhook(account, shop.url);
  await world.start({ retryScheduleS: [] }, { vault: cardVault(new Map([['other', randomBytes(32)]])) });
  await world.change(account);
  expect(await settled()).toMatchObject([{ status: 'FAILED', error: 'SECRET_UNREADABLE' }]);
  expect(shop.received).toEqual([]);
});

it('the database contains no webhook secret in plain text', async () => {
  const account = await world.addAccount();
  const { webhook, secret } = await world.addWebhook(account, 'http://127.0.0.1:9/');
  const { secret: next } = await rotateSecret(world.deps, account, webhook.id);
  const stored = JSON.stringify(await world.tables.query('SELECT * FROM webhook'));
  for (const shown of [secret, next]) {
    expect(shown).toMatch(/^whsec_[A-Za-z0-9+/]{43}=$/);
    expect(stored).not.toContain(shown.slice('whsec_'.length));
  }
});

/** More events than one webhook may have in progress at once. */
const EVENTS = 10;

it('slow and endless receivers do not delay deliveries to other receivers', async () => {
  const silent = await Promise.all(Array.from({ length: 3 }, () => receiver(NO_ANSWER)));
  const drip = await receiver((response) => {
    response.writeHead(200);
    const timer = setInterval(() => response.write('.'), 20);
    response.once('close', () => clearInterval(timer));
  });
  const sizes: number[] = [];
  const endless = await receiver((response, _message, nth) => {
    response.writeHead(200);
    const send = () => {
      for (let more = true; more && !response.destroyed && (sizes[nth] ?? 0) < 10e6; ) {
        sizes[nth] = (sizes[nth] ?? 0) + 64 * 1024;
        more = response.write(Buffer.alloc(64 * 1024));
      }
    };
    response.on('drain', send);
    send();
  });
  const account = await world.addAccount();
  for (const { url } of [...silent, drip, endless]) await world.addWebhook(account, url);
  const well = await receiver();
  const other = await world.addAccount();
  await world.addWebhook(other, well.url);
  await world.start({ timeoutMs: 60_000, leaseS: 120, concurrency: 8, failingConcurrency: 2 });
  for (let i = 0; i < EVENTS; i++) await world.change(account);
  for (const { has } of [...silent, drip, endless]) await has(1);
  await world.change(other);
  await well.has(1);
  // No earlier delivery was given up.
  expect(world.results).not.toContain('TIMEOUT');
  for (const { open } of silent) expect(open().most).toBeLessThanOrEqual(8);
  // A 2xx status is enough, so that hardly more than the socket buffers was read after it.
  await vi.waitFor(
    () => expect(world.results.filter((result) => result === 'DELIVERED').length).toBeGreaterThan(2 * EVENTS),
    60_000,
  );
  expect(sizes.filter((size) => size > 0).length).toBeGreaterThan(0.75 * EVENTS);
  expect(Math.max(...sizes.filter((size) => size > 0))).toBeLessThan(8e6);
});
