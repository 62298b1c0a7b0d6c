import { create } from '@bufbuild/protobuf';
import type { Bin } from '#gen/payments/v1/catalogue_pb.js';
import {
  type CardData,
  type CardDataInput,
  CardDataSchema,
  ThreeDSecureSchema,
} from '#gen/payments/v1/payment_method_pb.js';
import { cardBrand, iinOf } from '#src/card-number.ts';
import { keyedHash } from '#src/keyed-hash.ts';

/**
 * Returns the displayable data of a card for the record, without its fingerprint, which is shown only once a provider
 * has approved the card: otherwise anyone could compute the fingerprint of any number, and compare.
 *
 * @param bin the catalogue's entry for the issuer, if any.
 */
export function cardData(card: CardDataInput, bin: Bin | undefined): CardData {
  return create(CardDataSchema, {
    holderName: card.holderName,
    iin: iinOf(card.number),
    lfd: card.number.slice(-4),
    numberLength: card.number.length,
    securityCodeLength: card.securityCode.length,
    brand: cardBrand(card.number),
    issuerName: bin?.issuerName || undefined,
    issuerCode: bin?.issuerCode || undefined,
    countryCode: bin?.countryCode || undefined,
    category: bin?.category || undefined,
    type: bin?.type || undefined,
    threeDSecure: create(ThreeDSecureSchema),
    expirationMonth: card.expirationMonth,
    expirationYear: (card.expirationYear ?? 0) % 100,
  });
}

/** Returns a card's display name, such as "VISA ****1111". */
export function cardName({ brand, lfd }: Pick<CardData, 'brand' | 'lfd'>): string {
  return `${brand || 'CARD'} ****${lfd}`;
}

/**
 * Returns a keyed hash of a card number in UUID form. It is stable within an account, differs between accounts, and
 * does not reveal the number without the key (PCI DSS 3.5.1.1).
 */
export function cardFingerprint(key: Uint8Array, accountId: string, cardNumber: string): string {
  return keyedHash(key, `${accountId}:${cardNumber}`);
}
