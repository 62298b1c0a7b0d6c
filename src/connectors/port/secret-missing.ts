/** Thrown by a connector that is opened without a secret that it needs. The message names the secret. */
export class SecretMissingError extends Error {
  override readonly name = 'SecretMissingError';

  constructor(secret: string) {
    super(`the secret ${secret} is required`);
  }
}
