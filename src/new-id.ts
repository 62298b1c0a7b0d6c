import { randomUUIDv7 } from 'node:crypto';

/** Number of digits of its account's id that an id ends with. */
const OF_ACCOUNT = 6;

/**
 * Returns a UUIDv7 that ends with the last six digits of its account's id: payers and providers return only the id, and
 * its account tells a distributed database where to look. 50 of its bits are random.
 */
export function newId(accountId: string): string {
  return randomUUIDv7().slice(0, -OF_ACCOUNT) + accountId.slice(-OF_ACCOUNT);
}
