import type { Database } from './database.ts';

const GET_PAYMENT = {
  name: 'get_payment',
  text: 'SELECT record FROM payment WHERE account_id = $2 AND id = $1',
};

/** Reads the current record of an account's payment, an encoded Payment. @param paymentId a UUID. */
export async function getPaymentRecord(
  database: Database,
  paymentId: string,
  accountId: string,
): Promise<Uint8Array | undefined> {
  const { rows } = await database.query<{ record: Buffer }>(GET_PAYMENT, [paymentId, accountId]);
  return rows[0]?.record;
}
