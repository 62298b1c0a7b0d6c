import type { JsonObject } from '@bufbuild/protobuf';
import type { Secret } from '#src/secret.ts';
import { asIs, each, fields, isJsonObject, type Read, readJsonObject, textOf } from './provider-answer.ts';

const readGooglePay = fields({
  paymentMethodData: fields({ tokenizationData: fields({ token: textOf }) }),
});

/** Returns the token in the whole answer of Google Pay, in the form that the provider gave Google; '' if there is none. */
export function googlePayToken(answer: Secret): string {
  return readGooglePay(parsed(answer)).paymentMethodData.tokenizationData.token;
}

const readApplePay = fields({
  paymentData: asIs,
  paymentMethod: fields(each(textOf, 'displayName', 'network')),
  transactionIdentifier: textOf,
});

/** The token of Apple Pay, whose `paymentData` is encrypted for the provider. */
export type ApplePayToken = Read<typeof readApplePay> & { readonly paymentData: JsonObject };

/**
 * Reads the token of Apple Pay; undefined if it has no `paymentData`.
 *
 * @param answer Apple's payment.
 * @param options.mayBeToken true: the answer may also be the token alone.
 */
export function applePayToken(
  answer: Secret,
  { mayBeToken = false }: { readonly mayBeToken?: boolean } = {},
): ApplePayToken | undefined {
  const payment = parsed(answer);
  const isToken = mayBeToken && !isJsonObject(payment?.token);
  const { paymentData, ...others } = readApplePay(isToken ? payment : payment?.token);
  return isJsonObject(paymentData) ? { ...others, paymentData } : undefined;
}

function parsed(answer: Secret): JsonObject | undefined {
  return readJsonObject(Buffer.from(answer.reveal()));
}
