import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import { claimPayment } from '#src/store/engine/claim-payment.ts';
import { AlreadyUsedError, MAX_SESSION_PAYMENTS } from '#src/store/tables/single-uses.ts';
import { attemptToClaim } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ACCOUNT_TWO } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, checkout_session, one_time_token, single_use' });

beforeAll(async () => {
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Another')", [ACCOUNT_TWO]);
});

/** Adds a session of version 3 that accepts one more payment. */
async function addSession(set = '', account = ACCOUNT_ONE): Promise<string> {
  const id = randomUUID();
  await tables.query(
    `INSERT INTO checkout_session (account_id, id, version, payments, expires_at)
     VALUES ($1, $2, 3, $3, now() + interval '1 h')`,
    [account, id, MAX_SESSION_PAYMENTS - 1],
  );
  if (set) await tables.query(`UPDATE checkout_session SET ${set} WHERE id = $1`, [id]);
  return id;
}

async function addToken(set = '', account = ACCOUNT_ONE): Promise<string> {
  const id = randomUUID();
  await tables.query(
    `INSERT INTO one_time_token (account_id, id, card, fingerprint, sealed, expires_at)
     VALUES ($1, $2, '', $2, 'sealed', now() + interval '1 h')`,
    [account, id],
  );
  if (set) await tables.query(`UPDATE one_time_token SET ${set} WHERE id = $1`, [id]);
  return id;
}

const claimWith = (used: { session?: { id: string; version: number }; oneTimeToken?: string }) => {
  const { claim } = attemptToClaim();
  return { paymentId: claim.paymentId, claimed: claimPayment(database, { ...claim, ...used }) };
};
const everything = async () => [
  await tables.query('SELECT * FROM payment'),
  await tables.query('SELECT * FROM transaction'),
  await tables.query('SELECT * FROM checkout_session ORDER BY account_id, id'),
  await tables.query('SELECT * FROM one_time_token ORDER BY account_id, id'),
  await tables.query('SELECT * FROM single_use'),
];

it('a claim uses its session and its token, and no others', async () => {
  const [id, oneTimeToken] = [await addSession(), await addToken()];
  await tables.query('UPDATE checkout_session SET payments = 4');
  await addSession();
  await addToken();
  const { paymentId, claimed } = claimWith({ session: { id, version: 3 }, oneTimeToken });
  expect(await claimed).toBe(true);
  const uses = await tables.query('SELECT object_id, payment_id FROM single_use ORDER BY object_id');
  expect(uses).toEqual(
    [id, oneTimeToken].toSorted().map((object_id) => ({ object_id, payment_id: paymentId })),
  );
  expect(await tables.query('SELECT payments, payment_id FROM checkout_session ORDER BY payments')).toEqual([
    { payments: 5, payment_id: paymentId },
    { payments: MAX_SESSION_PAYMENTS - 1, payment_id: null },
  ]);
  expect(await tables.query('SELECT sealed FROM one_time_token ORDER BY sealed')).toEqual([
    { sealed: 'sealed' },
    { sealed: null },
  ]);
});

it.each<[string, () => Promise<Parameters<typeof claimWith>[0]>]>([
  [
    'a session that has changed',
    async () => ({ session: { id: await addSession('version = 4'), version: 3 } }),
  ],
  [
    'a session that has expired',
    async () => ({ session: { id: await addSession('expires_at = now()'), version: 3 } }),
  ],
  [
    'a session at its limit of payments',
    async () => ({ session: { id: await addSession('payments = payments + 1'), version: 3 } }),
  ],
  [
    'another account’s session',
    async () => ({ session: { id: await addSession('', ACCOUNT_TWO), version: 3 } }),
  ],
  ['a session that does not exist', async () => ({ session: { id: randomUUID(), version: 3 } })],
  ['a token that was used', async () => ({ oneTimeToken: await addToken('sealed = NULL') })],
  ['a token that has expired', async () => ({ oneTimeToken: await addToken('expires_at = now()') })],
  ['another account’s token', async () => ({ oneTimeToken: await addToken('', ACCOUNT_TWO) })],
  [
    'a token that was used, with a session that was not',
    async () => ({
      session: { id: await addSession(), version: 3 },
      oneTimeToken: await addToken('sealed = NULL'),
    }),
  ],
])('a claim with %s is refused and writes nothing', async (_what, add) => {
  const used = await add();
  const before = await everything();
  await expect(claimWith(used).claimed).rejects.toBeInstanceOf(AlreadyUsedError);
  expect(await everything()).toEqual(before);
});

it('a session and a token serve one payment, even in a race', async () => {
  const used = { session: { id: await addSession('payments = 0'), version: 3 } };
  const token = { oneTimeToken: await addToken() };
  for (const objects of [used, token]) {
    const results = await Promise.allSettled([1, 2, 3].map(() => claimWith(objects).claimed));
    expect(results.filter(({ status }) => status === 'fulfilled')).toHaveLength(1);
  }
});
