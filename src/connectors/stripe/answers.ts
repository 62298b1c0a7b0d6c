import { create, type JsonObject } from '@bufbuild/protobuf';
import type Stripe from 'stripe';
import { type ProviderData, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Money } from '#src/money.ts';
import {
  asIs,
  each,
  type FieldsOf,
  fields,
  isJsonObject,
  listOf,
  numberOf,
  optional,
  pageAddress,
  type Read,
  readMoney,
  stringOf,
  textLike,
  textOf,
  withoutFields,
} from '../kit/provider-answer.ts';
import type { ShownAs } from '../kit/provider-client.ts';

/** Matches PaymentIntent ids. */
export const INTENT_ID = /^pi_[A-Za-z0-9_]{1,200}$/;
/** Matches the ids of customers. */
export const CUSTOMER_ID = /^cus_[A-Za-z0-9_]{1,200}$/;
const REFUND_ID = /^(re|pyr)_[A-Za-z0-9_]{1,200}$/;

/** Reads a text that a payer is shown; a longer one than any code counts as absent. */
const shortText = textLike(/^[^\p{Cc}]{1,1000}$/u);

/** The metadata that we set when creating an object or capturing an intent. */
const metadata = fields({ transaction_id: asIs, capture_transaction_id: asIs });

/** The reasons of the card's scheme, with its advice and Stripe's. Only newer versions of the API report them. */
const advice = each(textOf, 'advice_code', 'network_advice_code', 'network_decline_code');

const charge = fields({
  id: textLike(/^(ch|py)_[A-Za-z0-9_]{1,200}$/),
  status: textOf,
  amount_refunded: asIs,
  outcome: fields({
    ...({
      type: textOf,
      network_status: textOf,
      seller_message: textOf,
    } satisfies FieldsOf<Stripe.Charge.Outcome>),
    ...advice,
  }),
  payment_method_details: fields({
    card: fields({
      ...({
        ...each(textOf, 'brand', 'last4', 'funding'),
        ...each(numberOf, 'exp_month', 'exp_year'),
        wallet: optional(fields({ type: textOf })),
      } satisfies FieldsOf<Stripe.Charge.PaymentMethodDetails.Card>),
      // Only newer versions of the API report these two.
      ...each(textOf, 'network_transaction_id', 'authorization_code'),
    }),
  } satisfies FieldsOf<Stripe.Charge.PaymentMethodDetails>),
} satisfies FieldsOf<Stripe.Charge>);

/** Reads a charge that some responses contain and others only name. */
const latestCharge: typeof charge = (value) => charge(typeof value === 'string' ? { id: value } : value);

const error = fields({
  ...({
    type: stringOf,
    code: textOf,
    decline_code: textOf,
    param: textOf,
    message: textOf,
    payment_intent: optional((intent) => intent as JsonObject),
  } satisfies FieldsOf<Stripe.StripeRawError>),
  ...advice,
});

/** The code that a payer is shown, by its method. */
const codes = {
  pix_display_qr_code: fields({
    data: shortText,
    ...each(pageAddress, 'image_url_png', 'hosted_instructions_url'),
    expires_at: numberOf,
  } satisfies FieldsOf<Stripe.PaymentIntent.NextAction.PixDisplayQrCode>),
  boleto_display_details: fields({
    number: shortText,
    ...each(pageAddress, 'pdf', 'hosted_voucher_url'),
    expires_at: numberOf,
  } satisfies FieldsOf<Stripe.PaymentIntent.NextAction.BoletoDisplayDetails>),
  oxxo_display_details: fields({
    number: shortText,
    hosted_voucher_url: pageAddress,
    expires_after: numberOf,
  } satisfies FieldsOf<Stripe.PaymentIntent.NextAction.OxxoDisplayDetails>),
  display_bank_transfer_instructions: fields({
    amount_remaining: asIs,
    currency: asIs,
    reference: shortText,
    hosted_instructions_url: pageAddress,
    financial_addresses: listOf(
      fields({
        type: textOf,
        // Only newer versions of the API report the account's holder.
        spei: fields({ ...each(shortText, 'clabe', 'bank_name', 'account_holder_name') }),
      }),
    ),
  } satisfies FieldsOf<Stripe.PaymentIntent.NextAction.DisplayBankTransferInstructions>),
} satisfies FieldsOf<Stripe.PaymentIntent.NextAction>;

