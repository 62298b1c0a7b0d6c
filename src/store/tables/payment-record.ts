import type { Database } from '../engine/database.ts';

const GET_PAYMENT = {
  name: 'get_payment',
  text: 'SELECT record FROM payment WHERE account_id = $1 AND id = $2',
};

/** Reads the current record of an account's payment, as an encoded Payment. @param paymentId a UUID. */
export async function getPaymentRecord(
  database: Database,
  accountId: string,
  paymentId: string,
): Promise<Uint8Array | undefined> {
  const { rows } = await database.query<{ record: Buffer }>(GET_PAYMENT, [accountId, paymentId]);
  return rows[0]?.record;
}
