import type { LocalMethodOfPayer, PaymentAttempt } from '../port/attempt.ts';
import type { OfferedMethods } from './methods.ts';

/** The zone in whose days a boleto is due. */
const BRAZIL = 'America/Sao_Paulo';

/**
 * Returns the fields of a request that are a local method's own. They derive from the stored record alone, so that the
 * request can be repeated byte for byte.
 *
 * @returns undefined if the connection does not offer the method.
 */
export function localFields(
  attempt: Pick<PaymentAttempt, 'expiresAtMs' | 'customerPayer'>,
  method: LocalMethodOfPayer,
  { local }: OfferedMethods,
): { readonly paymentMethod: { readonly type: string }; readonly [name: string]: unknown } | undefined {
  const offered = local.get(method.type);
  if (!offered) return undefined;
  const type = offered.adyen;
  const expiresAt = Temporal.Instant.fromEpochMilliseconds(attempt.expiresAtMs);
  switch (offered.is) {
    case 'PIX':
      return { paymentMethod: { type }, sessionValidity: expiresAt.toString({ fractionalSecondDigits: 3 }) };
    case 'BOLETO': {
      // A time that is on the due day in Brazil and in UTC: the end of a day in Brazil is already the next day in UTC.
      const dueDay = expiresAt.toZonedDateTimeISO(BRAZIL).toPlainDate();
      return { paymentMethod: { type }, deliverAt: `${dueDay}T23:59:59.000Z` };
    }
    case 'PSE':
      return { paymentMethod: { type, ...bankOf(attempt, method) } };
    case 'OXXO':
      return { paymentMethod: { type } };
    default: {
      const unhandled: never = offered.is;
      throw new Error(`unhandled: ${unhandled}`);
    }
  }
}

/** Returns the fields with which PSE finds the payer at their bank. Only companies have a NIT. */
function bankOf(
  { customerPayer: { document } }: Pick<PaymentAttempt, 'customerPayer'>,
  { bankId }: LocalMethodOfPayer,
): object {
  const { documentType = '', documentNumber = '' } = document ?? {};
  const identificationType = documentType.toUpperCase();
  return {
    bank: bankId,
    clientType: identificationType === 'NIT' ? 'J' : 'N',
    identification: documentNumber,
    identificationType,
  };
}
