import { applePayToken, googlePayToken } from '../kit/wallet-answer.ts';
import type { Method } from '../port/attempt.ts';
import type { OfferedMethods } from './methods.ts';

/** A payment method with the token of a wallet. */
type TokenMethod = Extract<Method, { by: 'wallet_token' }>;

/**
 * Returns Adyen's payment method for a wallet's token, which is a secret like a card number.
 *
 * @returns undefined if the connection does not accept the wallet, or if the token is not the wallet's whole answer.
 */
export function walletMethodOf(
  { type, token }: TokenMethod,
  { walletTokens }: OfferedMethods,
): { readonly type: string } | undefined {
  const offered = walletTokens.get(type);
  if (!offered) return undefined;
  if (offered.is === 'APPLE_PAY') {
    const read = applePayToken(token);
    if (!read) return undefined;
    const encoded = Buffer.from(JSON.stringify(read.paymentData)).toString('base64');
    return { type: offered.adyen, ...{ applePayToken: encoded } };
  }
  const text = googlePayToken(token);
  return text === '' ? undefined : { type: offered.adyen, ...{ googlePayToken: text } };
}
