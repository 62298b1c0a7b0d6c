import { hash, timingSafeEqual } from 'node:crypto';
import { type Authenticate, type Credentials, InvalidCredentialsError } from './authenticate.ts';

/** Operators belong to no account and share one rate limit. */
const OPERATOR: Credentials = { accountId: '', secretPresented: true };

/** Refusal of an operator key, identical for a missing and a wrong key. */
class InvalidOperatorKeyError extends InvalidCredentialsError {
  override readonly message = 'operator-key is missing or wrong';
}

/**
 * Creates the function that checks the header `operator-key`. It accepts no account keys.
 *
 * @param keys each permits every operator call; without keys, all calls are refused.
 */
export function createOperatorAuthenticate(keys: readonly string[]): Authenticate {
  const known = keys.map(sha256);
  return async (header) => {
    const presented = sha256(header('operator-key') ?? '');
    // Compares with every key, in constant time.
    let matches = false;
    for (const key of known) if (timingSafeEqual(presented, key)) matches = true;
    if (!matches) throw new InvalidOperatorKeyError(undefined);
    return OPERATOR;
  };
}

function sha256(text: string): Uint8Array {
  return hash('sha256', text, 'buffer');
}
