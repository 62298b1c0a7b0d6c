import type { JsonObject } from '@bufbuild/protobuf';

/** The answers of Apple and Google to a shop, for a card that the fake approves. A name in one tells the fake what to do. */
export const WALLET_ANSWERS = {
  APPLE_PAY: (data = 'approved') => ({
    token: {
      paymentData: { version: 'EC_v1', data, signature: 'c2lnbmF0dXJl', header: { transactionId: '1' } },
      paymentMethod: { displayName: 'Visa 1111', network: 'Visa', type: 'debit' },
      transactionIdentifier: '1',
    },
  }),
  GOOGLE_PAY: (data = 'approved') => ({
    apiVersion: 2,
    paymentMethodData: {
      type: 'CARD',
      info: { cardNetwork: 'VISA', cardDetails: '1111' },
      tokenizationData: {
        type: 'PAYMENT_GATEWAY',
        token: JSON.stringify({ protocolVersion: 'ECv2', signature: 'c2lnbmF0dXJl', signedMessage: data }),
      },
    },
  }),
} as const;

/** Adyen's data about the card behind a wallet. */
const CARD = {
  ...{ cardSummary: '1111', expiryDate: '3/2030', fundingSource: 'DEBIT' },
  paymentMethod: 'visa',
};

/**
 * Reads the token of a wallet.
 *
 * @returns undefined if it is not in the wallet's form.
 */
export function readWallet(method: Readonly<Record<string, string>>): string | undefined {
  try {
    if (method.type === 'applepay') {
      const text = Buffer.from(method.applePayToken ?? '', 'base64').toString();
      const { version, data, signature } = JSON.parse(text);
      return version && signature && Buffer.from(text).toString('base64') === method.applePayToken
        ? data
        : undefined;
    }
    const { protocolVersion, signedMessage, signature } = JSON.parse(method.googlePayToken ?? '');
    return protocolVersion && signature ? signedMessage : undefined;
  } catch {
    return undefined;
  }
}

/** Returns the additional data of an approval of a wallet's token. */
export function cardBehind(wallet: string): JsonObject {
  return { ...CARD, paymentMethodVariant: `visa_${wallet}` };
}
