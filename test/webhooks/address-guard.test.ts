import type { LookupFunction } from 'node:net';
import { afterEach, describe, expect, it } from 'vitest';
import { isMetadataAddress, isPublicAddress } from '#src/public-address.ts';
import { createWebhookClient, type WebhookClient } from '#src/webhooks/webhook-client.ts';
import { type Receiver, startReceiver, status } from './receiver.ts';

const opened: { close(): Promise<unknown> }[] = [];
afterEach(async () => {
  for (const one of opened.splice(0)) await one.close();
});

function client(
  url: string,
  options: { allowPrivate?: boolean; lookup?: LookupFunction } = {},
): WebhookClient {
  const made = createWebhookClient(url, {
    allowPrivate: false,
    timeoutMs: 2_000,
    maxConnections: 1,
    ...options,
  });
  opened.push(made);
  return made;
}

async function receiver(...args: Parameters<typeof startReceiver>): Promise<Receiver> {
  const started = await startReceiver(...args);
  opened.push(started);
  return started;
}

/** Makes a resolver that returns these addresses in turn, and then always the last one. */
function resolver(...answers: string[][]): { lookup: LookupFunction; asked: () => number } {
  let asked = 0;
  const lookup: LookupFunction = (_hostname, options, callback) => {
    const addresses = answers[Math.min(asked++, answers.length - 1)] ?? [];
    const found = addresses.map((address) => ({ address, family: address.includes(':') ? 6 : 4 }));
    if (options.all) callback(null, found);
    else callback(null, found[0]?.address ?? '', found[0]?.family ?? 4);
  };
  return { lookup, asked: () => asked };
}

it.each([
  ['169.254.169.254', true],
  ['::ffff:169.254.169.254', true],
  ['::ffff:a9fe:a9fe', true],
  ['fe80::1%eth0', true],
  ['fd00:ec2::254', true],
  ['168.63.129.16', true],
  ['10.0.0.1', false],
  ['8.8.8.8', false],
  ['fd00::1', false],
  ['not an address', false],
])('a cloud describes the machine at the address %s: %s', (address, is) => {
  expect(isMetadataAddress(address)).toBe(is);
});

describe('public and private addresses', () => {
  it.each(['8.8.8.8', '1.1.1.1', '100.63.255.255', '172.15.0.1', '172.32.0.1', '2606:4700::1111', '2a00::1'])(
    'the address %s is public',
    (address) => {
      expect(isPublicAddress(address)).toBe(true);
    },
  );
  it.each([
    ...['0.0.0.0', '0.1.2.3', '10.0.0.1', '100.64.0.1', '127.0.0.1', '127.255.255.255', '169.254.169.254'],
    '168.63.129.16',
    ...[
      '172.16.0.1',
      '172.31.255.255',
      '192.0.0.1',
      '192.168.1.1',
      '198.18.0.1',
      '224.0.0.1',
      '255.255.255.255',
    ],
    ...[
      '::',
      '::1',
      '::ffff:127.0.0.1',
      '::ffff:8.8.8.8',
      '::127.0.0.1',
      '64:ff9b::7f00:1',
      'fc00::1',
      'fd12::1',
    ],
    ...[
      'fe80::1',
      'fe80::1%eth0',
      'fec0::1',
      'ff02::1',
      '2001::1',
      '2001:db8::1',
      '2002:7f00:1::',
      'localhost',
      '',
    ],
  ])('the address %j is not public', (address) => {
    expect(isPublicAddress(address)).toBe(false);
  });
});

describe('a webhook at a private address', () => {
  it.each([
    ...['127.0.0.1', '127.1', '2130706433', '0x7f000001', '0177.0.0.1', '0.0.0.0', '[::1]', '[::]'],
    ...['[::ffff:127.0.0.1]', '[::ffff:7f00:1]', 'localhost', 'LOCALHOST', '169.254.169.254', '10.1.2.3'],
  ])('the service does not connect to a webhook URL with the host %s', async (host) => {
    const local = await receiver();
    const result = await client(`http://${host}:${local.port}/`).post({}, '{}');
    expect(result).toEqual({ status: undefined, error: 'ADDRESS_NOT_ALLOWED' });
    expect(local.received).toEqual([]);
  });

  it('the service does not connect to a webhook URL whose name resolves to a private address', async () => {
    const local = await receiver();
    for (const address of ['127.0.0.1', '::1', '::ffff:127.0.0.1']) {
      const { lookup } = resolver([address]);
      const result = await client(`http://shop.example:${local.port}/`, { lookup }).post({}, '{}');
      expect(result).toEqual({ status: undefined, error: 'ADDRESS_NOT_ALLOWED' });
    }
    expect(local.received).toEqual([]);
  });

  it('the service does not connect to a webhook URL whose name resolves to public and private addresses', async () => {
    const local = await receiver();
    const { lookup } = resolver(['8.8.8.8', '127.0.0.1']);
    const result = await client(`http://shop.example:${local.port}/`, { lookup }).post({}, '{}');
    expect(result).toEqual({ status: undefined, error: 'ADDRESS_NOT_ALLOWED' });
    expect(local.received).toEqual([]);
  });

  it('a name is resolved once per connection, so a rebound name never leads to a private address', async () => {
    const local = await receiver();
    // Nothing accepts a connection at this public address within the timeout.
    const { lookup, asked } = resolver(['192.88.98.1'], ['127.0.0.1']);
    const options = { allowPrivate: false, timeoutMs: 100, maxConnections: 1, lookup };
    const rebound = createWebhookClient(`http://shop.example:${local.port}/`, options);
    opened.push(rebound);
    const first = await rebound.post({}, '{}');
    expect(first.status).toBe(undefined);
    expect(asked()).toBe(1);
    const second = await createWebhookClient(`http://shop.example:${local.port}/`, options).post({}, '{}');
    expect(second).toEqual({ status: undefined, error: 'ADDRESS_NOT_ALLOWED' });
    expect(asked()).toBe(2);
    expect(local.received).toEqual([]);
  });

  it('the service connects to a private address if private addresses are allowed', async () => {
    const local = await receiver();
    const { lookup } = resolver(['127.0.0.1']);
    const allowed = client(`http://shop.example:${local.port}/`, { allowPrivate: true, lookup });
    expect(await allowed.post({ 'x-one': '1' }, '{"a":1}')).toEqual({ status: 204 });
    expect(local.received).toMatchObject([{ text: '{"a":1}', headers: { 'x-one': '1' } }]);
  });
});

it('webhook redirects are not followed', async () => {
  const elsewhere = await receiver();
  for (const code of [301, 302, 303, 307, 308]) {
    const shop = await receiver((response) => response.writeHead(code, { location: elsewhere.url }).end());
    expect(await client(shop.url, { allowPrivate: true }).post({}, '{}')).toEqual({ status: code });
  }
  expect(elsewhere.received).toEqual([]);
});

it('a failed delivery reports whether the connection, the name or TLS failed', async () => {
  const refused = await receiver();
  await refused.close();
  const post = (url: string) => client(url, { allowPrivate: true }).post({}, '{}');
  expect(await post(refused.url)).toEqual({ status: undefined, error: 'CONNECTION_FAILED' });
  expect(await post('http://no-such-host.invalid/')).toEqual({
    status: undefined,
    error: 'NAME_NOT_RESOLVED',
  });
  const plain = await receiver(status(200));
  expect(await post(`https://127.0.0.1:${plain.port}/`)).toMatchObject({ error: 'TLS_FAILED' });
});
