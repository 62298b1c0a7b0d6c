import { randomUUID } from 'node:crypto';
import http from 'node:http';
import { BlockList } from 'node:net';
import { expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { OWN_FORM } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { walletPayment } from '../support/payment-requests.ts';

/** Behind a proxy at 127.0.0.1, which forwards requests from a proxy in 10.0.0.0/8. */
const trustedProxies = new BlockList();
trustedProxies.addAddress('127.0.0.1');
trustedProxies.addSubnet('10.0.0.0', 8);

onService({ config: { trustedProxies, maxInFlight: 40 } });

/** Sends a form or JSON as a proxy at `localAddress`, with this X-Forwarded-For header. */
function post(
  path: string,
  body: string,
  headers: Record<string, string>,
  { forwardedFor, localAddress = '127.0.0.1' }: { forwardedFor?: string; localAddress?: string },
): Promise<number | undefined> {
  return new Promise((resolve, reject) => {
    const request = http.request(server.url + path, {
      localAddress,
      method: 'POST',
      headers: { ...headers, ...(forwardedFor !== undefined && { 'x-forwarded-for': forwardedFor }) },
    });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.on('error', reject).end(body);
  });
}

const signIn = (key: string, from: { forwardedFor?: string; localAddress?: string }) =>
  post(
    '/dashboard/sign-in',
    `key=${key}`,
    { 'content-type': 'application/x-www-form-urlencoded', ...OWN_FORM },
    from,
  );

const logged = (msg: string) =>
  server.logLines.map((line) => JSON.parse(line)).filter((line) => line.msg === msg);

it('five wrong operator keys from one address behind the proxy throttle no other address', async () => {
  const guesser = { forwardedFor: '203.0.113.7' };
  const statuses: (number | undefined)[] = [];
  for (let i = 0; i < 6; i++) statuses.push(await signIn('op_wrong', guesser));
  expect(statuses).toEqual([401, 401, 401, 401, 401, 429]);
  expect(await signIn('op_wrong', { forwardedFor: '203.0.113.8' })).toBe(401);
});

it('a correct operator key is accepted even from a throttled address', async () => {
  const guesser = { forwardedFor: '203.0.113.9' };
  for (let i = 0; i < 6; i++) await signIn('op_wrong', guesser);
  expect(await signIn('op_wrong', guesser)).toBe(429);
  expect(await signIn(SANDBOX_OPERATOR_KEY, guesser)).toBe(303);
});

it.each([
  [
    'the rightmost address, since the client may have written those to its left',
    '192.0.2.1, 198.51.100.2',
    '198.51.100.2',
  ],
  ['the address that the next trusted proxy appended', '192.0.2.1, 198.51.100.3, 10.1.2.3', '198.51.100.3'],
  ['an address without the port that a proxy appends', '192.0.2.1, 198.51.100.4:4711', '198.51.100.4'],
  ['an IPv6 address in brackets', '[2001:db8::4]:443', '2001:db8::4'],
  ['the proxy, if the header has no address', '192.0.2.1, <script>', '127.0.0.1'],
  ['the last known proxy, if all are trusted', '10.0.0.1', '10.0.0.1'],
  ['the proxy, if it sends no header', undefined, '127.0.0.1'],
])('the log and the audit log name %s', async (_what, forwardedFor, address) => {
  const from = forwardedFor === undefined ? {} : { forwardedFor };
  expect(await signIn(SANDBOX_OPERATOR_KEY, from)).toBe(303);
  const [entry] = await tables.query(
    "SELECT actor FROM audit_log WHERE action = 'sign-in' ORDER BY id DESC LIMIT 1",
  );
  expect(entry?.actor).toMatch(new RegExp(`^operator-[0-9a-f]{8} from ${RegExp.escape(address)}$`));
  await expect.poll(() => logged('request').at(-1)?.remote_address).toBe(address);
  await post('/v1/payments', '{}', { 'content-type': 'application/json' }, from);
  expect(logged('authentication failed').at(-1)?.remote_address).toBe(address);
});

it('the X-Forwarded-For header of an untrusted peer is ignored', async () => {
  const elsewhere = { localAddress: '127.0.0.2', forwardedFor: '198.51.100.9' };
  await post('/v1/payments', '{}', { 'content-type': 'application/json' }, elsewhere);
  expect(logged('authentication failed').at(-1)?.remote_address).toBe('127.0.0.2');
});

it('calls from one address behind the proxy leave capacity for calls from another', async () => {
  const headers = () => ({
    ...{ 'content-type': 'application/json', 'public-api-key': 'pk_sandbox_one' },
    'x-idempotency-key': randomUUID(),
  });
  // Their bodies never arrive. Without the secret, an account may hold seven of the 40 slots from
  // one address.
  const crowd = Array.from({ length: 8 }, () =>
    http.request(`${server.url}/v1/payments`, {
      method: 'POST',
      headers: { ...headers(), 'content-length': 10, 'x-forwarded-for': '203.0.113.20' },
    }),
  );
  const refused = new Promise<number | undefined>((resolve, reject) => {
    for (const request of crowd) {
      request.on('error', reject).on('response', (response) => resolve(response.resume().statusCode));
      request.flushHeaders();
    }
  });
  expect(await refused).toBe(503);
  const pay = (forwardedFor: string) =>
    post('/v1/payments', JSON.stringify(walletPayment()), headers(), { forwardedFor });
  expect([await pay('203.0.113.20'), await pay('203.0.113.21')]).toEqual([503, 201]);
  for (const request of crowd) request.destroy();
});
