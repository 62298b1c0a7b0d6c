import { createHmac } from 'node:crypto';
import type { IncomingMessage, ServerResponse } from 'node:http';
import { text } from 'node:stream/consumers';
import { afterEach, beforeEach, expect, it } from 'vitest';
import { type Site, startSite } from '../support/site.ts';
import { ask, CHARGE, type ProviderUnderTest, startProvider } from './provider-under-test.ts';

const SECRETS = ['first secret', 'second secret'];

type Received = { readonly body: string; readonly signature: string; readonly event: Event };
type Event = {
  readonly id: string;
  readonly type: string;
  readonly data: { readonly id: string; readonly status: string };
};

let received: Received[] = [];
let statuses: number[] = [];
let receiver: Site;
let provider: ProviderUnderTest;
let notificationUrl: string;

beforeEach(async () => {
  received = [];
  statuses = [];
  receiver = await startSite(receive);
  notificationUrl = `${receiver.url}/notifications?of=sandbox`;
  provider = await startProvider({ notificationSecrets: SECRETS });
});
afterEach(async () => {
  await provider.close();
  receiver.close();
});

async function receive(request: IncomingMessage, response: ServerResponse): Promise<void> {
  const body = await text(request);
  const signature = String(request.headers['sandbox-signature']);
  received.push({ body, signature, event: JSON.parse(body) });
  response.writeHead(statuses.shift() ?? 204).end();
}

async function charge(description: string, over: object = {}): Promise<{ id: string }> {
  const body = { ...CHARGE, description, notification_url: notificationUrl, ...over };
  return (await ask(provider.origin, '/v1/charges', body)).answer;
}

const types = () => received.map(({ event }) => event.type);

it('an approved charge sends a notification that contains the charge, signed with every secret', async () => {
  const { id } = await charge('Mugs');
  await expect.poll(() => received).toHaveLength(1);
  const [{ body, signature, event }] = received as [Received];
  expect(event).toMatchObject({ type: 'charge.approved', data: { id, status: 'approved', amount: 5_575 } });
  const [, time = '', first, second] =
    /^t=(\d{10}),v1=([0-9a-f]{64}),v1=([0-9a-f]{64})$/.exec(signature) ?? [];
  const expected = SECRETS.map((secret) =>
    createHmac('sha256', secret).update(`${time}.${body}`).digest('hex'),
  );
  expect([first, second]).toEqual(expected);
  expect(Math.abs(Number(time) * 1_000 - Date.now())).toBeLessThan(10_000);
});

it('an operation sends a notification, and a pending operation sends another when it is done', async () => {
  const { id } = await charge('Mugs');
  const refund = {
    payment: id,
    amount: 100,
    currency: 'USD',
    description: 'sandbox:done_after:50',
  };
  await ask(provider.origin, '/v1/refunds', refund);
  await expect.poll(types).toEqual(['charge.approved', 'refund.pending', 'refund.succeeded']);
});

it('a payment on the checkout page sends a notification', async () => {
  const body = { wallet: 'WALLET_B', amount: 100, currency: 'USD', notification_url: notificationUrl };
  const { id } = (await ask(provider.origin, '/v1/wallet-orders', body)).answer;
  await expect.poll(types).toEqual(['wallet_order.created']);
  await fetch(`${provider.origin}/checkout/${id}/pay`, { method: 'POST', redirect: 'manual' });
  await expect.poll(types).toEqual(['wallet_order.created', 'wallet_order.paid']);
});

it('a notification that the receiver rejects is sent again with the same event ID', async () => {
  statuses = [500];
  await charge('Mugs');
  await expect.poll(() => received).toHaveLength(2);
  expect(received[1]?.body).toBe(received[0]?.body);
});

it('notify_twice sends a notification twice', async () => {
  await charge('sandbox:notify_twice');
  await expect.poll(() => received).toHaveLength(2);
  expect(received[0]?.event.id).toBe(received[1]?.event.id);
});

it('notify_first sends the notification before the response', async () => {
  await charge('sandbox:error_after,notify_first');
  expect(types()).toEqual(['charge.approved']);
});

it('a charge gets a response even if its notify_first notification has an invalid URL', async () => {
  const answer = await charge('sandbox:notify_first', { notification_url: 'http://[' });
  expect(answer).toMatchObject({ object: 'charge', status: 'approved' });
});

it('notify_late delays the notification', async () => {
  const startedMs = performance.now();
  await charge('sandbox:notify_late:300');
  await expect.poll(() => received).toHaveLength(1);
  expect(performance.now() - startedMs).toBeGreaterThanOrEqual(300);
});

it('notify_out_of_order sends the notification after the next one', async () => {
  const { id } = await charge('sandbox:notify_out_of_order');
  await ask(provider.origin, '/v1/refunds', { payment: id, amount: 100, currency: 'USD' });
  await expect.poll(types).toEqual(['refund.succeeded', 'charge.approved']);
});

it('notify_forged sends a notification with a wrong signature', async () => {
  await charge('sandbox:notify_forged');
  await expect.poll(() => received).toHaveLength(1);
  const [{ body, signature }] = received as [Received];
  const time = /^t=(\d+)/.exec(signature)?.[1];
  for (const secret of SECRETS) {
    const right = createHmac('sha256', secret).update(`${time}.${body}`).digest('hex');
    expect(signature).not.toContain(right);
  }
});

it('notify_never sends no notification, and no response waits for an unreachable receiver', async () => {
  await charge('sandbox:notify_never');
  const startedMs = performance.now();
  // No server listens on this port.
  await charge('Mugs', { notification_url: 'http://127.0.0.1:1/' });
  expect(performance.now() - startedMs).toBeLessThan(5_000);
  await charge('last');
  await expect.poll(() => received).toHaveLength(1);
  expect(received[0]?.event.data).toMatchObject({ description: 'last' });
});
