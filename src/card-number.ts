import creditCardType from 'credit-card-type';

/**
 * Returns the leading digits of a card number that may be shown: 8 for numbers of 16 digits or more (ISO/IEC
 * 7812-1:2017), 6 for shorter numbers, and fewer for numbers under 12 digits. No scheme issues such short numbers, and
 * their first and last digits together would be nearly the whole number.
 */
export function iinOf(number: string): string {
  if (number.length >= 16) return number.slice(0, 8);
  return number.slice(0, number.length >= 12 ? 6 : number.length - 8);
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
