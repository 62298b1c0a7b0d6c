import { expect, it } from 'vitest';
import { run as account } from '#src/commands/account.ts';
import { run as doctor } from '#src/commands/doctor.ts';
import { readConfig } from '#src/config.ts';
import { ONE, PUBLIC_ONE, restCalls, TWO } from '../customers/calls.ts';
import { TERMS } from '../customers/checkout.ts';
import { signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { outputOf, runCommand } from '../support/run-command.ts';
import { startTestServer } from '../support/server.ts';
import { SMALL } from '../support/small-catalogue.ts';

const READ_KEY = 'op_sandbox_read';

onService({ config: { operatorReadKeys: [READ_KEY] } });

/** Starts a service without the sandbox on the data of the service with it, for one piece of work. */
async function withoutSandbox(work: (url: string) => Promise<void>): Promise<void> {
  const { operatorKeys, operatorReadKeys } = readConfig({ SANDBOX: 'off' });
  const off = await startTestServer({
    config: { sandbox: false, operatorKeys, operatorReadKeys, environment: () => 'key' },
    catalogue: SMALL.replace('$SANDBOX_URL', 'http://127.0.0.1:1'),
    databaseUrl: server.databaseUrl,
    keys: server.keys,
  });
  try {
    await work(off.url);
  } finally {
    await off.close();
  }
}

it('a service without the sandbox refuses the sandbox’s keys, sessions and operators on the same data', async () => {
  const call = restCalls(server.url);
  const opened = await call('POST', '/v1/checkout/sessions', TERMS);
  const session = opened.json.checkout_session;
  // A key that was added to an account of the sandbox belongs to the sandbox too.
  const environment = { DATABASE_URL: server.databaseUrl };
  const added = await outputOf(account, environment, 'add-secret', ACCOUNT_ONE);
  const secret = /^secret +(\S+)$/m.exec(added)?.[1] ?? '';
  const operator = await signIn(server, READ_KEY);
  expect((await operator.get('/payments')).status).toBe(200);

  await withoutSandbox(async (url) => {
    const off = restCalls(url);
    for (const keys of [ONE, TWO, { ...ONE, 'private-secret-key': secret }]) {
      const { status, json } = await off('GET', '/v1/payments', undefined, keys);
      expect([status, json.code]).toEqual([401, 'INVALID_CREDENTIALS']);
    }
    const seen = await off('GET', `/v1/checkout/sessions/${session}`, undefined, PUBLIC_ONE);
    expect([seen.status, seen.json.code]).toEqual([401, 'INVALID_CREDENTIALS']);
    expect((await fetch(`${url}/checkout/${session}`)).status).toBe(404);
    const dashboard = { redirect: 'manual', headers: { cookie: operator.cookie } } as const;
    expect((await fetch(`${url}/dashboard/payments`, dashboard)).status).toBe(303);
  });
  expect((await fetch(`${server.url}/checkout/${session}`)).status).toBe(200);
  expect((await call('GET', '/v1/payments')).status).toBe(200);
});

it('the doctor fails while keys of the sandbox are valid, and close-sandbox revokes all of them', async () => {
  const environment = {
    ...{
      DATABASE_URL: server.databaseUrl,
      VAULT_KEYS: `a:${'A'.repeat(43)}=`,
      HASH_KEY: `${'A'.repeat(43)}=`,
    },
  };
  const finding = async (sandbox: string) =>
    (await runCommand(doctor, { ...environment, SANDBOX: sandbox })).stdout.match(
      /^.* sandbox keys: .*$/m,
    )?.[0];
  const [{ keys } = { keys: 0 }] = await tables.query(
    'SELECT (SELECT count(*) FROM public_key)::integer + (SELECT count(*) FROM secret_key)::integer AS keys',
  );
  expect(await finding('off')).toMatch(new RegExp(`^FAILED {3}sandbox keys: ${keys} valid .* are refused`));
  expect(await finding('on')).toMatch(/^FAILED {3}sandbox keys: .* are accepted, since SANDBOX is on$/);
  const run = (...args: string[]) => outputOf(account, environment, ...args);
  expect(await run('list')).toMatch(/ sandbox.* Sandbox account one$/m);
  const own = await run('create', '--name', 'Shop');
  expect(await run('close-sandbox')).toBe(`revoked ${keys} keys of the sandbox\n`);
  expect(await run('close-sandbox')).toBe('revoked 0 keys of the sandbox\n');
  expect(await finding('off')).toBeUndefined();
  expect(await run('audit', ACCOUNT_ONE)).toMatch(/ close-sandbox {2}pk_sandbox_one$/m);
  const unrevoked = await tables.query('SELECT public_key FROM public_key WHERE revoked_at IS NULL');
  expect(unrevoked).toEqual([{ public_key: /^public key +(\S+)$/m.exec(own)?.[1] }]);
});
