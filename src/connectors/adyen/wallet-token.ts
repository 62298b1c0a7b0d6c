import type { JsonValue } from '@bufbuild/protobuf';
import { isJsonObject, readJsonObject, textOf } from '../kit/provider-answer.ts';
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
  const answer = readJsonObject(Buffer.from(token.reveal()));
  if (!offered || !answer) return undefined;
  if (offered.is === 'APPLE_PAY') {
    const paymentData = within(answer.token, 'paymentData');
    if (!isJsonObject(paymentData)) return undefined;
    const applePayToken = Buffer.from(JSON.stringify(paymentData)).toString('base64');
    return { type: offered.adyen, ...{ applePayToken } };
  }
  const googlePayToken = textOf(within(within(answer.paymentMethodData, 'tokenizationData'), 'token'));
  return googlePayToken ? { type: offered.adyen, ...{ googlePayToken } } : undefined;
}

function within(value: JsonValue | undefined, name: string): JsonValue | undefined {
  return isJsonObject(value) ? value[name] : undefined;
}
