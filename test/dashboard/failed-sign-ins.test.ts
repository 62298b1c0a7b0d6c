import { BlockList } from 'node:net';
import { expect, it } from 'vitest';
import { SANDBOX_OPERATOR_KEY } from '#src/config.ts';
import { OWN_FORM, signIn } from '../support/dashboard.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { failWrites, WAITING } from '../support/tables.ts';

const trustedProxies = new BlockList();
trustedProxies.addAddress('127.0.0.1');

// One address may have all the slots, so that its tries at the same time are all answered.
onService({ config: { trustedProxies, addressSharePercent: 100 } });

const tryWrongKey = (from: string) => trySignIn('op_guessed_wrong', from);

async function trySignIn(key: string, from: string): Promise<number> {
  const response = await fetch(`${server.url}/dashboard/sign-in`, {
    method: 'POST',
    headers: { ...OWN_FORM, 'x-forwarded-for': from },
    body: new URLSearchParams({ key }),
    redirect: 'manual',
  });
  return response.status;
}

const entries = () =>
  tables.query(
    `SELECT actor, subject, detail, date_trunc('minute', created_at) AS minute FROM audit_log
     WHERE action = 'failed-sign-in' ORDER BY id`,
  );
const triesOf = (found: readonly { readonly [column: string]: unknown }[]) =>
  found.reduce((sum, { detail }) => sum + Number(/^tries: (\d+)$/.exec(String(detail))?.[1]), 0);

it('of eight wrong keys tried at the same time, five are compared and three have to wait; a correct key never has to', async () => {
  await tables.query('BEGIN');
  await tables.query('LOCK TABLE audit_log IN EXCLUSIVE MODE');
  const tries = Array.from({ length: 8 }, () => tryWrongKey('203.0.113.9'));
  await expect.poll(() => tables.query(WAITING)).not.toEqual([]);
  await tables.query('COMMIT');
  expect((await Promise.all(tries)).sort()).toEqual([...Array(5).fill(401), ...Array(3).fill(429)]);
  for (let i = 0; i < 8; i++) {
    expect(await trySignIn(SANDBOX_OPERATOR_KEY, '203.0.113.9')).toBe(303);
    expect(await trySignIn(SANDBOX_OPERATOR_KEY, '203.0.113.10')).toBe(303);
  }
  expect(await tryWrongKey('203.0.113.10')).toBe(401);
});

it('failed sign-ins are audited per address and minute, including throttled ones, but without the key', async () => {
  const tries = Array.from({ length: 8 }, () => tryWrongKey('203.0.113.7'));
  const statuses = await Promise.all(tries);
  expect(statuses.filter((status) => status === 429)).toHaveLength(3);
  for (const address of ['2001:db8:1:2::a', '2001:db8:1:2::b']) await tryWrongKey(address);

  const all = await entries();
  const ofOne = all.filter(({ actor }) => actor === 'unknown from 203.0.113.7');
  expect(triesOf(ofOne)).toBe(8);
  expect(new Set(ofOne.map(({ minute }) => String(minute))).size).toBe(ofOne.length);
  expect(triesOf(all.filter(({ actor }) => actor === 'unknown from 2001:db8:1:2::/64'))).toBe(2);
  expect(JSON.stringify(all)).not.toContain('op_guessed');

  const operator = await signIn(server, SANDBOX_OPERATOR_KEY);
  const page = await (await operator.get('/audit')).text();
  expect(page).toContain('unknown from 203.0.113.7');
  expect(page).toMatch(/tries: \d/);
});

it('a wrong key is refused even if its audit entry cannot be written, and the failure is logged', async () => {
  const mend = await failWrites(tables, 'audit_log', 'P0001');
  expect(await tryWrongKey('203.0.113.50')).toBe(401);
  await mend();
  expect(server.logLines.join()).toContain('a failed sign-in could not be recorded');
  expect(await tryWrongKey('203.0.113.50')).toBe(401);
  expect(triesOf((await entries()).filter(({ actor }) => actor === 'unknown from 203.0.113.50'))).toBe(1);
});

it('a flood of wrong keys from many addresses leaves about a hundred audit entries a minute', async () => {
  await tables.query("DELETE FROM audit_log WHERE action = 'failed-sign-in'");
  const addresses = Array.from({ length: 300 }, (_, i) => `198.51.${100 + (i >> 8)}.${i & 255}`);
  let refused = 0;
  for (const address of addresses) if ((await tryWrongKey(address)) === 401) refused += 1;
  expect(refused).toBe(300);
  const all = await entries();
  expect(triesOf(all)).toBe(300);
  expect(all.map(({ actor }) => actor)).toContain('unknown from other addresses');
  const minutes = Map.groupBy(all, ({ minute }) => String(minute));
  // The process counts per minute of its own clock, and two such minutes may overlap one minute of the database.
  for (const [, ofMinute] of minutes) expect(ofMinute.length).toBeLessThanOrEqual(2 * 101);
});
