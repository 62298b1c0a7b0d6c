import type { Secret } from '#src/secret.ts';
import { fields, readJsonObject, textLike, textOf, turnedAway } from '../kit/provider-answer.ts';
import { applePayToken, googlePayToken } from '../kit/wallet-answer.ts';
import type { Method } from '../port/attempt.ts';
import type { Outcome } from '../port/outcome.ts';
import { fromExtraPreparation } from './preparations.ts';
import { type Call, type Fields, post } from './to-provider.ts';

type WalletMethod = Extract<Method, { by: 'wallet_token' }>;

/** Reads a token of Stripe's. */
const readToken = fields({ id: textLike(/^tok_[A-Za-z0-9_]{1,200}$/), object: textOf });

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
  if (method.type === 'GOOGLE_PAY') {
    const token = stripeTokenIn(method.token);
    if (token !== undefined) return { token };
    return { outcome: turnedAway('the token of Google Pay contains no token of Stripe') };
  }
  if (method.type !== 'APPLE_PAY' || !settings.applePayTokens) {
    return { outcome: turnedAway(`it accepts no tokens of ${method.type}`) };
  }
  const fieldsOfToken = applePayFields(method.token);
  if (!fieldsOfToken) return { outcome: turnedAway('the token of Apple Pay has no paymentData') };
  const result = await send(post('/v1/tokens', fieldsOfToken, `${transactionId}:token`));
  const made = fromExtraPreparation(result, 'token', shownAs);
  return 'outcome' in made ? made : { token: made.id };
}

/** Google Pay's token is a token of Stripe's, a JSON object as text. */
function stripeTokenIn(answer: Secret): string | undefined {
  const { id, object } = readToken(readJsonObject(Buffer.from(googlePayToken(answer))));
  return object === 'token' ? id : undefined;
}

function applePayFields(answer: Secret): Fields | undefined {
  const token = applePayToken(answer, { mayBeToken: true });
  if (!token) return undefined;
  const { displayName, network } = token.paymentMethod;
  return {
    pk_token: JSON.stringify(token.paymentData),
    pk_token_instrument_name: displayName || undefined,
    pk_token_payment_network: network || undefined,
    pk_token_transaction_id: token.transactionIdentifier || undefined,
  };
}
