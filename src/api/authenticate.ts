import { hash, timingSafeEqual } from 'node:crypto';
import { INVALID_CREDENTIALS_MESSAGE, ServiceError } from '#src/service-error.ts';
import type { AccountKeys, PublicKeyMay } from '#src/store/tables/accounts.ts';

/** Reads a header (gRPC: metadata) of the call by its lower-case name. */
export type ReadHeader = (name: string) => string | undefined;

/** An operator of the installation. */
export type Operator = {
  /** Names the key without revealing it, such as `operator-3f2a91c0`; with the client's address in the audit log. */
  readonly actor: string;
  /** The key is one of OPERATOR_READ_KEYS. */
  readonly mayOnlyRead: boolean;
};

/** The account that a call's keys identify, with its settings. */
export type Credentials = {
  readonly accountId: string;
  readonly secretPresented: boolean;
  /** Account setting: what the public key may do alone. */
  readonly publicKeyMay?: PublicKeyMay;
  /** Account setting: authorizations are shown as AUTHORIZED, not as purchases. */
  readonly tellsAuthorized?: boolean;
  /** Account setting: origins whose pages may call with the public key alone. */
  readonly allowedOrigins?: readonly string[];
  /** The operator, if the key is an operator's. */
  readonly operator?: Operator;
};

/**
 * Refusal of wrong credentials. The caller gets the same error whatever the cause; the log gets the account, if known.
 */
export class InvalidCredentialsError extends ServiceError {
  readonly accountId: string | undefined;

  constructor(accountId: string | undefined) {
    super('INVALID_CREDENTIALS', INVALID_CREDENTIALS_MESSAGE);
    this.accountId = accountId;
  }
}

/**
 * Runs a look-up of keys, or refuses it if too many calls are working.
 *
 * @param recalled the credentials last found for these keys, if any.
 */
export type LimitLookUp = <T>(recalled: Credentials | undefined, run: () => Promise<T>) => Promise<T>;

/**
 * Returns the credentials of a call.
 *
 * @throws InvalidCredentialsError, identical for a missing or unknown public key and a wrong secret.
 * @throws ServiceError AUTHORIZATION_REQUIRED if the account requires the secret for every call.
 */
export type Authenticate = (header: ReadHeader, limitLookUp?: LimitLookUp) => Promise<Credentials>;

/** Lifetime of cached keys, within which a revoked key stops working everywhere. */
const CACHE_MS = 5_000;
const MAX_CACHED = 10_000;
const MAX_KEY_LENGTH = 255;
const NO_HASH = Buffer.alloc(32);

/**
 * Creates the function that checks the key headers.
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
    if (recalled && cached.until > performance.now()) return requireMayCall(recalled);
    // Before a refusal, the database is read once, whether the key is unknown or the secret is wrong. So the timing
    // does not reveal which was wrong, and a new secret works as soon as it is issued. Only keys that are too long are
    // refused without a read. The cache lifetime starts before the read: a key may be revoked during it.
    const until = performance.now() + CACHE_MS;
    const keys = await limitLookUp(recalled, () => find(publicKey));
    if (keys && until >= (cache.get(publicKey)?.until ?? 0)) {
      if (cache.size >= MAX_CACHED) cache.clear();
      cache.set(publicKey, { keys, until });
    }
    const credentials = check(keys, secret);
    if (!credentials) throw new InvalidCredentialsError(keys?.accountId);
    return requireMayCall(credentials);
  };
}

/** Compares in constant time. For an unknown key, the secret is compared with a hash that no secret matches. */
function check(keys: AccountKeys | undefined, secret: string | undefined): Credentials | undefined {
  const presented = hash('sha256', secret ?? '', 'buffer');
  let matches = false;
  for (const known of keys?.secretHashes ?? [NO_HASH]) {
    if (timingSafeEqual(presented, known)) matches = true;
  }
  if (!keys) return undefined;
  if (secret !== undefined && !matches) return undefined;
  const { secretHashes: _, ...account } = keys;
  return { ...account, secretPresented: secret !== undefined };
}

/** Returns the credentials if they may make any call at all. @throws ServiceError AUTHORIZATION_REQUIRED. */
function requireMayCall(credentials: Credentials): Credentials {
  const { secretPresented, publicKeyMay } = credentials;
  if (secretPresented || publicKeyMay !== 'NOTHING') return credentials;
  const message =
    'the account’s setting public_key_may is NOTHING: every call needs private-secret-key; nothing was done';
  throw new ServiceError('AUTHORIZATION_REQUIRED', message);
}
