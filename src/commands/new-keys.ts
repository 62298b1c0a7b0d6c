import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto';

const PUBLIC_KEY_BYTES = 16;
const SECRET_BYTES = 32;

/** Generates a public key: the prefix, then `pk_` and 32 hexadecimal digits. */
export function newPublicKey(prefix: string): string {
  return `${prefix}pk_${randomBytes(PUBLIC_KEY_BYTES).toString('hex')}`;
}

/** Generates a secret (the prefix, then `sk_` and 64 hexadecimal digits), its id and the hash to store. */
export function newSecret(prefix: string): { id: string; secret: string; hash: Uint8Array } {
  const secret = `${prefix}sk_${randomBytes(SECRET_BYTES).toString('hex')}`;
  return { id: randomUUIDv7(), secret, hash: createHash('sha256').update(secret).digest() };
}

/**
 * Clients take the text before the first `_` as the environment, so the name of an environment must not contain `_`.
 */
const ENVIRONMENT = /^[a-z][a-z0-9-]{0,30}$/;

/**
 * Returns the prefix of an environment's keys, such as `sandbox_`; empty without an environment, undefined for an
 * invalid one.
 */
export function keyPrefix(environment: string | undefined): string | undefined {
  if (environment === undefined) return '';
  return ENVIRONMENT.test(environment) ? `${environment}_` : undefined;
}
