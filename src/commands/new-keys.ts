import { createHash, randomBytes, randomUUIDv7 } from 'node:crypto';

const PUBLIC_KEY_BYTES = 16;
const SECRET_BYTES = 32;

/** A new public key: `pk_` and 32 hexadecimal digits, after a prefix. */
export function newPublicKey(prefix: string): string {
  return `${prefix}pk_${randomBytes(PUBLIC_KEY_BYTES).toString('hex')}`;
}

/** A new secret: `sk_` and 64 hexadecimal digits, after a prefix; with its id and the hash that is stored of it. */
export function newSecret(prefix: string): { id: string; secret: string; hash: Uint8Array } {
  const secret = `${prefix}sk_${randomBytes(SECRET_BYTES).toString('hex')}`;
  return { id: randomUUIDv7(), secret, hash: createHash('sha256').update(secret).digest() };
}

/** Clients take what stands before the first `_` for the environment, so the word has none itself. */
const ENVIRONMENT = /^[a-z][a-z0-9-]{0,30}$/;

/** The prefix of an environment's keys, such as `sandbox_`; empty for none, undefined for what is no such word. */
export function keyPrefix(environment: string | undefined): string | undefined {
  if (environment === undefined) return '';
  return ENVIRONMENT.test(environment) ? `${environment}_` : undefined;
}
