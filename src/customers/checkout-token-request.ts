import { create } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  type CardDataInput,
  CardDataInputSchema,
  type ThreeDSecureSetup,
} from '#gen/payments/v1/payment_method_pb.js';
import {
  type CheckoutTokenCard,
  type CreateCheckoutTokenRequest,
  CreateCheckoutTokenRequestSchema,
} from '#gen/payments/v1/token_service_pb.js';
import type { PayerChoices } from '#src/payments/create/payer-choices.ts';
import { hasThreeDSecureResults, ONE_TIME_TOKEN_TYPE } from '#src/payments/method/payment-method.ts';
import { checkCard, checkPerson } from '#src/payments/request/check-request.ts';
import { invalidField, notAllowed, requireFaultless } from '#src/service-error.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';

/** A session's token request, with one place for everything that may be sent in several. */
export type CheckoutTokenTerms = { readonly card: CardDataInput; readonly choices: PayerChoices };

const METHOD = 'payment_method';

/** Reads the card and the payer's choices. @throws ServiceError INVALID_PARAMETERS, naming the field. */
export function readTokenRequest(request: CreateCheckoutTokenRequest): CheckoutTokenTerms {
  const { paymentMethod: method } = request;
  if (method?.type && method.type !== ONE_TIME_TOKEN_TYPE)
    throw notAllowed(`${METHOD}.type`, `must be ${ONE_TIME_TOKEN_TYPE}`);
  const cards = [
    ['card_data', request.cardData],
    [`${METHOD}.card`, method?.card],
  ] as const;
  const [first, second] = cards.filter(([, one]) => one !== undefined);
  const sent = first?.[1];
  if (!first || !sent) throw invalidField('card_data', 'REQUIRED', 'is required');
  if (second?.[1] && !isSameCard(sent, second[1]))
    throw notAllowed(second[0], 'must be the same card as card_data if both are sent');
  const card = cardOf(sent);
  requireFaultless((report) => {
    checkCard(report, `${first[0]}.`, card);
    if (method?.customer) checkPerson(report, `${METHOD}.customer.`, method.customer);
  });
  const choices = {
    vaultOnSuccess: (method?.vaultOnSuccess ?? false) || cards.some(([, one]) => one?.save),
    installments: onlyValue([
      ...cards.flatMap(([at, one]): Sent<number>[] => [
        [`${at}.installments`, one?.installments],
        [`${at}.installment.value`, one?.installment?.value],
      ]),
      ['installment.value', request.installment?.value],
    ]),
    threeDSecureSetupId: onlyValue([
      ...cards.map(([at, one]) => setupId(`${at}.three_d_secure`, one?.threeDSecure)),
      setupId('three_d_secure', request.threeDSecure),
    ]),
    customer: method?.customer,
  };
  return { card, choices };
}

/** Checks that a session allows the payer's choices. @throws ServiceError INVALID_PARAMETERS, naming the field. */
export function requireChoicesAllowed(choices: PayerChoices, { customerId }: StoredSession): void {
  if (choices.vaultOnSuccess && !customerId)
    throw notAllowed(`${METHOD}.vault_on_success`, 'requires a checkout session with a customer');
  const id = choices.customer?.id;
  if (id && id.toLowerCase() !== customerId)
    throw notAllowed(`${METHOD}.customer.id`, 'must be the customer of the checkout session');
}

/**
 * Returns a request in its form to hash: equal for equal cards and choices, wherever they were sent, and without the
 * security code, which a repeat may omit.
 */
export function hashedForm(
  { checkoutSession }: CreateCheckoutTokenRequest,
  { card, choices }: CheckoutTokenTerms,
): CreateCheckoutTokenRequest {
  const { vaultOnSuccess, installments, threeDSecureSetupId, customer } = choices;
  return create(CreateCheckoutTokenRequestSchema, {
    checkoutSession,
    cardData: { ...cardFields(card), securityCode: '' },
    ...((vaultOnSuccess || customer) && { paymentMethod: { vaultOnSuccess, ...(customer && { customer }) } }),
    ...(installments !== undefined && { installment: { value: installments } }),
    ...(threeDSecureSetupId && { threeDSecure: { threeDSecureSetupId } }),
  });
}

/** Returns the choices without the customer's id, which the session sets. */
export function choicesToStore(choices: PayerChoices): PayerChoices {
  const { customer } = choices;
  if (!customer) return choices;
  const { id: _, ...data } = customer;
  return { ...choices, customer: create(CustomerPayerSchema, data) };
}

type Sent<T> = readonly [field: string, value: T | undefined];

/** Returns the value of a choice that may be sent in several places. @throws ServiceError INVALID_PARAMETERS. */
function onlyValue<T>(places: readonly Sent<T>[]): T | undefined {
  const [first, ...others] = places.filter(([, value]) => value !== undefined);
  const different = others.find(([, value]) => value !== first?.[1]);
  if (first && different) throw notAllowed(different[0], `must equal ${first[0]} if both are sent`);
  return first?.[1];
}

function setupId(field: string, sent: ThreeDSecureSetup | undefined): Sent<string> {
  if (sent && hasThreeDSecureResults(sent))
    throw notAllowed(field, 'may hold only three_d_secure_setup_id here; results come from the merchant');
  return [`${field}.three_d_secure_setup_id`, sent?.threeDSecureSetupId || undefined];
}

function cardFields(card: CheckoutTokenCard | CardDataInput) {
  const { number, expirationMonth, expirationYear, securityCode, holderName } = card;
  const year = expirationYear === undefined ? {} : { expirationYear };
  return { number, expirationMonth, ...year, securityCode, holderName };
}

function cardOf(card: CheckoutTokenCard): CardDataInput {
  return create(CardDataInputSchema, cardFields(card));
}

/** Returns true for two forms of the same card, whether the year has two digits or four. */
function isSameCard(one: CheckoutTokenCard, other: CheckoutTokenCard): boolean {
  const [a, b] = [one, other].map((card) =>
    JSON.stringify({ ...cardFields(card), expirationYear: (card.expirationYear ?? 0) % 100 }),
  );
  return a === b;
}
