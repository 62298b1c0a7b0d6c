import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { isJsonObject, isTextLike, turnedAway } from '../kit/provider-answer.ts';
import type { Method } from '../port/attempt.ts';
import type { Outcome } from '../port/outcome.ts';
import { fromExtraPreparation } from './preparations.ts';
import { type Call, type Fields, post } from './to-provider.ts';

type WalletMethod = Extract<Method, { by: 'wallet_token' }>;

const TOKEN_ID = /^tok_[A-Za-z0-9_]{1,200}$/;

/**
 * Returns Stripe's token for the card behind a wallet's answer. Nothing is charged.
 *
 * - GOOGLE_PAY: the answer contains Stripe's token, if the shop asked Google for one of Stripe's.
 * - APPLE_PAY: Stripe makes a token from the answer, with a request that it does not publish.
 */
export async function readWalletToken(
  transactionId: string,
  method: WalletMethod,
  { send, settings, shownAs }: Call,
): Promise<{ readonly token: string } | { readonly outcome: Outcome }> {
  const answer = parsed(method.token.reveal());
  if (method.type === 'GOOGLE_PAY') {
    const token = googlePayToken(answer);
    if (token !== undefined) return { token };
    return {
      outcome: turnedAway('the token of Google Pay contains no token of Stripe'),
    };
  }
  if (method.type !== 'APPLE_PAY' || !settings.applePayTokens) {
    return { outcome: turnedAway(`it accepts no tokens of ${method.type}`) };
  }
  const fields = applePayFields(answer);
  if (!fields) return { outcome: turnedAway('the token of Apple Pay has no paymentData') };
  const result = await send(post('/v1/tokens', fields, `${transactionId}:token`));
  const made = fromExtraPreparation(result, 'token', shownAs);
  return 'outcome' in made ? made : { token: made.id };
}

/** `paymentMethodData.tokenizationData.token` is a token of Stripe's, a JSON object as text. */
function googlePayToken(answer: JsonObject): string | undefined {
  const { token } = at(at(answer, 'paymentMethodData'), 'tokenizationData');
  const { id, object } = parsed(token);
  return object === 'token' && isTextLike(id, TOKEN_ID) ? id : undefined;
}

/** The answer is Apple's payment, or the token in it. */
function applePayFields(answer: JsonObject): Fields | undefined {
  const token = isJsonObject(answer.token) ? answer.token : answer;
  if (!isJsonObject(token.paymentData)) return undefined;
  const { displayName, network } = at(token, 'paymentMethod');
  return {
    pk_token: JSON.stringify(token.paymentData),
    pk_token_instrument_name: text(displayName),
    pk_token_payment_network: text(network),
    pk_token_transaction_id: text(token.transactionIdentifier),
  };
}

function parsed(json: JsonValue | undefined): JsonObject {
  try {
    const value: unknown = JSON.parse(String(json));
    return isJsonObject(value) ? value : {};
  } catch {
    return {};
  }
}

function at(object: JsonObject, name: string): JsonObject {
  const value = object[name];
  return isJsonObject(value) ? value : {};
}

function text(value: JsonValue | undefined): string | undefined {
  return typeof value === 'string' && value !== '' ? value : undefined;
}
