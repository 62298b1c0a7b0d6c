import { randomBytes } from 'node:crypto';
import { decodeProtectedHeader } from 'jose';
import { describe, expect, it } from 'vitest';
import { Secret } from '#src/secret.ts';
import { cardVault } from '#src/vault/card-vault.ts';

const CARD = '4111111111111111';
const [first, second] = [randomBytes(32), randomBytes(32)];
const keys = (...entries: [string, Uint8Array][]) => new Map(entries);

describe('the vault', () => {
  const vault = cardVault(keys(['k1', first]));

  it('the vault returns a stored number as a secret', async () => {
    const sealed = await vault.seal(new Secret(CARD), 'token');
    const opened = await vault.open(sealed, 'token');
    expect(opened.reveal()).toBe(CARD);
    expect(`${opened} ${JSON.stringify({ opened })}`).toBe('[secret] {"opened":"[secret]"}');
  });

  it('the vault seals a card as a JWE that names its key and token and differs each time', async () => {
    const [one, two] = [await vault.seal(new Secret(CARD), 't'), await vault.seal(new Secret(CARD), 't')];
    expect(decodeProtectedHeader(one)).toMatchObject({
      ...{ alg: 'A256GCMKW', enc: 'A256GCM', kid: 'k1', sub: 't' },
    });
    expect(one.split('.')).toHaveLength(5);
    expect(one).not.toBe(two);
    expect(Buffer.from(one, 'base64url').toString('latin1')).not.toContain(CARD);
  });

  it('the vault does not open a card under another token', async () => {
    const sealed = await vault.seal(new Secret(CARD), 'mine');
    await expect(vault.open(sealed, 'theirs')).rejects.toThrow('belongs to another token');
  });

  it('the vault does not open a card that was altered in any part', async () => {
    const sealed = await vault.seal(new Secret(CARD), 'token');
    const parts = sealed.split('.');
    for (const [i, part] of parts.entries()) {
      // The first character of a part encodes six complete bits.
      const altered = parts.with(i, (part[0] === 'A' ? 'B' : 'A') + part.slice(1)).join('.');
      await expect(vault.open(altered, 'token')).rejects.toThrow();
      await expect(vault.open(parts.with(i, '').join('.'), 'token')).rejects.toThrow();
    }
    // A short tag is easy to guess.
    await expect(vault.open(parts.with(4, parts[4]?.slice(0, 6) ?? '').join('.'), 'token')).rejects.toThrow();
  });

  it('the vault does not open a card with another key of the same ID', async () => {
    const sealed = await vault.seal(new Secret(CARD), 'token');
    await expect(cardVault(keys(['k1', second])).open(sealed, 'token')).rejects.toThrow();
  });

  it('the vault does not open a card that claims to need no key', async () => {
    const header = Buffer.from(JSON.stringify({ alg: 'dir', enc: 'A256GCM', kid: 'k1', sub: 't' }));
    const forged = `${header.toString('base64url')}..AAAAAAAAAAAAAAAA.AAAA.AAAAAAAAAAAAAAAAAAAAAA`;
    await expect(vault.open(forged, 't')).rejects.toThrow();
  });

  it('the vault opens old cards after a rotation, and seals with the new key', async () => {
    const old = await vault.seal(new Secret(CARD), 'token');
    const rotated = cardVault(keys(['k2', second], ['k1', first]));
    expect((await rotated.open(old, 'token')).reveal()).toBe(CARD);
    expect(decodeProtectedHeader(await rotated.seal(new Secret(CARD), 'token')).kid).toBe('k2');
    await expect(cardVault(keys(['k2', second])).open(old, 'token')).rejects.toThrow('no key "k1"');
  });

  it('the vault requires a key', () => {
    expect(() => cardVault(new Map())).toThrow('no key');
  });
});
