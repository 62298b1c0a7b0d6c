import { CompactEncrypt, compactDecrypt, decodeProtectedHeader } from 'jose';
import { Secret } from '#src/secret.ts';

/** Keys of the vault by id (`kid`). The first encrypts; all decrypt. Each has 256 random bits. */
export type VaultKeys = ReadonlyMap<string, Uint8Array>;

/** Encrypts and decrypts card numbers. */
export type CardVault = {
  /** @returns the number as a compact JWE (RFC 7516), whose protected header names the key and the token. */
  seal(cardNumber: Secret, token: string): Promise<string>;
  /** @throws VaultKeyMissingError, or Error if the ciphertext belongs to another token or was altered. */
  open(sealed: string, token: string): Promise<Secret>;
  /**
   * Reseals a number with the current key.
   *
   * @returns undefined if it is already sealed with that key.
   * @throws as `open`.
   */
  reseal(sealed: string, token: string): Promise<string | undefined>;
};

/** Thrown for a number sealed with a key that the vault does not have. */
export class VaultKeyMissingError extends Error {
  override readonly name = 'VaultKeyMissingError';

  constructor(keyId: string) {
    super(`the vault has no key "${keyId}"`);
  }
}

const ALGORITHM = 'A256GCMKW';
const ENCRYPTION = 'A256GCM';

/**
 * Creates the vault for card numbers. Each number is sealed with a separate content key (A256GCM), which is wrapped
 * with the vault's key (A256GCMKW, RFC 7518 section 4.7). To rotate keys, put a new key first: older ciphertexts name
 * their key and stay readable. The header's `sub` binds a ciphertext to its token, so it does not open if moved to
 * another row.
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

/** Returns the common prefix of all numbers sealed with a key, whatever their token: the header's first fields. */
export function sealedPrefix(keyId: string): string {
  const header = JSON.stringify({ alg: ALGORITHM, enc: ENCRYPTION, kid: keyId, sub: '' });
  // Drops the bytes that base64 would encode together with the token, keeping only whole groups of three.
  const fixed = Buffer.from(header.slice(0, -'"}'.length));
  return fixed.subarray(0, fixed.length - (fixed.length % 3)).toString('base64url');
}
