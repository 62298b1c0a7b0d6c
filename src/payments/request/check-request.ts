import { equals } from '@bufbuild/protobuf';
import countryCodes from 'i18n-iso-countries/codes.json' with { type: 'json' };
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import {
  type Airline,
  AirlineTicketSchema,
  type Order,
  type OrderItem,
} from '#gen/payments/v1/additional_data_pb.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import type {
  CardDataInput,
  PaymentMethodInput,
  ThreeDSecureSetup,
} from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { passesLuhn } from '#src/luhn.ts';
import {
  currencyDigits,
  formatMoney,
  isDecimal,
  largestAmount,
  MAX_DESCRIPTIVE_DECIMALS,
  type Money,
  parseMoney,
  roundMoney,
  whyNoDecimal,
} from '#src/money.ts';
import { hasThreeDSecureResults, isCodeAlone } from '#src/payments/method/payment-method.ts';
import { type FieldError, faultsOf, invalidParameters, type Report } from '#src/service-error.ts';
import { canonicalDecimal } from '#src/wire/canonical-decimal.ts';
import { checkValues } from './check-values.ts';

/** All ISO 3166-1 alpha-2 country codes, without Kosovo's user-assigned XK, which the package adds. */
export const COUNTRIES: ReadonlySet<string> = new Set(
  (countryCodes as [string, ...unknown[]][]).map(([alpha2]) => alpha2).filter((code) => code !== 'XK'),
);

/**
 * Checks what the rules in the .proto cannot express: code lists, check digits, calendar dates, and amounts against
 * their currency. May also report fields that those rules reject.
 */
export function checkRequest(request: CreatePaymentRequest): FieldError[] {
  return faultsOf((report) => check(request, report));
}

function check(request: CreatePaymentRequest, report: Report): void {
  const kind = request.paymentMethod?.detail?.kind;
  const card = kind?.case === 'card' ? kind.value.cardData : undefined;
  checkValues(CreatePaymentRequestSchema, request, report, card?.number);
  checkCountry(report, 'country', request.country);
  checkAmount(report, request.amount, isVerification(request.paymentMethod));
  checkCallbackUrl(report, request.callbackUrl);
  if (request.taxes && request.taxesList) report('taxes', 'NOT_ALLOWED', 'must not be sent with taxes_list');
  if (request.customerPayer) checkPerson(report, 'customer_payer.', request.customerPayer);
  if (request.paymentMethod) checkMethod(report, request.paymentMethod);
  const currency = request.amount?.currency ?? '';
  if (request.additionalData?.order) checkOrder(report, request.additionalData.order, currency);
  if (request.additionalData?.airline) checkAirline(report, request.additionalData.airline, currency);
}

/**
 * Reads the amount of an operation's request.
 *
 * @throws ServiceError INVALID_PARAMETERS if the amount is malformed or not above zero.
 */
export function requireAmount(amount: NonNullable<CreatePaymentRequest['amount']>): Money {
  const faults = faultsOf((report) => checkAmount(report, amount));
  const money = parseMoney(amount.value?.value ?? '', amount.currency);
  if (faults.length > 0 || !money) throw invalidParameters(faults);
  return money;
}

/** Returns true if the card is only verified; the amount is then 0. */
function isVerification(method: PaymentMethodInput | undefined): boolean {
  const kind = method?.detail?.kind;
  return kind?.case === 'card' && kind.value.verify;
}

/** Checks an amount to be paid. */
export function checkAmount(
  report: Report,
  amount: Pick<NonNullable<CreatePaymentRequest['amount']>, 'currency' | 'value'> | undefined,
  isVerification = false,
): void {
  if (!amount) return;
  if (amount.currency) checkCurrency(report, 'amount.currency', amount.currency);
  checkMoney(report, 'amount.value', amount.value, amount.currency);
  const money = parseMoney(amount.value?.value ?? '', amount.currency);
  if (!money) return;
  if (isVerification) {
    if (money.minorUnits === 0n) return;
    report('amount.value', 'OUT_OF_RANGE', 'must be 0 if verify is true, since nothing is charged');
  } else if (money.minorUnits <= 0n) {
    report('amount.value', 'OUT_OF_RANGE', 'must be above zero');
  }
}

function checkCurrency(report: Report, field: string, currency: string | undefined): void {
  if (currency === undefined || currencyDigits(currency) !== undefined) return;
  const isLower = currencyDigits(currency.toUpperCase()) !== undefined;
  const form = isLower ? 'in upper case, such as USD' : 'the ISO 4217 code of a payment currency';
  report(field, 'INVALID_FORMAT', `must be ${form}`);
}

/**
 * Checks any amount, positive or negative, against the largest amount and the allowed number of decimal places.
 *
 * @param decimals maximum number of decimal places; by default, that of the currency.
 */
