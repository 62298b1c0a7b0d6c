import type { JsonObject } from '@bufbuild/protobuf';
import type { CardTokenCreateBody } from 'mercadopago/dist/clients/cardToken/create/types.js';
import type { CustomerCardCardholder } from 'mercadopago/dist/clients/commonTypes.js';
import type { CustomerPayer } from '#gen/payments/v1/customer_payer_pb.js';
import { cardBrand, iinOf } from '#src/card-number.ts';
import type { HttpResult } from '../kit/http-client.ts';
import { bodyOf, isSuccess, readJsonObject, turnedAway } from '../kit/provider-answer.ts';
import type { AttemptCard } from '../port/attempt.ts';
import type { Outcome } from '../port/outcome.ts';
import { readCardMethods, readCardToken } from './answers.ts';
import { identificationIn } from './card-payer.ts';
import { notMade, preparationRefusal } from './refusals.ts';
import type { MercadoPagoSettings } from './settings.ts';
import type { Send, Target } from './to-provider.ts';

/** Everything that a payment says about its card. */
export type PreparedCard = {
  /** Pays once. Like the card, it is never stored or shown. */
  readonly token: string;
  /** Mercado Pago's name of the card's brand, such as `visa`, or `debvisa` for a debit card in Mexico. */
  readonly methodId: string;
  /** The card's issuer, if Mercado Pago names one. */
  readonly issuerId: number | undefined;
};

/**
 * Exchanges a card for a token, and finds its payment method and its issuer. Neither takes money, so that no failure
 * leaves anything unknown.
 *
 * @returns the outcome of the attempt if it ends here.
 */
export async function prepareCard(
  card: AttemptCard,
  payer: CustomerPayer,
  settings: Pick<MercadoPagoSettings, 'country'>,
  send: Send,
): Promise<PreparedCard | { readonly outcome: Outcome }> {
  const number = card.number.reveal();
  const [tokenResult, methodsResult] = await Promise.all([
    send(createCardToken(card, payer, settings)),
    send(findCardMethods(number)),
  ]);
  const made = fromTokenCreation(tokenResult);
  if ('outcome' in made) return made;
  const method = methodIn(bodyOf(methodsResult), BRANDS.get(cardBrand(number)));
  if (!method) return { outcome: turnedAway("it does not know the card's brand") };
  return { ...made, ...method };
}

type CardTokenRequest = CardTokenCreateBody & { readonly cardholder?: CustomerCardCardholder };

/** Builds the request for a card's token, the only one that contains the card. */
export function createCardToken(
  { number, securityCode, holderName, expirationMonth, expirationYear }: AttemptCard,
  payer: CustomerPayer,
  { country }: Pick<MercadoPagoSettings, 'country'>,
): Target & { readonly body: CardTokenRequest } {
  const identification = identificationIn(country, payer);
  const body: CardTokenRequest = {
    card_number: number.reveal(),
    expiration_month: String(expirationMonth).padStart(2, '0'),
    expiration_year: String(2_000 + expirationYear),
    ...(securityCode && { security_code: securityCode.reveal() }),
    ...((holderName || identification) && {
      cardholder: { ...(holderName && { name: holderName }), ...(identification && { identification }) },
    }),
  };
  return { method: 'POST', path: '/v1/card_tokens', body };
}

/** Builds the request that finds the payment methods of a card by its first digits. */
export function findCardMethods(number: string): Target {
  return { method: 'GET', path: `/v1/payment_methods/search?bin=${iinOf(number)}` };
}

function fromTokenCreation(result: HttpResult): { readonly token: string } | { readonly outcome: Outcome } {
  if (result.kind === 'not_sent') return { outcome: result };
  if (result.kind === 'unknown') return { outcome: notMade(result.detail, 'card_token') };
  const body = readJsonObject(result.body);
  if (!body || !isSuccess(result.status)) {
    return { outcome: preparationRefusal('card_token', result.status, body) };
  }
  const { id: token } = readCardToken(body);
  return token === undefined
    ? { outcome: notMade("the response is not a card's token", 'card_token') }
    : { token };
}

/**
 * Chooses the payment method of a card among those that the search found: the card's brand, if it is among them. The brand
 * counts alone if the search failed, or does not know the card.
 */
function methodIn(
  found: JsonObject | undefined,
  brand: string | undefined,
): Pick<PreparedCard, 'methodId' | 'issuerId'> | undefined {
  const cards = readCardMethods(found).results.filter(
    ({ id, payment_type_id: type }) => id !== undefined && type.endsWith('_card'),
  );
  const method = cards.find(({ id }) => id === brand) ?? cards[0];
  const methodId = method?.id ?? brand;
  if (methodId === undefined) return undefined;
  const issuerId = method?.issuer.id;
  return { methodId, issuerId: issuerId === undefined ? undefined : Number(issuerId) };
}

/** Mercado Pago's names of brands, by ours. */
const BRANDS: ReadonlyMap<string, string> = new Map(
  Object.entries({
    VISA: 'visa',
    MASTERCARD: 'master',
    AMERICAN_EXPRESS: 'amex',
    DINERS_CLUB: 'diners',
    ELO: 'elo',
    HIPERCARD: 'hipercard',
    HIPER: 'hipercard',
    MAESTRO: 'maestro',
    NARANJA: 'naranja',
  }),
);
