import { type Capabilities, type LocalMethod, PAYERS_BANK } from '../port/capabilities.ts';
import type { MercadoPagoSettings } from './settings.ts';

/** A payment method of Mercado Pago's, as the connector offers it. Its country is its account's. */
type Terms = Omit<LocalMethod, 'countries' | 'currencies'>;

const HOUR = 60;
const DAY = 24 * HOUR;

const payer = (...names: readonly string[]) => names.map((name) => `customer_payer.${name}`);
const addressOf = (...names: readonly string[]) => payer(...names.map((name) => `billing_address.${name}`));

/** Mercado Pago requires an e-mail address of every payer. */
const EMAIL = payer('email');
const NAMED = payer('first_name', 'last_name', 'document.document_type', 'document.document_number');

/**
 * A voucher that its payer pays in cash. Mercado Pago documents no refund of one through its API. Its payer may hold it on
 * paper, and the network that takes the cash need not know of a cancel.
 */
const VOUCHER: Terms = {
  needs: EMAIL,
  expiry: { default: 3 * DAY, least: HOUR, greatest: 29 * DAY },
  refunds: 'none',
  close: false,
};

/** The methods that the connector knows, by country and by payment_method.type. */
const METHODS: Readonly<Record<string, Readonly<Record<string, string>>>> = {
  BR: { PIX: 'pix', BOLETO: 'bolbradesco' },
  CO: { PSE: 'pse', EFECTY: 'efecty' },
  MX: { OXXO: 'oxxo' },
};

/** Terms by Mercado Pago's method; every other method is a voucher. */
const TERMS: Readonly<Record<string, Terms>> = {
  pix: {
    needs: EMAIL,
    expiry: { default: DAY, least: 30, greatest: 30 * DAY },
    refunds: 'several',
    refundableDays: 90,
    close: true,
  },
  bolbradesco: {
    ...VOUCHER,
    close: true,
    needs: [...EMAIL, ...NAMED, ...addressOf('address_line_1', 'neighborhood', 'city', 'state', 'zip_code')],
    documents: ['CPF', 'CNPJ'],
  },
  pse: {
    needs: [
      PAYERS_BANK,
      ...EMAIL,
      ...NAMED,
      ...payer('phone.number', 'ip_address'),
      ...addressOf('address_line_1', 'neighborhood', 'city', 'zip_code'),
    ],
    documents: ['CC', 'CE', 'NIT', 'TE', 'RC', 'TI', 'PAS', 'DI'],
    expiry: { default: DAY, least: 30, greatest: 29 * DAY },
    refunds: 'none',
    close: false,
  },
};

type Account = Pick<MercadoPagoSettings, 'country' | 'currency' | 'methods'>;

/** Returns Mercado Pago's name of an account's payment method; undefined if the account does not offer it. */
export function methodOf(type: string, { country, methods }: Account): string | undefined {
  return methods[type] ?? METHODS[country]?.[type];
}

/** Returns the local methods of an account, by payment_method.type. */
export function localMethodsOf(account: Account): Capabilities['localMethods'] {
  const { country, currency, methods } = account;
  const types = Object.keys({ ...METHODS[country], ...methods });
  return Object.fromEntries(
    types.map((type) => {
      const terms = TERMS[methodOf(type, account) ?? ''] ?? VOUCHER;
      return [type, { ...terms, countries: [country], currencies: [currency] }];
    }),
  );
}

/** The method whose payer chooses a bank and pays on its page. */
export const PSE = 'pse';
/** The method whose bill carries its payer's address. */
export const BOLETO = 'bolbradesco';