function checkMoney(
  report: Report,
  field: string,
  decimal: Decimal | undefined,
  currency: string,
  decimals?: number,
): void {
  if (!decimal) return;
  if (!isDecimal(decimal.value)) {
    report(field, 'INVALID_FORMAT', whyNoDecimal(decimal.value));
    return;
  }
  const largest = largestAmount(currency);
  const money = roundMoney(decimal.value, currency);
  if (!largest || !money) return;
  const limit = decimals ?? currencyDigits(currency) ?? 0;
  if ((canonicalDecimal(decimal.value)?.split('.')[1]?.length ?? 0) > limit) {
    const where = decimals === undefined ? ' in this currency' : '';
    report(field, 'INVALID_FORMAT', `must have at most ${limit} decimal places${where}`);
  } else if (money.minorUnits > largest.minorUnits) {
    report(field, 'OUT_OF_RANGE', `must be at most ${formatMoney(largest)} in this currency`);
  } else if (money.minorUnits < -largest.minorUnits) {
    report(field, 'OUT_OF_RANGE', `must be at least -${formatMoney(largest)} in this currency`);
  }
}

/**
 * Checks an amount that only describes goods. It moves no money, and programs compute it by dividing a total by a
 * quantity, so it may have more decimal places than its currency.
 */
const checkDescriptive: typeof checkMoney = (report, field, decimal, currency) =>
  checkMoney(report, field, decimal, currency, MAX_DESCRIPTIVE_DECIMALS);

/** Checks an ISO 3166-1 country code. */
export function checkCountry(report: Report, field: string, country: string | undefined): void {
  if (!country || COUNTRIES.has(country)) return;
  const isLower = COUNTRIES.has(country.toUpperCase());
  const form = isLower ? 'in upper case, such as US' : 'an ISO 3166-1 alpha-2 country code';
  report(field, 'INVALID_FORMAT', `must be ${form}`);
}

/** Checks that the date exists in the calendar. The .proto's rule checks only the form YYYY-MM-DD. */
function checkDate(report: Report, field: string, date: string | undefined): void {
  if (date === undefined) return;
  const parsed = new Date(`${date}T00:00:00Z`);
  if (Number.isNaN(parsed.getTime()) || parsed.toISOString().slice(0, 10) !== date) {
    report(field, 'INVALID_FORMAT', 'must be a date in the form YYYY-MM-DD');
  }
}

