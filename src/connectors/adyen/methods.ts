import { type LocalMethod, PAYERS_BANK } from '../port/capabilities.ts';

/** The local methods that Adyen offers, by the names that merchants know. */
export type LocalName = 'PIX' | 'BOLETO' | 'OXXO' | 'PSE';

/** The wallets whose tokens Adyen accepts. */
export type WalletName = 'APPLE_PAY' | 'GOOGLE_PAY';

/** A method that a connection offers: what it is, and Adyen's own name for it. */
type Offered<Name> = { readonly is: Name; readonly adyen: string };

/** Everything that a connection offers besides cards, keyed by payment_method.type. */
export type OfferedMethods = {
  /** Methods whose payer is redirected, by Adyen's names. */
  readonly pages: ReadonlyMap<string, string>;
  readonly local: ReadonlyMap<string, Offered<LocalName>>;
  readonly walletTokens: ReadonlyMap<string, Offered<WalletName>>;
};

/** Adyen's own names for the methods that it offers without a setting. */
const LOCAL: Readonly<Record<LocalName, string>> = {
  PIX: 'pix',
  BOLETO: 'boletobancario',
  OXXO: 'oxxo',
  PSE: 'pse_payulatam',
};
const WALLETS: Readonly<Record<WalletName, string>> = { APPLE_PAY: 'applepay', GOOGLE_PAY: 'googlepay' };

/** The methods that Adyen's other names stand for: a boleto of a certain bank, and Google Pay's earlier name. */
const SIBLINGS: readonly (readonly [names: RegExp, is: LocalName | WalletName])[] = [
  [/^boletobancario_|^primeiropay_boleto$/, 'BOLETO'],
  [/^paywithgoogle$/, 'GOOGLE_PAY'],
];

/**
 * Returns the methods of a connection: those of the tables above, and those of its settings, which may give a method of
 * the tables another name at Adyen. A name that stands for none of them is a method whose payer is redirected.
 *
 * @param redirectMethods Adyen's names of methods whose payer is redirected, whatever they stand for.
 * @param methods Adyen's names of any methods.
 */
export function offeredMethods(
  redirectMethods: Readonly<Record<string, string>>,
  methods: Readonly<Record<string, string>>,
): OfferedMethods {
  const pages = new Map(Object.entries(redirectMethods));
  const local = new Map<string, Offered<LocalName>>();
  const walletTokens = new Map<string, Offered<WalletName>>();
  for (const [type, adyen] of Object.entries({ ...LOCAL, ...WALLETS, ...methods })) {
    const is = nameOf(type) ?? standsFor(adyen);
    if (is === undefined) pages.set(type, adyen);
    else if (is in LOCAL) local.set(type, { is: is as LocalName, adyen });
    else walletTokens.set(type, { is: is as WalletName, adyen });
  }
  return { pages, local, walletTokens };
}

function nameOf(type: string): LocalName | WalletName | undefined {
  const isNamed = Object.hasOwn(LOCAL, type) || Object.hasOwn(WALLETS, type);
  return isNamed ? (type as LocalName | WalletName) : undefined;
}

function standsFor(adyen: string): LocalName | WalletName | undefined {
  const named = Object.entries({ ...LOCAL, ...WALLETS }).find(([, own]) => own === adyen)?.[0];
  return (named ?? SIBLINGS.find(([names]) => names.test(adyen))?.[1]) as LocalName | WalletName | undefined;
}

/** Returns true for Adyen's name of a local method. */
export function isLocalAtAdyen(adyen: string): boolean {
  const is = standsFor(adyen);
  return is !== undefined && is in LOCAL;
}

const DAY = 1_440;
const NAME = ['customer_payer.first_name', 'customer_payer.last_name'];
const DOCUMENT = 'customer_payer.document.document_number';

/** Returns a range of one length, for a method whose expiry Adyen alone decides. */
function always(minutes: number): LocalMethod['expiry'] {
  return { default: minutes, least: minutes, greatest: minutes };
}

/**
 * The terms of Adyen's local methods. Adyen publishes no limits of their amounts. It offers no call that closes an
 * unpaid one.
 */
const TERMS: Readonly<Record<LocalName, LocalMethod>> = {
  PIX: {
    ...{ countries: ['BR'], currencies: ['BRL'], documents: ['CPF', 'CNPJ'], close: false },
    needs: [...NAME, DOCUMENT],
    expiry: { default: DAY, least: 30, greatest: DAY },
    ...{ refunds: 'several', refundableDays: 90 },
  },
  BOLETO: {
    ...{ countries: ['BR'], currencies: ['BRL'], documents: ['CPF', 'CNPJ'], close: false },
    needs: [...NAME, DOCUMENT],
    expiry: { default: 5 * DAY, least: DAY, greatest: 30 * DAY },
    ...{ expiresWithDayIn: 'America/Sao_Paulo', refunds: 'none' },
  },
  OXXO: {
    ...{ countries: ['MX'], currencies: ['MXN'], close: false },
    ...{ needs: [], expiry: always(3 * DAY), refunds: 'none' },
  },
  PSE: {
    ...{ countries: ['CO'], currencies: ['COP'], close: false },
    documents: ['CC', 'CE', 'NIT', 'TI', 'RC', 'PP'],
    needs: [
      PAYERS_BANK,
      ...NAME,
      // Adyen takes only numbers with a country code.
      ...['customer_payer.email', 'customer_payer.phone.country_code', 'customer_payer.phone.number'],
      ...['customer_payer.document.document_type', DOCUMENT],
    ],
    ...{ expiry: always(DAY), refunds: 'none' },
  },
};

/** Returns the terms of the local methods that a connection offers. */
export function termsOf({ local }: OfferedMethods): Readonly<Record<string, LocalMethod>> {
  return Object.fromEntries([...local].map(([type, { is }]) => [type, TERMS[is]]));
}
