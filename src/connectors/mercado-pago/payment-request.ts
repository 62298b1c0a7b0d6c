import type { PayerRequest, PaymentCreateRequest } from 'mercadopago/dist/clients/payment/create/types.js';
import type { Address, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { phoneNumberOf } from '../kit/phone-number.ts';
import type { AttemptFacts, LocalMethodOfPayer } from '../port/attempt.ts';
import { BOLETO, PSE } from './local-methods.ts';
import type { MercadoPagoSettings } from './settings.ts';
import { dateTime, MAX_TITLE, metadataOf, notificationUrlOf, type Target, UNTITLED } from './to-provider.ts';

/** The request for a payment. */
export type PaymentRequest = Target & { readonly body: PaymentCreateRequest };

/**
 * Builds the request that creates a payment by a local method: a code that its payer pays later, or a bank's page. It
 * takes no money. Every field comes from the attempt, so that a repeat has the same bytes.
 *
 * @param id Mercado Pago's name of the method.
 */
export function createCode(
  attempt: AttemptFacts & { readonly method: LocalMethodOfPayer },
  amount: number,
  id: string,
  settings: MercadoPagoSettings,
): PaymentRequest {
  const { customerPayer, expiresAtMs, method, returnUrl } = attempt;
  const { ipAddress } = customerPayer;
  const isPse = id === PSE;
  // The documentation of PSE names no end: one is sent only if the merchant asks for it.
  const hasEnd = !isPse || method.wantedExpiryMs !== undefined;
  return createPayment(attempt, amount, settings, {
    payment_method_id: id,
    payer: payerOf(customerPayer, id),
    ...(hasEnd && { date_of_expiration: dateTime(expiresAtMs) }),
    ...(ipAddress && { additional_info: { ip_address: ipAddress } }),
    ...(isPse && {
      transaction_details: { financial_institution: method.bankId },
      callback_url: returnUrl,
    }),
  });
}

/**
 * Builds the request that creates a payment. A repeat under the same key and with the same body returns the first
 * payment.
 *
 * @param byMethod the fields that the payment's method needs.
 */
export function createPayment(
  attempt: AttemptFacts,
  amount: number,
  settings: MercadoPagoSettings,
  byMethod: PaymentCreateRequest,
): PaymentRequest {
  const { transactionId, description } = attempt;
  const body: PaymentCreateRequest = {
    transaction_amount: amount,
    description: (description || UNTITLED).slice(0, MAX_TITLE),
    external_reference: transactionId,
    ...notificationUrlOf(attempt, settings),
    ...metadataOf(attempt),
    ...byMethod,
  };
  return { method: 'POST', path: '/v1/payments', body, idempotencyKey: transactionId };
}

/**
 * Builds the request that cancels a payment that nobody has paid, or an authorization.
 *
 * @param idempotencyKey absent for a close, of which a repeat changes nothing.
 */
export function cancelPayment(paymentId: string, idempotencyKey?: string): Target {
  const body = { status: 'cancelled' };
  return {
    ...{ method: 'PUT', path: `/v1/payments/${paymentId}`, body },
    ...(idempotencyKey !== undefined && { idempotencyKey }),
  };
}

/** Builds the request that captures an authorization, and releases the rest of it. */
export function capturePayment(paymentId: string, amount: number, idempotencyKey: string): Target {
  const body = { capture: true, transaction_amount: amount };
  return { method: 'PUT', path: `/v1/payments/${paymentId}`, body, idempotencyKey };
}

/** Builds the request that lists the account's payment methods, with the banks of PSE. */
export function listPaymentMethods(): Target {
  return { method: 'GET', path: '/v1/payment_methods' };
}

/** Lengths that Mercado Pago documents for PSE. It refuses longer texts. */
const PSE_LENGTHS = { name: 32, street: 18, number: 5, zip: 5, area: 3, phone: 5 } as const;
/** Documents of persons and companies in Brazil. */
const BRAZILIAN: ReadonlySet<string> = new Set(['CPF', 'CNPJ']);
/** The document of a company in Colombia. */
const NIT = 'NIT';

function payerOf(payer: CustomerPayer, id: string): PayerRequest {
  const { email, firstName, lastName, billingAddress } = payer;
  const isPse = id === PSE;
  const nameOf = (name: string) => (isPse ? name.slice(0, PSE_LENGTHS.name) : name);
  const identification = identificationOf(payer);
  // A document from elsewhere could be refused where none is required.
  const isSent = isPse || BRAZILIAN.has(identification?.type ?? '');
  return {
    ...(email && { email }),
    ...(firstName && { first_name: nameOf(firstName) }),
    ...(lastName && { last_name: nameOf(lastName) }),
    ...(identification && isSent && { identification }),
    ...(id === BOLETO && billingAddress && { address: addressOf(billingAddress) }),
    ...(isPse && {
      entity_type: identification?.type === NIT ? 'association' : 'individual',
      ...phoneOf(payer),
      ...(billingAddress && { address: shortened(addressOf(billingAddress)) }),
    }),
  };
}

/** Returns a payer's document as Mercado Pago takes it. */
export function identificationOf({ document }: CustomerPayer): { type: string; number: string } | undefined {
  const { documentType, documentNumber } = document ?? {};
  if (!documentType || !documentNumber) return undefined;
  // Documents are written with dots and dashes, but sent without.
  return { type: documentType.toUpperCase(), number: documentNumber.replace(/[^0-9A-Za-z]/g, '') };
}

type AddressRequest = NonNullable<PayerRequest['address']>;

/** Ends in a house number: "Rua das Flores, 123", "Calle 93 # 11-27". */
const HOUSE_NUMBER = /^(.*?)[\s,]+(?:#|n[º°o.]*)?\s*(\d[\w-]*)$/i;
/** "Without a number", in Portuguese and Spanish. */
const NO_NUMBER = 'S/N';

/** Returns an address with its house number apart. */
export function addressOf({
  addressLine1 = '',
  neighborhood,
  city,
  state,
  zipCode,
}: Address): AddressRequest {
  const line = addressLine1.trim();
  const [, street = line, number = NO_NUMBER] = HOUSE_NUMBER.exec(line) ?? [];
  return {
    street_name: street,
    street_number: number,
    ...(neighborhood && { neighborhood }),
    ...(city && { city }),
    ...(state && { federal_unit: state.replace(/^[A-Z]{2}-/, '') }),
    ...(zipCode && { zip_code: zipCode.replace(/[^0-9A-Za-z]/g, '') }),
  };
}

/** Shortens an address to the lengths of PSE, whose postal code has five digits, while those of Colombia have six. */
function shortened({
  street_name,
  street_number,
  neighborhood,
  city,
  zip_code = '',
}: AddressRequest): AddressRequest {
  const { street, number, zip } = PSE_LENGTHS;
  return {
    zip_code: zip_code.slice(0, zip).padStart(zip, '0'),
    street_name: (street_name ?? '').slice(0, street),
    street_number: (street_number ?? '').slice(0, number),
    ...(neighborhood && { neighborhood: neighborhood.slice(0, street) }),
    ...(city && { city: city.slice(0, street) }),
  };
}

const COLOMBIA = /^\+57/;

/** Returns the phone number in the two parts of PSE's documentation: three digits, and five of the rest. */
function phoneOf(payer: CustomerPayer): Pick<PayerRequest, 'phone'> {
  const digits = (phoneNumberOf(payer) ?? '').replace(COLOMBIA, '').replace(/\D/g, '');
  const { area, phone } = PSE_LENGTHS;
  if (digits === '') return {};
  return { phone: { area_code: digits.slice(0, area), number: digits.slice(area, area + phone) } };
}
