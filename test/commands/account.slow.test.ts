import { randomUUID } from 'node:crypto';
import { expect, it, vi } from 'vitest';
import { cardPayment, walletPayment } from '../support/payment-requests.ts';
import { ownDataDir, type ServiceProcess, spawnCommand, startService } from '../support/service-process.ts';

const DATA_DIR = ownDataDir();
/** Time for which the service may still accept a revoked key from its cache, with a margin. */
const FORGETTING = { timeout: 15_000, interval: 250 };

it('a running service accepts the keys that the account command creates, and refuses those that it revokes', async () => {
  const service = await startService({ DATA_DIR });
  const created = await account('create', '--name', 'Shop');
  const id = shown(created, 'account id');
  const first = { publicKey: shown(created, 'public key'), secret: shown(created, 'secret') };
  expect(await pay(service, id, first)).toBe(201);
  expect(await pay(service, id, { ...first, secret: 'sk_guess' })).toBe(401);

  const second = {
    publicKey: shown(await account('add-public-key', id), 'public key'),
    secret: shown(await account('add-secret', id), 'secret'),
  };
  const publicOnly = { publicKey: second.publicKey };
  expect(await pay(service, id, second)).toBe(201);
  // A new account's public key alone may only pay in sessions.
  expect(await pay(service, id, publicOnly)).toBe(403);
  expect(await account('public-key-may', id, 'PAYMENTS')).toBe('public-key-may PAYMENTS\n');
  await vi.waitFor(async () => {
    expect(await pay(service, id, publicOnly), 'no secret').toBe(201);
  }, FORGETTING);
  // Either secret works with either public key.
  expect(await pay(service, id, { ...first, secret: second.secret })).toBe(201);

  expect(await account('revoke-secret', shown(created, 'secret id'))).toBe('revoked\n');
  expect(await account('revoke-public-key', first.publicKey)).toBe('revoked\n');
  expect(await account('public-key-may', id, 'NOTHING')).toBe('public-key-may NOTHING\n');
  await vi.waitFor(async () => {
    expect(await pay(service, id, { ...first, secret: second.secret }), 'revoked public key').toBe(401);
    expect(await pay(service, id, { ...second, secret: first.secret }), 'revoked secret').toBe(401);
    expect(await pay(service, id, publicOnly), 'no secret').toBe(403);
  }, FORGETTING);
  expect(await pay(service, id, second)).toBe(201);

  service.child.kill('SIGTERM');
  expect((await service.ended).code).toBe(0);
  // Without the service, the command starts the database itself, and stops it.
  expect(await account('list')).toContain(`${id}  `);
  const keys = await account('keys', id);
  expect(keys.split('\n').filter((line) => line.includes(' revoked '))).toHaveLength(2);
  expect(keys.trim().split('\n')).toHaveLength(4);
  expect(keys).not.toContain('sk_');
});

it('the account command creates keys with the requested prefix, and the service accepts them', async () => {
  const service = await startService({ DATA_DIR });
  const created = await account('create', '--name', 'Shop', '--environment', 'sandbox');
  const id = shown(created, 'account id');
  const keys = { publicKey: shown(created, 'public key'), secret: shown(created, 'secret') };
  expect(keys.publicKey).toMatch(/^sandbox_pk_[0-9a-f]{32}$/);
  expect(keys.secret).toMatch(/^sandbox_sk_[0-9a-f]{64}$/);
  const production = shown(await account('add-public-key', id, '--environment', 'prod'), 'public key');
  expect(production).toMatch(/^prod_pk_[0-9a-f]{32}$/);
  const secret = shown(await account('add-secret', id, '--environment', 'prod'), 'secret');
  expect(secret).toMatch(/^prod_sk_[0-9a-f]{64}$/);
  expect(await pay(service, id, keys)).toBe(201);
  expect(await pay(service, id, { publicKey: production, secret })).toBe(201);
});

/** Runs a command that must succeed on the service's own database, and returns its output. */
async function account(...args: string[]): Promise<string> {
  const { code, stdout, stderr } = await spawnCommand('account', { DATA_DIR }, ...args);
  expect([code, stderr], args.join(' ')).toEqual([0, '']);
  return stdout;
}

/** Returns the value after a name in a command's output. */
function shown(output: string, name: string): string {
  return new RegExp(`^${name} +(\\S+)$`, 'm').exec(output)?.[1] ?? '';
}

/** Pays with an account's keys: by card or, without a secret, by a wallet that redirects. @returns the HTTP status. */
async function pay(
  service: ServiceProcess,
  accountId: string,
  keys: { publicKey: string; secret?: string },
): Promise<number> {
  const { publicKey, secret } = keys;
  const request = secret === undefined ? walletPayment() : cardPayment();
  const response = await fetch(`${service.url}/v1/payments`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      connection: 'close',
      'x-idempotency-key': randomUUID(),
      'public-api-key': publicKey,
      ...(secret !== undefined && { 'private-secret-key': secret }),
    },
    body: JSON.stringify({ ...request, account_id: accountId }),
  });
  await response.arrayBuffer();
  return response.status;
}
