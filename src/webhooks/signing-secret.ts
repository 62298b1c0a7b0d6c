import { randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { Secret } from '#src/secret.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** The vault, which seals a secret as it seals a card number, bound to its webhook's id instead of a token. */
export type SecretVault = Pick<CardVault, 'seal' | 'open'>;

const SECRET_BYTES = 32;

/** Makes a signing secret. @returns the secret as it is shown, once, and as it is stored. */
export async function newSigningSecret(
  vault: SecretVault,
  webhookId: string,
): Promise<{ shown: string; sealed: string }> {
  const shown = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  return { shown, sealed: await vault.seal(new Secret(shown), webhookId) };
}

/** Opens a sealed secret, to be shown again. @throws as `open` of the vault. */
export async function openSecret(vault: SecretVault, webhookId: string, sealed: string): Promise<string> {
  return (await vault.open(sealed, webhookId)).reveal();
}

/** Returns the Standard Webhooks headers of a message. */
export type Sign = (messageId: string, time: Date, body: string) => Record<string, string>;

/**
 * Opens the sealed secrets of a webhook, to sign with each of them.
 *
 * @throws as `open` of the vault.
 */
export async function openSigner(
  vault: SecretVault,
  webhookId: string,
  sealed: readonly string[],
): Promise<Sign> {
  const keys = await Promise.all(
    sealed.map(async (one) => new Webhook((await vault.open(one, webhookId)).reveal())),
  );
  return (messageId, time, body) => ({
    'webhook-id': messageId,
    'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
    'webhook-signature': keys.map((key) => key.sign(messageId, time, body)).join(' '),
  });
}
