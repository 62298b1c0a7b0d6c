import { randomUUID } from 'node:crypto';
import { expect } from 'vitest';
import type { Tables } from './tables.ts';

/** Rows of other payments, which a statement about a payment must not touch. */
export type Bystanders = {
  /** Another account that has a payment, a transaction and a card with the same ids. */
  readonly otherAccount: string;
  expectUntouched(): Promise<void>;
};

/**
 * Copies a payment with its current transactions and cards: to another account with the same ids, and to the same
 * account with other ids.
 */
export async function addBystanders(tables: Tables, paymentId: string): Promise<Bystanders> {
  const otherAccount = randomUUID();
  const neighbour = randomUUID();
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Another account')", [otherAccount]);
  const copy = async (table: string, where: string, changes: Record<string, string>) => {
    const pairs = Object.entries(changes).map(([column, value]) => `'${column}', ${value}`);
    await tables.query(
      `INSERT INTO ${table} SELECT (jsonb_populate_record(t, jsonb_build_object(${pairs}))).* FROM ${table} t
       WHERE t.account_id <> '${otherAccount}' AND ${where}`,
    );
  };
  const ofPayment = `payment_id = '${paymentId}'`;
  const cards = `id IN (SELECT vaulted_token FROM transaction WHERE ${ofPayment})`;
  const twin = { account_id: `'${otherAccount}'` };
  await copy('vaulted_token', cards, twin);
  await copy('payment', `id = '${paymentId}'`, twin);
  await copy('transaction', ofPayment, twin);
  const own = { id: 'gen_random_uuid()' };
  const key = { idempotency_key: 'gen_random_uuid()::text' };
  await copy('vaulted_token', cards, own);
  await copy('payment', `id = '${paymentId}'`, { ...key, id: `'${neighbour}'` });
  await copy('transaction', ofPayment, { ...own, ...key, payment_id: `'${neighbour}'` });

  const tableRows = (table: string, columns: string) =>
    tables.query(
      `SELECT * FROM ${table} WHERE account_id = $1 OR $2 IN (${columns}) ORDER BY account_id, id`,
      [otherAccount, neighbour],
    );
  const rows = async () => [
    await tableRows('payment', 'id'),
    await tableRows('transaction', 'payment_id'),
    await tables.query(
      `SELECT * FROM vaulted_token WHERE account_id = $1
         OR id NOT IN (SELECT vaulted_token FROM transaction WHERE vaulted_token IS NOT NULL)
       ORDER BY account_id, id`,
      [otherAccount],
    ),
    await tables.query('SELECT * FROM event WHERE account_id = $1 OR payment_id = $2', [
      otherAccount,
      neighbour,
    ]),
  ];
  const before = await rows();
  return { otherAccount, expectUntouched: async () => expect(await rows()).toEqual(before) };
}