const SCHEME = /^([a-z][a-z0-9+.-]*):\//i;
// A bare name without a dot could be a scheme (javascript:1/…), so a host must contain a dot or be localhost.
const HOST_PORT_PATH =
  /^(?:localhost|[\p{L}\p{M}\p{N}_-]+(?:\.[\p{L}\p{M}\p{N}_-]+)+\.?|\[[0-9a-f:.]+\])(?::\d{1,5})?(?:[/?#].*)?$/iu;
const UNSAFE_IN_URL = /[\s\\<>"'`{}|^\p{Cc}]/u;
/** Schemes that make a browser or operating system run, open or send something. None belongs to an app. */
const NO_APP = new RegExp(
  `^(?:${[
    'about|blob|chrome|chrome-extension|content|data|file|filesystem|ftp|ftps|intent|jar|javascript|ldap|mailto|mhtml',
    'ms-.*|res|resource|search|search-ms|sftp|shell|sms|ssh|tel|telnet|vbscript|view-source|ws|wss',
  ].join('|')})$`,
);

/**
 * Checks the URL that the payer returns to: a host with an optional port and path, an http(s) URL, or a URL with an
 * app's own scheme (`shop.app://paid`, RFC 8252). It is echoed, never fetched.
 */
export function checkCallbackUrl(report: Report, callbackUrl: string | undefined): void {
  if (!callbackUrl) return;
  const scheme = SCHEME.exec(callbackUrl)?.[1]?.toLowerCase();
  const isWeb = /^https?:\/\//i.test(callbackUrl);
  const isApp = scheme !== undefined && !/^https?$/.test(scheme) && !NO_APP.test(scheme);
  const url = isWeb || isApp ? callbackUrl : `https://${callbackUrl}`;
  const fits = isWeb || isApp || HOST_PORT_PATH.test(callbackUrl);
  const parsed = fits && !UNSAFE_IN_URL.test(callbackUrl) ? URL.parse(url) : null;
  if (!parsed) {
    const message =
      'must be a host with an optional port and path, an http(s) URL, or a URL with an app’s own scheme';
    report('callback_url', 'INVALID_FORMAT', message);
  } else if (parsed.username || parsed.password) {
    report('callback_url', 'NOT_ALLOWED', 'must not contain a user name or password');
  }
}

/** Fields of a person that the rules in the .proto cannot fully check. */
export type Person = Pick<
  CustomerPayer,
  'dateOfBirth' | 'nationality' | 'country' | 'billingAddress' | 'shippingAddress'
>;

/** Checks a person's dates and country codes. @param at the path of the person, with a trailing dot. */
export function checkPerson(report: Report, at: string, person: Person): void {
  checkDate(report, `${at}date_of_birth`, person.dateOfBirth);
  checkCountry(report, `${at}nationality`, person.nationality);
  checkCountry(report, `${at}country`, person.country);
  checkCountry(report, `${at}billing_address.country`, person.billingAddress?.country);
  checkCountry(report, `${at}shipping_address.country`, person.shippingAddress?.country);
}

function checkMethod(report: Report, method: PaymentMethodInput): void {
  if (!method.type && !method.token) report('payment_method.type', 'REQUIRED', 'is required');
  const kind = method.detail?.kind;
  if (kind?.case !== 'card') return;
  if (kind.value.threeDSecure) checkThreeDSecure(report, kind.value.threeDSecure);
  const card = kind.value.cardData;
  // With a stored card, the payer re-enters only the security code.
  if (!card || (method.vaultedToken && isCodeAlone(card))) return;
  checkCard(report, 'payment_method.detail.card.card_data.', card);
}

/** Checks card data. @param at the path of the data, with a trailing dot. */
export function checkCard(report: Report, at: string, card: CardDataInput): void {
  const { number, expirationMonth: month, expirationYear: year } = card;
  if (!number) report(`${at}number`, 'REQUIRED', 'is required');
  if (!month) report(`${at}expiration_month`, 'REQUIRED', 'is required');
  if (year === undefined) report(`${at}expiration_year`, 'REQUIRED', 'is required');
  // The .proto's rule reports non-numeric strings.
  if (/^\d+$/.test(number) && !passesLuhn(number)) {
    report(`${at}number`, 'INVALID_FORMAT', 'must pass the Luhn check');
  }
  if (year !== undefined && year > 99 && year < 2000) {
    report(`${at}expiration_year`, 'OUT_OF_RANGE', 'must be two digits, or four from 2000 to 2099');
  }
}

/**
 * Rejects a setup sent together with results: a setup requests authentication by the provider, whereas results come
 * from elsewhere.
 */
function checkThreeDSecure(report: Report, sent: ThreeDSecureSetup): void {
  if (!sent.threeDSecureSetupId || !hasThreeDSecureResults(sent)) return;
  const message = 'must not be sent with the results of an authentication made elsewhere';
  report('payment_method.detail.card.three_d_secure.three_d_secure_setup_id', 'NOT_ALLOWED', message);
}

function checkOrder(report: Report, order: Order, currency: string): void {
  const field = 'additional_data.order';
  checkDescriptive(report, `${field}.fee_amount`, order.feeAmount, currency);
  checkDescriptive(report, `${field}.shipping_amount`, order.shippingAmount, currency);
  checkMoney(report, `${field}.tip_amount`, order.tipAmount, currency);
  for (const [i, item] of order.items.entries()) {
    checkDescriptive(report, `${field}.items[${i}].unit_amount`, item.unitAmount, currency);
    checkQuantity(report, `${field}.items[${i}].quantity`, item);
  }
}

/** Checks a fractional quantity, such as 1.5. It is not money, so it may have any number of decimal places. */
function checkQuantity(report: Report, field: string, item: OrderItem): void {
  const decimal = item.quantityDecimal?.value;
  if (decimal === undefined) return;
  if (item.quantity !== undefined) report(field, 'NOT_ALLOWED', 'must not be sent with quantity_decimal');
  if (!isDecimal(decimal)) report(field, 'INVALID_FORMAT', whyNoDecimal(decimal));
  else if (decimal.startsWith('-')) report(field, 'OUT_OF_RANGE', 'must be zero or more');
}

function checkAirline(report: Report, airline: Airline, currency: string): void {
  const field = 'additional_data.airline';
  for (const [i, leg] of airline.legs.entries()) {
    const at = `${field}.legs[${i}]`;
    checkCurrency(report, `${at}.base_fare_currency`, leg.baseFareCurrency);
    checkDescriptive(report, `${at}.base_fare`, leg.baseFare, leg.baseFareCurrency ?? currency);
    checkCountry(report, `${at}.departure_airport_country`, leg.departureAirportCountry);
    checkCountry(report, `${at}.arrival_airport_country`, leg.arrivalAirportCountry);
  }
  for (const [i, passenger] of airline.passengers.entries()) {
    const at = `${field}.passengers[${i}]`;
    checkDate(report, `${at}.date_of_birth`, passenger.dateOfBirth);
    checkCountry(report, `${at}.nationality`, passenger.nationality);
    checkCountry(report, `${at}.country`, passenger.country);
    checkCountry(report, `${at}.document.country`, passenger.document?.country);
  }
  const tickets = airline.tickets.map((ticket, i) => ({ ticket, at: `${field}.tickets[${i}]` }));
  const { ticket: first } = airline;
  if (first) tickets.push({ ticket: first, at: `${field}.ticket` });
  // A record has the first of several tickets in both fields, and may be sent back as is.
  if (first && airline.tickets[0] && !equals(AirlineTicketSchema, first, airline.tickets[0])) {
    report(`${field}.ticket`, 'NOT_ALLOWED', 'must equal the first of tickets if both are sent');
  }
  for (const { ticket, at } of tickets) {
    checkDescriptive(report, `${at}.total_fare_amount`, ticket.totalFareAmount, currency);
    checkDescriptive(report, `${at}.total_tax_amount`, ticket.totalTaxAmount, currency);
    checkDescriptive(report, `${at}.total_fee_amount`, ticket.totalFeeAmount, currency);
    checkCountry(report, `${at}.issue.country`, ticket.issue?.country);
  }
}
