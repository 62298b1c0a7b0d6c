import { createHmac, randomBytes } from 'node:crypto';
import { Webhook } from 'standardwebhooks';
import { Secret } from '#src/secret.ts';
import type { SealedCredentials } from '#src/store/tables/webhooks.ts';
import type { CardVault } from '#src/vault/card-vault.ts';

/** The vault, which seals a secret like a card number, bound to the webhook's id instead of a token. */
export type SecretVault = Pick<CardVault, 'seal' | 'open'>;

const SECRET_BYTES = 32;

/** Makes a signing secret. @returns the secret in its displayable form, shown only once, and in its stored form. */
export async function newSigningSecret(
  vault: SecretVault,
  webhookId: string,
): Promise<{ shown: string; sealed: string }> {
  const shown = `whsec_${randomBytes(SECRET_BYTES).toString('base64')}`;
  return { shown, sealed: await vault.seal(new Secret(shown), webhookId) };
}

/** Opens a sealed secret in order to show it again. @throws as the vault's `open`. */
export async function openSecret(vault: SecretVault, webhookId: string, sealed: string): Promise<string> {
  return (await vault.open(sealed, webhookId)).reveal();
}

/** Credentials that a receiver requires in addition to the signature; '' for any that it does not require. */
export type Credentials = { readonly apiKey: string; readonly secret: string; readonly hmacKey: string };

/** Seals a receiver's credentials. */
export async function sealCredentials(
  vault: SecretVault,
  webhookId: string,
  { apiKey, secret, hmacKey }: Credentials,
): Promise<SealedCredentials> {
  const headers = Object.keys(credentialHeaders({ apiKey, secret, hmacKey }, ''));
  if (headers.length === 0) return { sealed: undefined, headers };
  const stored = new Secret(JSON.stringify({ apiKey, secret, hmacKey }));
  return { sealed: await vault.seal(stored, webhookId), headers };
}

function credentialHeaders({ apiKey, secret, hmacKey }: Credentials, body: string): Record<string, string> {
  return {
    ...(apiKey !== '' && { 'x-api-key': apiKey }),
    ...(secret !== '' && { 'x-secret': secret }),
    ...(hmacKey !== '' && {
      'x-hmac-signature': createHmac('sha256', hmacKey).update(body).digest('base64'),
    }),
  };
}

const NO_CREDENTIALS: Credentials = { apiKey: '', secret: '', hmacKey: '' };

/** Returns the headers that authenticate our messages: Standard Webhooks, and the receiver's credentials. */
export type Sign = (messageId: string, time: Date, body: string) => Record<string, string>;

/**
 * Opens a webhook's sealed secrets, each of which signs, and its receiver's credentials.
 *
 * @throws as the vault's `open`.
 */
export async function openSigner(
  vault: SecretVault,
  webhookId: string,
  sealed: { readonly secrets: readonly string[]; readonly credentials: string | undefined },
): Promise<Sign> {
  const keys = await Promise.all(
    sealed.secrets.map(async (one) => new Webhook(await openSecret(vault, webhookId, one))),
  );
  const credentials: Credentials = sealed.credentials
    ? JSON.parse(await openSecret(vault, webhookId, sealed.credentials))
    : NO_CREDENTIALS;
  return (messageId, time, body) => ({
    ...credentialHeaders(credentials, body),
    'webhook-id': messageId,
    'webhook-timestamp': String(Math.floor(time.getTime() / 1000)),
    'webhook-signature': keys.map((key) => key.sign(messageId, time, body)).join(' '),
  });
}
