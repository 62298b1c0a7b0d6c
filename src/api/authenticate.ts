import { hash, timingSafeEqual } from 'node:crypto';
import { INVALID_CREDENTIALS_MESSAGE, ServiceError } from '#src/service-error.ts';
import type { AccountKeys } from '#src/store/tables/accounts.ts';

/** Reads a header (gRPC: metadata) of the call by its lower-case name. */
export type ReadHeader = (name: string) => string | undefined;

/** The account that a call's keys belong to. */
export type Credentials = {
  readonly accountId: string;
  readonly secretPresented: boolean;
  /** The account's setting: authorizations are shown as AUTHORIZED, not as purchases. */
  readonly tellsAuthorized?: boolean;
  /** The account's setting: origins whose pages may call with the public key alone. */
  readonly allowedOrigins?: readonly string[];
};

/**
 * Refusal of wrong credentials. The caller sees the same error whatever was wrong; the log gets the account, if
 * known.
 */
export class InvalidCredentialsError extends ServiceError {
  readonly accountId: string | undefined;

  constructor(accountId: string | undefined) {
    super('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
    this.accountId = accountId;
  }
}

/**
 * Looks up keys, or refuses to if too many calls are at work.
 *
 * @param recalled the caller last known for these keys, if any.
 */
export type LimitLookUp = <T>(recalled: Credentials | undefined, run: () => Promise<T>) => Promise<T>;

/**
 * Returns the credentials of a call.
 *
 * @throws InvalidCredentialsError, identical for a missing or unknown public key and a wrong secret.
 */
export type Authenticate = (header: ReadHeader, limitLookUp?: LimitLookUp) => Promise<Credentials>;

/** Lifetime of cached keys: a revoked key stops working everywhere within it. */
const CACHE_MS = 5_000;
const MAX_CACHED = 10_000;
const MAX_KEY_LENGTH = 255;
const NO_HASH = Buffer.alloc(32);

/**
 * Makes the check of the key headers.
 *
 * @param find looks up a public key in the database.
 */
export function createAuthenticate(
  find: (publicKey: string) => Promise<AccountKeys | undefined>,
): Authenticate {
  const cache = new Map<string, { keys: AccountKeys; until: number }>();

  return async function authenticate(header, limitLookUp = (_recalled, run) => run()) {
    const publicKey = header('public-api-key') ?? '';
    const secret = header('private-secret-key');
    if (publicKey.length > MAX_KEY_LENGTH || (secret?.length ?? 0) > MAX_KEY_LENGTH)
      throw new InvalidCredentialsError(undefined);

    const cached = cache.get(publicKey);
    const recalled = cached && check(cached.keys, secret);
    if (recalled && cached.until > performance.now()) return recalled;
    // A refusal reads the database once, for an unknown key as for a wrong secret, so its timing does not reveal
    // which was wrong. This also makes a secret work as soon as it is issued. Only keys that are too long are refused
    // without a read. The result counts from the start of the read: a key may be revoked before the read returns.
    const until = performance.now() + CACHE_MS;
    const keys = await limitLookUp(recalled, () => find(publicKey));
    if (keys && until >= (cache.get(publicKey)?.until ?? 0)) {
      if (cache.size >= MAX_CACHED) cache.clear();
      cache.set(publicKey, { keys, until });
    }
    const credentials = check(keys, secret);
    if (!credentials) throw new InvalidCredentialsError(keys?.accountId);
    return credentials;
  };
}

/** Always compares, and in constant time: an unknown key has one hash, which matches no secret. */
function check(keys: AccountKeys | undefined, secret: string | undefined): Credentials | undefined {
  const presented = hash('sha256', secret ?? '', 'buffer');
  let matches = false;
  for (const known of keys?.secretHashes ?? [NO_HASH]) {
    if (timingSafeEqual(presented, known)) matches = true;
  }
  if (!keys) return undefined;
  const { accountId, secretAlways, tellsAuthorized, allowedOrigins } = keys;
  const isRight = secret === undefined ? !secretAlways : matches;
  if (!isRight) return undefined;
  return { accountId, secretPresented: secret !== undefined, tellsAuthorized, allowedOrigins };
}
