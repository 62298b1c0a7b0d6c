import { hash, timingSafeEqual } from 'node:crypto';
import {
  type Authenticate,
  type Credentials,
  InvalidCredentialsError,
  type Operator,
} from './authenticate.ts';

/** Refusal of an operator key, identical for a missing and a wrong key. */
class InvalidOperatorKeyError extends InvalidCredentialsError {
  override readonly message = 'operator-key is missing or wrong';
}

/**
 * Creates the function that checks the header `operator-key`. It accepts no account keys. Operators belong to no account
 * and share one rate limit.
 *
 * @param keys each permits every operator call; without keys, all calls are refused.
 * @param readKeys each permits calls that change nothing.
 */
export function createOperatorAuthenticate(
  keys: readonly string[],
  readKeys: readonly string[] = [],
): Authenticate {
  const toKnown = (mayOnlyRead: boolean) => (key: string) => ({ keyHash: sha256(key), mayOnlyRead });
  const known = [...keys.map(toKnown(false)), ...readKeys.map(toKnown(true))];
  return async (header) => {
    const presented = sha256(header('operator-key') ?? '');
    // Compares with every key, in constant time.
    const [match] = known.filter(({ keyHash }) => timingSafeEqual(presented, keyHash));
    if (!match) throw new InvalidOperatorKeyError(undefined);
    const operator: Operator = { actor: operatorName(match.keyHash), mayOnlyRead: match.mayOnlyRead };
    const credentials: Credentials = { accountId: '', secretPresented: true, operator };
    return credentials;
  };
}

/** Returns the name of an operator's key, which does not reveal it. @param keyHash the key's SHA-256. */
export function operatorName(keyHash: Uint8Array): string {
  return `operator-${Buffer.from(keyHash).toString('hex').slice(0, 8)}`;
}

function sha256(text: string): Uint8Array {
  return hash('sha256', text, 'buffer');
}