/** Reads a PaymentIntent. */
export const readIntent = fields({
  object: asIs,
  id: textLike(INTENT_ID),
  status: textOf,
  amount: asIs,
  amount_received: asIs,
  amount_capturable: asIs,
  currency: asIs,
  capture_method: asIs,
  payment_method: asIs,
  customer: textLike(CUSTOMER_ID),
  metadata,
  latest_charge: latestCharge,
  last_payment_error: optional(error),
  next_action: fields({
    redirect_to_url: fields({ url: pageAddress }),
    ...codes,
  } satisfies FieldsOf<Stripe.PaymentIntent.NextAction>),
} satisfies FieldsOf<Stripe.PaymentIntent>);

/** A PaymentIntent. */
export type Intent = Read<typeof readIntent>;
/** An error, or the reason for a failed payment. */
export type StripeError = Read<typeof error>;

/** Reads a refund. */
export const readRefund = fields({
  object: asIs,
  id: textLike(REFUND_ID),
  status: textOf,
  payment_intent: asIs,
  metadata,
  amount: asIs,
  currency: asIs,
  failure_reason: textOf,
  balance_transaction: asIs,
} satisfies FieldsOf<Stripe.Refund>);

/** A refund. */
export type Refund = Read<typeof readRefund>;

/** Reads a list of refunds; `data` is undefined if it is not a list. */
export const readRefunds = fields({
  data: (data) => (Array.isArray(data) ? data.filter(isJsonObject) : undefined),
  has_more: asIs,
} satisfies FieldsOf<Stripe.ApiList<Stripe.Refund>>);

/** Reads the money in a customer's balance that no payment has taken, in Stripe's units by currency. */
export const readCashBalance = fields({
  object: asIs,
  available: (value) => (isJsonObject(value) ? value : {}),
} satisfies FieldsOf<Stripe.CashBalance>);

/** Reads a search result. */
export const readFound = fields({ data: listOf(readIntent) });

/** Reads the id of an account. */
export const readAccountId = fields({ id: textLike(/^acct_[A-Za-z0-9]{1,64}$/) });

/** Returns the error in a response, if it has Stripe's form. */
export function errorOf(body: JsonObject | undefined): StripeError | undefined {
  const read = optional(error)(body?.error);
  return read?.type === undefined ? undefined : read;
}

/** Returns the money of an object, in Stripe's units. */
export function moneyOf({ amount, currency }: Pick<Refund, 'amount' | 'currency'>): Money | undefined {
  return readMoney(amount, currency, 'minor_units');
}

/** Fields that the record omits: data that would let a browser act on the payment, and the payer's own data. */
const NOT_SHOWN: ReadonlySet<string> = new Set([
  ...['client_secret', 'next_action', 'billing_details', 'shipping', 'receipt_email', 'receipt_url'],
]);

/** Returns the parts of a response that the record shows; `body` is the whole response. */
export function providerDataOf(
  object: Partial<Pick<Intent, 'id' | 'status' | 'latest_charge'> & Pick<Refund, 'failure_reason'>>,
  body: JsonObject,
  { providerId, accountId }: ShownAs,
): ProviderData {
  const { network_status: networkStatus, seller_message: message } = object.latest_charge?.outcome ?? {};
  return create(ProviderDataSchema, {
    id: providerId,
    transactionId: object.id ?? '',
    accountId: accountId ?? '',
    status: object.status ?? '',
    statusDetail: networkStatus || object.failure_reason || '',
    responseMessage: message ?? '',
    rawResponse: withoutFields(body, NOT_SHOWN),
  });
}
