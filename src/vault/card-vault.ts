import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { Secret } from '#src/secret.ts';

/** Keys of the vault by id (`kid`): the first encrypts, all decrypt. Each is 256 random bits. */
export type VaultKeys = ReadonlyMap<string, Uint8Array>;

/** Encrypts card numbers, and decrypts them. */
export type CardVault = {
  /**
   * @returns the number as a compact JWE (RFC 7516) whose additional authenticated header names the key and the token.
   */
  seal(cardNumber: Secret, token: string): Promise<string>;
  /** @throws VaultKeyMissingError, or Error if the ciphertext is not of this token or was altered. */
  open(sealed: string, token: string): Promise<Secret>;
  /**
   * Seals the same number under the current key.
   *
   * @returns undefined if it is already under that key.
   * @throws as `open`.
   */
  reseal(sealed: string, token: string): Promise<string | undefined>;
};

/** Error for a number that is sealed under a key which the vault does not have. */
export class VaultKeyMissingError extends Error {
  override readonly name = 'VaultKeyMissingError';

  constructor(keyId: string) {
    super(`the vault has no key "${keyId}"`);
  }
}

const ALGORITHM = 'A256GCMKW';
const ENCRYPTION = 'A256GCM';

/**
 * Creates the vault of card numbers. Each number is sealed under its own content key (A256GCM), wrapped by the
 * vault's key (A256GCMKW, RFC 7518 section 4.7). So a key is rotated by putting a new one first: older ciphertexts
 * name theirs and stay readable. The header's `sub` binds a ciphertext to its token: moved to another row, it does
 * not open.
 */
export function cardVault(keys: VaultKeys): CardVault {
  const current = keys.entries().next().value;
  if (!current) throw new Error('the vault has no key');
  const [currentId, currentKey] = current;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();

  const seal: CardVault['seal'] = (cardNumber, token) =>
    new CompactEncrypt(encoder.encode(cardNumber.reveal()))
      .setProtectedHeader({ alg: ALGORITHM, enc: ENCRYPTION, kid: currentId, sub: token })
      .encrypt(currentKey);

  const open: CardVault['open'] = async (sealed, token) => {
    const { plaintext, protectedHeader } = await compactDecrypt(sealed, keyOf, {
      keyManagementAlgorithms: [ALGORITHM],
      contentEncryptionAlgorithms: [ENCRYPTION],
    });
    if (protectedHeader.sub !== token) throw new Error('the sealed card belongs to another token');
    return new Secret(decoder.decode(plaintext));
  };

  function keyOf({ kid = '' }: { kid?: string }): Uint8Array {
    const key = keys.get(kid);
    if (!key) throw new VaultKeyMissingError(kid);
    return key;
  }

  return {
    seal,
    open,
    async reseal(sealed, token) {
      if (decodeProtectedHeader(sealed).kid === currentId) return undefined;
      return seal(await open(sealed, token), token);
    },
  };
}

/** Returns the start of every number sealed under a key, whatever its token: the header's first fields. */
export function sealedPrefix(keyId: string): string {
  const header = JSON.stringify({ alg: ALGORITHM, enc: ENCRYPTION, kid: keyId, sub: '' });
  // Without the last bytes that base64 encodes together with the token: only whole groups of three.
  const fixed = Buffer.from(header.slice(0, -'"}'.length));
  return fixed.subarray(0, fixed.length - (fixed.length % 3)).toString('base64url');
}
