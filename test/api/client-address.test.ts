import { BlockList } from 'node:net';
import type { FastifyRequest } from 'fastify';
import { expect, it } from 'vitest';
import { createClientAddress } from '#src/api/client-address.ts';

const proxies = new BlockList();
proxies.addSubnet('10.0.0.0', 8);
const clientAddress = createClientAddress(proxies);
const from = (ip: string | undefined, forwarded?: string) =>
  clientAddress({ ip, headers: { 'x-forwarded-for': forwarded } } as unknown as FastifyRequest);

it.each([
  ['the peer if there is no header', '10.0.0.1', undefined, '10.0.0.1'],
  [
    'the rightmost forwarded address that is not a proxy',
    '10.0.0.1',
    '192.0.2.9, 192.0.2.1, 10.0.0.2',
    '192.0.2.1',
  ],
  ['the forwarded address if an IPv4 proxy appears as IPv6', '::ffff:10.0.0.1', '192.0.2.1', '192.0.2.1'],
  ['the peer if it is not a proxy, whatever its header says', '192.0.2.7', '192.0.2.1', '192.0.2.7'],
  ['empty once the connection has closed', undefined, '192.0.2.1', ''],
])('the client address is %s', (_which, ip, forwarded, address) => {
  expect(from(ip, forwarded)).toBe(address);
});
