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
import { encodeChoices, type PayerChoices } from '#src/payments/create/payer-choices.ts';
import {
  callOnce,
  type OnceCall,
  type OnceResponse,
  onceCallsOf,
  replayedCall,
} from '#src/payments/keys/call-once.ts';
import { cardData, cardFingerprint } from '#src/payments/method/card.ts';
import type { CardDeps } from '#src/payments/method/payer-card.ts';
import { ONE_TIME_TOKEN_TYPE } from '#src/payments/method/payment-method.ts';
import { checkCard } from '#src/payments/request/check-request.ts';
import type { LiveCatalogue } from '#src/payments/route/live-catalogue.ts';
import { Secret } from '#src/secret.ts';
import { requireFaultless } from '#src/service-error.ts';
import {
  countSessionToken,
  MAX_SESSION_TOKENS,
  type StoredSession,
} from '#src/store/tables/checkout-sessions.ts';
import { insertToken } from '#src/store/tables/one-time-tokens.ts';
import { sealTokenCard } from '#src/vault/token-card.ts';
import { requireOpenSession, sessionNotFound } from './checkout-sessions.ts';
import {
  type CheckoutTokenTerms,
  choicesToStore,
  hashedForm,
  readTokenRequest,
  requireChoicesAllowed,
} from './checkout-token-request.ts';
import type { CustomerDeps } from './customers.ts';

/** Dependencies of the token functions. */
export type TokenDeps = CustomerDeps & CardDeps & { readonly catalogue: () => LiveCatalogue };

/** Lifetime of a token. */
const LIVES_S = 30 * 60;

const tokenCall = onceCallsOf(TokenService.method.createToken, { canonical: withoutCode });
const checkoutTokenCall = onceCallsOf(TokenService.method.createCheckoutToken);

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
  const terms = readTokenRequest(request);
  // Normalized, so that repeated calls match wherever the card and the choices were sent.
  const call = checkoutTokenCall(deps, hashedForm(request, terms), caller);
  const made =
    (await replayedCall(deps.database, call)) ?? (await makeSessionToken(deps, request, terms, call));
  // The payer's data is not stored with the response: a repeat sends the same data again.
  const { customer } = terms.choices;
  return customer ? { ...made, message: { ...made.message, customer } } : made;
}

async function makeSessionToken(
  deps: TokenDeps,
  { checkoutSession }: CreateCheckoutTokenRequest,
  { card, choices }: CheckoutTokenTerms,
  call: OnceCall<typeof OneTimeTokenSchema>,
): Promise<OnceResponse<typeof OneTimeTokenSchema>> {
  const session = await requireOpenSession(deps.database, call.caller.accountId, checkoutSession);
  requireChoicesAllowed(choices, session);
  return makeToken(deps, card, call, { session, choices });
}

async function makeToken(
  deps: TokenDeps,
  card: CardDataInput,
  call: OnceCall<typeof OneTimeTokenSchema>,
  within?: { readonly session: StoredSession; readonly choices: PayerChoices },
): Promise<OnceResponse<typeof OneTimeTokenSchema>> {
  const { accountId } = call.caller;
  const id = deps.newId(accountId);
  const fingerprint = cardFingerprint(deps.fingerprintKey, accountId, card.number);
  const data = cardData(card, deps.catalogue().bins(card.number));
  const securityCode = card.securityCode ? new Secret(card.securityCode) : undefined;
  const sealed = await sealTokenCard(deps.vault, { number: new Secret(card.number), securityCode }, id);
  const choices = within ? encodeChoices(choicesToStore(within.choices)) : new Uint8Array();
  return callOnce(deps.database, call, async (run) => {
    const sessionId = within?.session.id;
    if (sessionId !== undefined && !(await countSessionToken(run, accountId, sessionId)))
      throw sessionNotFound(`has had ${MAX_SESSION_TOKENS} tokens, the maximum`);
    const stored = { card: toBinary(CardDataSchema, data), fingerprint, choices, sealed };
    const token = { accountId, id, sessionId, ...stored };
    const { createdAt, expiresAt } = await insertToken(run, token, LIVES_S);
    return create(OneTimeTokenSchema, {
      token: id,
      checkoutSession: sessionId ?? '',
      type: ONE_TIME_TOKEN_TYPE,
      cardData: data,
      createdAt: timestampFromDate(createdAt),
      expiresAt: timestampFromDate(expiresAt),
      vaultOnSuccess: within?.choices.vaultOnSuccess ?? false,
      country: within?.session.country ?? '',
    });
  });
}

/** Checks what the rules in the .proto cannot express. @throws ServiceError INVALID_PARAMETERS. */
export function requireCard(card: CardDataInput | undefined): CardDataInput {
  if (!card) throw new Error('the card is missing although it was checked');
  requireFaultless((report) => checkCard(report, 'card_data.', card));
  return card;
}

/** Returns a request in the form to hash, without the card's security code, which a repeat may omit. */
export function withoutCode<Request extends { cardData?: CardDataInput | undefined }>(
  request: Request,
): Request {
  const { cardData } = request;
  return cardData ? { ...request, cardData: { ...cardData, securityCode: '' } } : request;
}
