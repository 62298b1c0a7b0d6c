import { type Capabilities, type LocalMethod, PAYERS_BANK } from '../port/capabilities.ts';

const HOUR = 60;
const DAY = 24 * HOUR;
const PAYER = 'customer_payer';

const BRAZIL = { countries: ['BR'], currencies: ['BRL'] };
const MEXICO = { countries: ['MX'], currencies: ['MXN'] };
const COLOMBIA = { countries: ['CO'], currencies: ['COP'] };

/** The provider's local methods, by its names, with its limits. */
const LOCAL_METHODS = {
  PIX: {
    ...BRAZIL,
    needs: [],
    expiry: { default: DAY, least: 1, greatest: 30 * DAY },
    refunds: 'several',
    close: true,
  },
  BOLETO: {
    ...BRAZIL,
    // The amount has ten digits in the barcode.
    greatest: 9_999_999_999n,
    needs: [
      ...['first_name', 'last_name', 'document.document_type', 'document.document_number'],
      ...['address_line_1', 'city', 'state', 'zip_code'].map((name) => `billing_address.${name}`),
    ].map((name) => `${PAYER}.${name}`),
    documents: ['CPF', 'CNPJ'],
    expiry: { default: 3 * DAY, least: HOUR, greatest: 60 * DAY },
    refunds: 'none',
    close: true,
  },
  OXXO: {
    ...MEXICO,
    needs: ['first_name', 'last_name', 'email'].map((name) => `${PAYER}.${name}`),
    expiry: { default: 3 * DAY, least: HOUR, greatest: 7 * DAY },
    refunds: 'none',
    close: false,
  },
  SPEI: {
    ...MEXICO,
    needs: [],
    expiry: { default: 3 * DAY, least: HOUR, greatest: 30 * DAY },
    refunds: 'several',
    close: true,
  },
  PSE: {
    ...COLOMBIA,
    needs: [
      PAYERS_BANK,
      ...[
        ...['first_name', 'last_name', 'email', 'ip_address', 'phone.number'],
        ...['document.document_type', 'document.document_number'],
      ].map((name) => `${PAYER}.${name}`),
    ],
    banks: ['1901', '1902', '1903'],
    expiry: { default: HOUR, least: 1, greatest: DAY },
    refunds: 'several',
    close: false,
  },
  EFECTY: {
    ...COLOMBIA,
    needs: [],
    expiry: { default: 3 * DAY, least: HOUR, greatest: 30 * DAY },
    refunds: 'none',
    close: false,
  },
} as const satisfies Record<string, LocalMethod>;

/** The provider's name of a local method. */
type MethodName = keyof typeof LOCAL_METHODS;

/** The local methods of a connection: the provider's name of each, by payment_method.type. */
export type MethodNames = Readonly<Record<string, MethodName>>;

/** Returns the local methods of a connection. @param set the setting `methods`, which has been checked. */
export function methodNames(set: Readonly<Record<string, string>>): MethodNames {
  const own = Object.fromEntries(Object.keys(LOCAL_METHODS).map((name) => [name, name]));
  return { ...own, ...set } as MethodNames;
}

/** Returns the terms of a connection's local methods, by payment_method.type. */
export function termsOf(methods: MethodNames): Capabilities['localMethods'] {
  return Object.fromEntries(Object.entries(methods).map(([type, name]) => [type, LOCAL_METHODS[name]]));
}
