import type { Address, CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { phoneNumberOf } from '../kit/phone-number.ts';
import { hasStateCodes, stateCodeOf } from '../kit/state-code.ts';

/** Adyen's value for an unknown part of an address. */
const NOT_AVAILABLE = 'N/A';
/** Adyen's value for an unknown country. */
const NO_COUNTRY = 'ZZ';
/** A plus, the country code and the number. Adyen sends no other form to issuers. */
const PHONE_NUMBER = /^\+[1-9]\d{4,17}$/;

/** Converts the payer to Adyen's fields. @param country of the payment. */
export function payerOf(payer: CustomerPayer, country: string): object {
  const { firstName, lastName, document } = payer;
  const shopperReference = payer.merchantCustomerId || payer.id;
  const phoneNumber = phoneNumberOf(payer);
  return {
    shopperReference: shopperReference && shopperReference.length >= 3 ? shopperReference : undefined,
    shopperEmail: payer.email || undefined,
    shopperIP: payer.ipAddress || undefined,
    shopperName: nameOf(firstName, lastName),
    telephoneNumber: phoneNumber && PHONE_NUMBER.test(phoneNumber) ? phoneNumber : undefined,
    // The CPF, which Brazilian issuers require.
    socialSecurityNumber: (country === 'BR' && document?.documentNumber) || undefined,
    billingAddress: addressOf(payer.billingAddress),
    deliveryAddress: addressOf(payer.shippingAddress),
  };
}

/** Returns both names or neither. */
function nameOf(firstName: string | undefined, lastName: string | undefined): object | undefined {
  if (!firstName || !lastName) return undefined;
  return { firstName: firstName.slice(0, 80), lastName: lastName.slice(0, 80) };
}

/**
 * Adyen requires every part of an address except the state, and refuses an invalid address together with the payment.
 * In the United States and Canada, it also requires the two letters of the state, and a ZIP code of five digits.
 *
 * @returns undefined if the address cannot be valid.
 */
function addressOf(address: Address | undefined): object | undefined {
  if (!address) return undefined;
  const { addressLine1, addressLine2, neighborhood, city, zipCode = '', country = '', state = '' } = address;
  const zip = /^\s*(\d{5})(?!\d)/.exec(zipCode)?.[1];
  const code = stateCodeOf(state, country);
  if ((hasStateCodes(country) && code === undefined) || (country === 'US' && zip === undefined))
    return undefined;
  const postalCode = country === 'US' ? zip : zipCode.length <= 10 && zipCode;
  return {
    street: addressLine1 || NOT_AVAILABLE,
    houseNumberOrName: [addressLine2, neighborhood].filter(Boolean).join(', ') || NOT_AVAILABLE,
    city: city || NOT_AVAILABLE,
    postalCode: postalCode || NOT_AVAILABLE,
    stateOrProvince: code ?? (state && state.length <= 3 ? state : undefined),
    country: country || NO_COUNTRY,
  };
}
