import { randomUUID } from 'node:crypto';
import { fromBinary } from '@bufbuild/protobuf';
import { type CardData, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { AttemptCard, Method } from '#src/connectors/port/attempt.ts';
import { Secret } from '#src/secret.ts';
import { ServiceError } from '#src/service-error.ts';
import type { StoredToken } from '#src/store/tables/one-time-tokens.ts';
import type { VaultedToken } from '#src/store/tables/stored-objects.ts';
import { type CardVault, VaultKeyMissingError } from '#src/vault/card-vault.ts';
import { openTokenCard } from '#src/vault/token-card.ts';
import type { BinTable } from './bin-table.ts';
import { cardData, cardFingerprint } from './card.ts';
import type { RequestedMethod } from './payment-method.ts';

/** Dependencies of readCard. */
export type CardDeps = {
  readonly vault: CardVault;
  /** Key for the fingerprints that distinguish an account's cards. */
  readonly fingerprintKey: Uint8Array;
};

/** A card in two forms: its displayable data, and the card to send to the provider. */
export type PayerCard = {
  readonly data: CardData;
  /** Keyed hash of the number; undefined for a stored card that has none. */
  readonly fingerprint: string | undefined;
  readonly attempt: AttemptCard;
};

/** Returns the card of a payment, whether sent, stored, or held by a one-time token; undefined for other methods. */
export async function readCard(
  deps: CardDeps,
  bins: BinTable,
  method: RequestedMethod,
  accountId: string,
): Promise<PayerCard | undefined> {
  if (method.by !== 'card') return undefined;
  const { card } = method;
  switch (card.source) {
    case 'sent': {
      const { number, securityCode } = card.input;
      const fingerprint = cardFingerprint(deps.fingerprintKey, accountId, number);
      const data = cardData(card.input, bins(number));
      return { data, fingerprint, attempt: attemptCard(data, new Secret(number), securityCode) };
    }
    case 'token':
      return readTokenCard(deps.vault, card.token);
    case 'stored':
      return readStoredCard(deps.vault, card.stored, card.securityCode);
  }
}

async function readStoredCard(
  vault: CardVault,
  stored: VaultedToken | undefined,
  securityCode: string,
): Promise<PayerCard> {
  if (!stored?.card) throw new Error(`stored method ${stored?.id} holds no card`);
  // The interface specifies security_code_length 0 for every payment with a vaulted token, even if a code was sent.
  const data = fromBinary(CardDataSchema, stored.card.data);
  const number = await orUnreadable(vault.open(stored.card.number, stored.id));
  return { data, fingerprint: stored.card.fingerprint, attempt: attemptCard(data, number, securityCode) };
}

async function readTokenCard(vault: CardVault, token: StoredToken | undefined): Promise<PayerCard> {
  if (!token) throw new Error('the one-time token found earlier is missing');
  const data = fromBinary(CardDataSchema, token.card);
  const { number, securityCode } = await orUnreadable(openTokenCard(vault, token.sealed, token.id));
  const attempt = { ...attemptCard(data, number, ''), securityCode };
  return { data, fingerprint: token.fingerprint, attempt };
}

/** Awaits an opened card. If its key was removed too early, the payment is refused until the key is restored. */
async function orUnreadable<T>(opened: Promise<T>): Promise<T> {
  try {
    return await opened;
  } catch (error) {
    if (!(error instanceof VaultKeyMissingError)) throw error;
    const message = 'the stored card cannot be read now; nothing was sent; retry later with the same key';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { cause: error });
  }
}

function attemptCard(data: CardData, number: Secret, securityCode: string): AttemptCard {
  return {
    number,
    securityCode: securityCode ? new Secret(securityCode) : undefined,
    holderName: data.holderName,
    expirationMonth: data.expirationMonth,
    expirationYear: data.expirationYear,
  };
}

/**
 * Returns the fingerprint of a wallet that is charged without its payer; '' for other methods.
 *
 * @param vaultedToken the stored method's token, as sent; '' if none was sent.
 */
export function walletFingerprint(
  { fingerprintKey }: Pick<CardDeps, 'fingerprintKey'>,
  { by }: Pick<Method, 'by'>,
  vaultedToken: string,
  accountId: string,
): string {
  return by === 'wallet' ? cardFingerprint(fingerprintKey, accountId, vaultedToken || randomUUID()) : '';
}
