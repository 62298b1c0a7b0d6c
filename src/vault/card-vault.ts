import { CompactEncrypt, compactDecrypt } from 'jose';
import { Secret } from '../secret.ts';

/** Keys of the vault by id (`kid`): the first encrypts, all decrypt. Each is 256 random bits. */
export type VaultKeys = ReadonlyMap<string, Uint8Array>;

/** Card numbers in, ciphertext out, and back. */
export type CardVault = {
  /** @returns the number as a compact JWE (RFC 7516), whose additional authenticated header names the key and the token. */
  seal(cardNumber: Secret, token: string): Promise<string>;
  /** @throws Error when the key is unknown, or the ciphertext is not of this token or was altered. */
  open(sealed: string, token: string): Promise<Secret>;
};

const ALGORITHM = 'A256GCMKW';
const ENCRYPTION = 'A256GCM';

/**
 * The vault of card numbers: each is sealed under a content key of its own (A256GCM), wrapped by the vault's key
 * (A256GCMKW, RFC 7518 section 4.7), so a key is rotated by putting a new one first; older tokens name theirs and stay
 * readable. The header's `sub` binds a ciphertext to its token: one moved to another row does not open.
 */
export function cardVault(keys: VaultKeys): CardVault {
  const current = keys.entries().next().value;
  if (!current) throw new Error('the vault has no key');
  const [currentId, currentKey] = current;
  const encoder = new TextEncoder();
  const decoder = new TextDecoder();

  return {
    seal(cardNumber, token) {
      return new CompactEncrypt(encoder.encode(cardNumber.reveal()))
        .setProtectedHeader({ alg: ALGORITHM, enc: ENCRYPTION, kid: currentId, sub: token })
        .encrypt(currentKey);
    },
    async open(sealed, token) {
      const { plaintext, protectedHeader } = await compactDecrypt(
        sealed,
        (header) => {
          const key = keys.get(header.kid ?? '');
          if (!key) throw new Error(`the vault has no key "${header.kid}"`);
          return key;
        },
        { keyManagementAlgorithms: [ALGORITHM], contentEncryptionAlgorithms: [ENCRYPTION] },
      );
      if (protectedHeader.sub !== token) throw new Error('the sealed card is not of this token');
      return new Secret(decoder.decode(plaintext));
    },
  };
}
