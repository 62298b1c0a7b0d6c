import { create } from '@bufbuild/protobuf';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { readMerchantAdvice } from '../kit/merchant-advice.ts';
import {
  asIs,
  each,
  fields,
  isTextLike,
  listOf,
  pageAddress,
  type Read,
  type Reader,
  textLike,
  textOf,
  withoutFields,
  withRaw,
} from '../kit/provider-answer.ts';
import type { Environment } from '../port/account-report.ts';

/** Names under which the record shows a connection's responses. */
export type ShownAs = {
  readonly providerId: string;
  readonly merchantAccount: string;
  /** undefined: the account is at no address of Adyen's own. */
  readonly environment?: Environment | undefined;
};

/** Matches Adyen's payment and operation ids. */
export const PSP_REFERENCE = /^[A-Za-z0-9_-]{1,64}$/;

/** Returns the names that a pspReference gives a payment or an operation; none if it is not a valid one. */
export function namesOf(pspReference: string | undefined) {
  return isTextLike(pspReference, PSP_REFERENCE)
    ? { reference: pspReference, providerPaymentId: pspReference }
    : {};
}

/** Reads a date in ISO 8601. Without an offset it is taken as UTC, which is never later than the Americas' own times. */
const dateOf: Reader<Date | undefined> = (value) => {
  const text = textOf(value);
  const ms = Date.parse(/T[\d:.]+$/.test(text) ? `${text}Z` : text);
  return Number.isNaN(ms) ? undefined : new Date(ms);
};

/** Additional fields, each present only if the account is configured to receive it. */
const additionalData = fields({
  authCode: textLike(/^[A-Za-z0-9]{1,6}$/),
  networkTxReference: textLike(/^[A-Za-z0-9]{1,64}$/),
  refusalReasonRaw: textOf,
  merchantAdviceCode: textOf,
  hmacSignature: textLike(/^[A-Za-z0-9+/]{43}=$/),
  'pix.expirationDate': dateOf,
  // About a dispute.
  ...each(textOf, 'chargebackReasonCode', 'defensePeriodEndsAt'),
  // About the card behind a wallet.
  ...each(
    textOf,
    'cardPaymentMethod',
    'paymentMethod',
    'paymentMethodVariant',
    'expiryDate',
    'fundingSource',
  ),
  cardSummary: textLike(/^\d{4}$/),
});

/** Reads a response of the Checkout API. */
export const readAnswer = withRaw(
  fields({
    ...each(textOf, 'pspReference', 'resultCode', 'refusalReasonCode', 'refusalReason'),
    ...each(asIs, 'merchantReference', 'amount'),
    action: fields({
      ...each(textOf, 'type', 'method', 'paymentMethodType'),
      ...each(pageAddress, 'url', 'downloadUrl'),
      ...each(textOf, 'qrCodeData', 'reference', 'alternativeReference'),
      expiresAt: dateOf,
      // A voucher's, before any surcharge.
      initialAmount: asIs,
    }),
    additionalData,
    // In the response to an operation. An error's `status` is its HTTP status.
    ...each(asIs, 'status', 'merchantAccount', 'paymentPspReference', 'paymentReference', 'reference'),
    // In an error.
    ...each(textOf, 'errorCode', 'errorType', 'message'),
  }),
);

/** A response of the Checkout API. */
export type Answer = Read<typeof readAnswer>;

/** Reads the list of the account's payment methods. */
export const readPaymentMethods = fields({
  paymentMethods: listOf(
    fields({
      type: textOf,
      issuers: listOf(fields({ ...each(textOf, 'id', 'name'), disabled: asIs })),
    }),
  ),
});

/** Reads an item of a notification. */
export const readItem = withRaw(
  fields({
    ...each(textOf, 'pspReference', 'originalReference', 'merchantAccountCode', 'merchantReference'),
    ...each(textOf, 'eventCode', 'success', 'reason', 'paymentMethod'),
    eventDate: dateOf,
    amount: asIs,
    additionalData,
  }),
);

/** An item of a notification: an event. */
export type Item = Read<typeof readItem>;

/** Fields that the record omits: data that would let a browser act on the payment, and a signature. */
const NOT_SHOWN: ReadonlySet<string> = new Set(['action', 'hmacSignature']);

/** Builds the record's provider data from a response or a notification. @param status Adyen's own status. */
export function providerDataOf(
  { pspReference, raw, additionalData, ...reported }: Pick<Answer, 'pspReference' | 'raw'> & Partial<Answer>,
  status: string,
  { providerId, merchantAccount }: ShownAs,
): ProviderData {
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: pspReference,
    accountId: merchantAccount,
    status,
    responseCode: reported.refusalReasonCode || reported.errorCode || '',
    responseMessage: reported.refusalReason || reported.message || '',
    ...readMerchantAdvice(additionalData?.merchantAdviceCode ?? ''),
    rawResponse: withoutFields(raw, NOT_SHOWN),
  });
}
