import { create, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { type CardDataInput, CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  type CreateCheckoutTokenRequest,
  type CreateTokenRequest,
  OneTimeTokenSchema,
  TokenService,
} from '#gen/payments/v1/token_service_pb.js';
import type { Caller } from '#src/payments/caller.ts';
import { cardData, cardFingerprint } from '#src/payments/create/card.ts';
import { checkCard } from '#src/payments/create/check-request.ts';
import type { LiveCatalogue } from '#src/payments/create/live-catalogue.ts';
import type { CardDeps } from '#src/payments/create/payer-card.ts';
import { ONE_TIME_TOKEN_TYPE } from '#src/payments/create/payment-method.ts';
import { Secret } from '#src/secret.ts';
import { invalidField, notAllowed, requireFaultless } from '#src/service-error.ts';
import { insertToken } from '#src/store/tables/one-time-tokens.ts';
import { sealTokenCard } from '#src/vault/token-card.ts';
import { callOnce, type OnceCall, type OnceResponse, onceCallsOf, replayedCall } from './call-once.ts';
import { requireOpenSession } from './checkout-sessions.ts';
import type { CustomerDeps } from './customers.ts';

/** Dependencies of the token functions. */
export type TokenDeps = CustomerDeps & CardDeps & { readonly catalogue: () => LiveCatalogue };

/** Lifetime of a token. */
const LIVES_S = 30 * 60;

const tokenCall = onceCallsOf(TokenService.method.createToken, withoutCode);
const checkoutTokenCall = onceCallsOf(TokenService.method.createCheckoutToken, withoutCode);

/** Makes a card token for any payment of the account. @throws ServiceError INVALID_PARAMETERS; and as `callOnce`. */
export function createToken(
  deps: TokenDeps,
  request: CreateTokenRequest,
  caller: Caller,
): Promise<OnceResponse<typeof OneTimeTokenSchema>> {
  return makeToken(deps, requireCard(request.cardData), tokenCall(deps, request, caller));
}

/** Makes a card token for a session's payment. @throws ServiceError CHECKOUT_SESSION_NOT_FOUND; and as createToken. */
export async function createCheckoutToken(
  deps: TokenDeps,
  request: CreateCheckoutTokenRequest,
  caller: Caller,
): Promise<OnceResponse<typeof OneTimeTokenSchema>> {
  const card = cardOf(request);
  // Normalized, so that repeated calls match whichever form the card was sent in.
  const same = { ...request, cardData: card, paymentMethod: undefined };
  const call = checkoutTokenCall(deps, same, caller);
  const replayed = await replayedCall(deps.database, call);
  if (replayed) return replayed;
  const session = await requireOpenSession(deps.database, caller.accountId, request.checkoutSession);
  return makeToken(deps, card, { ...call, sessionId: session.id });
}

async function makeToken(
  deps: TokenDeps,
  card: CardDataInput,
  { sessionId, ...call }: OnceCall<typeof OneTimeTokenSchema> & { readonly sessionId?: string },
): Promise<OnceResponse<typeof OneTimeTokenSchema>> {
  const { accountId } = call.caller;
  const id = deps.newId(accountId);
  const fingerprint = cardFingerprint(deps.fingerprintKey, accountId, card.number);
  const data = cardData(card, deps.catalogue().bins(card.number), fingerprint);
  const securityCode = card.securityCode ? new Secret(card.securityCode) : undefined;
  const sealed = await sealTokenCard(deps.vault, { number: new Secret(card.number), securityCode }, id);
  return callOnce(deps.database, call, async (run) => {
    const token = { accountId, id, sessionId, card: toBinary(CardDataSchema, data), sealed };
    const { createdAt, expiresAt } = await insertToken(run, token, LIVES_S);
    return create(OneTimeTokenSchema, {
      token: id,
      checkoutSession: sessionId ?? '',
      type: ONE_TIME_TOKEN_TYPE,
      cardData: data,
      createdAt: timestampFromDate(createdAt),
      expiresAt: timestampFromDate(expiresAt),
    });
  });
}

/** Returns the card of a request, in either of its two forms. @throws ServiceError INVALID_PARAMETERS. */
function cardOf({ cardData, paymentMethod }: CreateCheckoutTokenRequest): CardDataInput {
  const card = paymentMethod?.card;
  if (paymentMethod?.type && paymentMethod.type !== ONE_TIME_TOKEN_TYPE)
    throw notAllowed('payment_method.type', `must be ${ONE_TIME_TOKEN_TYPE}`);
  if (card && cardData) throw notAllowed('payment_method.card', 'must not be sent with card_data');
  if (!card && !cardData) throw invalidField('card_data', 'REQUIRED', 'is required');
  return card ? requireCard(card, 'payment_method.card.') : requireCard(cardData);
}

/**
 * Checks what the rules in the .proto cannot express.
 *
 * @param at the path of the card, with a trailing dot.
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function requireCard(card: CardDataInput | undefined, at = 'card_data.'): CardDataInput {
  if (!card) throw new Error('the card is missing although it was checked');
  requireFaultless((report) => checkCard(report, at, card));
  return card;
}

/** Returns a request in the form to hash, without the card's security code, which a repeat may omit. */
export function withoutCode<Request extends { cardData?: CardDataInput | undefined }>(
  request: Request,
): Request {
  const { cardData } = request;
  return cardData ? { ...request, cardData: { ...cardData, securityCode: '' } } : request;
}
