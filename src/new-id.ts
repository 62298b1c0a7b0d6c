import { randomUUIDv7 } from 'node:crypto';

/** An id ends with this number of digits from its account's id. */
const OF_ACCOUNT = 6;

/**
 * Returns a UUIDv7 that ends with the last six digits of its account's id. Payers and providers return only the id, and
 * a distributed database must know the account to find the row. The UUID has 50 random bits.
 */
export function newId(accountId: string): string {
  return randomUUIDv7().slice(0, -OF_ACCOUNT) + accountId.slice(-OF_ACCOUNT);
}
