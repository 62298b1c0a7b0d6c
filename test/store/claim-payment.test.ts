import { expect, it } from 'vitest';
import { type Claim, claimPayment } from '#src/store/engine/claim-payment.ts';
import { claimGrouped } from '#src/store/engine/grouped-writes.ts';
import { findByKey } from '#src/store/tables/payment-keys.ts';
import { attemptToClaim } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token' });

/** Claims payments at the same time: the first claim is written alone, and the others wait and form a group. */
const claimTogether = (claims: readonly Claim[]) =>
  Promise.allSettled([attemptToClaim().claim, ...claims].map((claim) => claimGrouped(database, claim))).then(
    (results) => results.slice(1),
  );
const fulfilled = (...values: boolean[]) => values.map((value) => ({ status: 'fulfilled', value }));

it('a claim writes the same rows in a group as alone', async () => {
  const options = { leaseS: 60, connectionId: 'cards "quoted", {braced} \\', identity: 'ünïcode' };
  const first = attemptToClaim(options).claim;
  const second = { ...attemptToClaim(options).claim, createdAt: first.createdAt };
  const third = { ...attemptToClaim(options).claim, createdAt: first.createdAt };
  await claimPayment(database, first);
  expect(await claimTogether([second, third])).toEqual(fulfilled(true, true));

  const rowsOf = async ({ paymentId }: Claim) => {
    const [payment] = await tables.query('SELECT * FROM payment WHERE id = $1', [paymentId]);
    const [transaction] = await tables.query(
      'SELECT *, check_at - created_at AS lease, payer_due_at - check_at AS beyond_lease FROM transaction WHERE payment_id = $1',
      [paymentId],
    );
    const { id, idempotency_key, record, updated_at, ...samePayment } = payment as Record<string, unknown>;
    const own = ['id', 'payment_id', 'check_at', 'payer_due_at', 'created_at', 'updated_at'];
    const same = Object.entries(transaction as Record<string, unknown>).filter(
      ([name]) => !own.includes(name),
    );
    return [samePayment, Object.fromEntries(same)];
  };
  expect(await rowsOf(second)).toEqual(await rowsOf(first));
  expect(await rowsOf(third)).toEqual(await rowsOf(first));
  for (const claim of [second, third]) {
    const holder = await findByKey(database, ACCOUNT_ONE, claim.idempotencyKey);
    expect(holder).toMatchObject({ paymentId: claim.paymentId, record: Buffer.from(claim.record) });
  }
});

it('only one payment can claim a key, even if several claims in a group contain that key', async () => {
  const [held, one] = [attemptToClaim().claim, attemptToClaim().claim];
  await claimPayment(database, held);
  const again = { ...attemptToClaim().claim, idempotencyKey: held.idempotencyKey };
  const two = { ...attemptToClaim().claim, idempotencyKey: one.idempotencyKey };
  expect(await claimTogether([again, one, held, two])).toEqual(fulfilled(false, true, false, false));
  expect((await findByKey(database, ACCOUNT_ONE, one.idempotencyKey))?.paymentId).toBe(one.paymentId);
  expect(await tables.query('SELECT FROM transaction')).toHaveLength(3);
});

it('a claim with a card stores the card even when it is written with a group', async () => {
  const [plain, withCard] = [attemptToClaim().claim, attemptToClaim({ vault: true }).claim];
  expect(await claimTogether([plain, withCard])).toEqual(fulfilled(true, true));
  expect(await tables.query('SELECT id, active FROM vaulted_token')).toEqual([
    { id: withCard.vault?.token, active: false },
  ]);
});

it('an invalid claim fails alone, and the rest of its group succeeds', async () => {
  const [before, after] = [attemptToClaim().claim, attemptToClaim().claim];
  const faulty = { ...attemptToClaim().claim, merchantOrderId: 'a \0 that text cannot hold' };
  expect(await claimTogether([before, faulty, after])).toMatchObject([
    { status: 'fulfilled', value: true },
    { status: 'rejected', reason: { code: '22021' } },
    { status: 'fulfilled', value: true },
  ]);
});
