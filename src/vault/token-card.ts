import { Secret } from '#src/secret.ts';
import type { CardVault } from './card-vault.ts';

/** A card as stored in a one-time token. */
export type TokenCard = { readonly number: Secret; readonly securityCode: Secret | undefined };

/**
 * Seals a card for a one-time token, including the security code. The code may be stored until its payment is
 * authorized (PCI DSS 3.3.2), and is deleted together with the number.
 */
export function sealTokenCard(vault: CardVault, card: TokenCard, token: string): Promise<string> {
  const code = card.securityCode?.reveal() ?? '';
  return vault.seal(new Secret(`${card.number.reveal()} ${code}`), token);
}

/** Opens a one-time token's card. @throws as the vault's `open`. */
export async function openTokenCard(vault: CardVault, sealed: string, token: string): Promise<TokenCard> {
  const [number = '', code = ''] = (await vault.open(sealed, token)).reveal().split(' ');
  return { number: new Secret(number), securityCode: code ? new Secret(code) : undefined };
}
