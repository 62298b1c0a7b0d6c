import type { LocalMethod } from '../port/capabilities.ts';

const DAY = 1_440;
const BRAZIL = { countries: ['BR'], currencies: ['BRL'] } as const;
const MEXICO = { countries: ['MX'], currencies: ['MXN'] } as const;

/** Stripe's local methods, by Stripe's names, each with what it offers. Amounts are in hundredths. */
const METHODS = {
  pix: {
    ...BRAZIL,
    needs: [],
    expiry: { default: DAY, least: 1, greatest: 14 * DAY },
    refunds: 'several',
    close: true,
  },
  boleto: {
    ...BRAZIL,
    ...{ least: 500n, greatest: 4_999_999n },
    needs: [
      ...['first_name', 'last_name', 'email', 'document.document_number'].map(
        (name) => `customer_payer.${name}`,
      ),
      ...['address_line_1', 'city', 'state', 'zip_code'].map(
        (name) => `customer_payer.billing_address.${name}`,
      ),
    ],
    documents: ['CPF', 'CNPJ'],
    // The same day is 0 days.
    expiry: { default: 3 * DAY, least: 60, greatest: 60 * DAY },
    expiresWithDayIn: 'America/Sao_Paulo',
    refunds: 'none',
    close: true,
  },
  oxxo: {
    ...MEXICO,
    ...{ least: 1_000n, greatest: 1_000_000n },
    needs: ['first_name', 'last_name', 'email'].map((name) => `customer_payer.${name}`),
    expiry: { default: 5 * DAY, least: DAY, greatest: 7 * DAY },
    expiresWithDayIn: 'America/Mexico_City',
    refunds: 'none',
    // Shops take a printed voucher, whatever has become of its payment.
    close: false,
  },
  // A transfer itself never expires at Stripe: this is our own end.
  customer_balance: {
    ...MEXICO,
    needs: [],
    expiry: { default: 3 * DAY, least: 60, greatest: 30 * DAY },
    refunds: 'none',
    close: true,
  },
} as const satisfies Readonly<Record<string, LocalMethod>>;

/** Stripe's name for a local method. */
export type StripeMethod = keyof typeof METHODS;

/** The well-known names of Stripe's local methods. */
const WELL_KNOWN: Readonly<Record<string, StripeMethod>> = {
  PIX: 'pix',
  BOLETO: 'boleto',
  OXXO: 'oxxo',
  SPEI: 'customer_balance',
};

/** Returns the local methods of a connection, by payment_method.type. @param set the setting `methods`. */
export function methodsOf(set: Readonly<Record<string, string>>): ReadonlyMap<string, StripeMethod> {
  return new Map(Object.entries({ ...WELL_KNOWN, ...set }) as [string, StripeMethod][]);
}

/** Returns true if an unpaid code can be canceled. */
export function canClose(method: StripeMethod): boolean {
  return METHODS[method].close;
}

/** Returns the capabilities of a connection's local methods. */
export function localMethodsOf(methods: ReadonlyMap<string, StripeMethod>): Record<string, LocalMethod> {
  return Object.fromEntries([...methods].map(([type, method]) => [type, METHODS[method]]));
}

/**
 * Returns the number of days after which a code expires at Stripe, which counts them from the day of its creation.
 *
 * @returns undefined if Stripe does not accept that number.
 */
export function expiryDays(
  method: 'boleto' | 'oxxo',
  { createdAtMs, expiresAtMs }: { readonly createdAtMs: number; readonly expiresAtMs: number },
): number | undefined {
  const { expiresWithDayIn: zone, expiry } = METHODS[method];
  const dayOf = (ms: number) =>
    Temporal.Instant.fromEpochMilliseconds(ms).toZonedDateTimeISO(zone).toPlainDate();
  const { days } = dayOf(createdAtMs).until(dayOf(expiresAtMs), { largestUnit: 'days' });
  const isAccepted = Math.floor(expiry.least / DAY) <= days && days <= expiry.greatest / DAY;
  return isAccepted ? days : undefined;
}
