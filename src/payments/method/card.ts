import { create } from '@bufbuild/protobuf';
import creditCardType from 'credit-card-type';
import type { Bin } from '#gen/payments/config/catalogue_pb.js';
import {
  type CardData,
  type CardDataInput,
  CardDataSchema,
  ThreeDSecureSchema,
} from '#gen/payments/v1/payment_method_pb.js';
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
    iin: card.number.slice(0, iinLength(card.number)),
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

/**
 * Returns the number of leading digits that may be shown: 8 for numbers of 16 digits or more (ISO/IEC 7812-1:2017), 6
 * for shorter numbers, and fewer for numbers under 12 digits. No scheme issues such short numbers, and their first and
 * last digits together would be nearly the whole number.
 */
function iinLength(number: string): number {
  if (number.length >= 16) return 8;
  return number.length >= 12 ? 6 : number.length - 8;
}

/** Returns a card's display name, such as "VISA ****1111". */
export function cardName({ brand, lfd }: Pick<CardData, 'brand' | 'lfd'>): string {
  return `${brand || 'CARD'} ****${lfd}`;
}

/** Every brand that cardBrand can return. */
export const CARD_BRANDS: readonly string[] = Object.values(creditCardType.types).flatMap((type) =>
  brandName(creditCardType.getTypeInfo(type)),
);

const BRANDS = new Map<string, string>();
const MAX_BRANDS = 10_000;

/** Returns a card's brand in capitals, such as VISA or AMERICAN_EXPRESS; "" if unknown. */
export function cardBrand(number: string): string {
  // Cached, since the library searches its whole table. Eight digits identify every brand.
  const prefix = number.slice(0, 8);
  let brand = BRANDS.get(prefix);
  if (brand === undefined) {
    brand = brandName(creditCardType(prefix)[0]);
    if (BRANDS.size >= MAX_BRANDS) BRANDS.clear();
    BRANDS.set(prefix, brand);
  }
  return brand;
}

function brandName(type: { readonly niceType: string } | undefined): string {
  return type?.niceType.toUpperCase().replace(/[^A-Z0-9]+/g, '_') ?? '';
}

/**
 * Returns a keyed hash of a card number in UUID form. It is stable within an account, differs between accounts, and
 * does not reveal the number without the key (PCI DSS 3.5.1.1).
 */
export function cardFingerprint(key: Uint8Array, accountId: string, cardNumber: string): string {
  return keyedHash(key, `${accountId}:${cardNumber}`);
}
