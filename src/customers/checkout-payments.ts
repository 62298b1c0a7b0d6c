import { create } from '@bufbuild/protobuf';
import {
  type CheckoutAmount,
  CheckoutAmountSchema,
  type CheckoutPayment,
  CheckoutPaymentSchema,
  type CloseCheckoutPaymentRequest,
  type CreateCheckoutPaymentRequest,
} from '#gen/payments/v1/checkout_service_pb.js';
import type { PaymentMethodDetailInput } from '#gen/payments/v1/payment_method_pb.js';
import { type Payment, Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequest_AmountSchema,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { type Money, parseMoney, toDecimal } from '#src/money.ts';
import type { Caller } from '#src/payments/caller.ts';
import { callbackAddress, closePayment, type ReturnDeps } from '#src/payments/check/payer-return.ts';
import { type AskedPayment, type PaymentDeps, payAsked } from '#src/payments/create/create-payment.ts';
import { hasTerms } from '#src/payments/create/session-terms.ts';
import type { OnceResponse } from '#src/payments/keys/call-once.ts';
import { cardName } from '#src/payments/method/card.ts';
import { merchantsFeature } from '#src/payments/method/features.ts';
import { cardOptions } from '#src/payments/method/payment-method.ts';
import { localDetailOf } from '#src/payments/model/record.ts';
import { payerMustAct } from '#src/payments/model/state.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { notAllowed, ServiceError } from '#src/service-error.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { requireSession } from './checkout-sessions.ts';

/**
 * Pays a session with its terms or, if they change in the meantime, with the new terms. Anyone who knows the session's
 * id may call this, so stored methods must belong to the session's customer.
 *
 * @param valid checks the resulting request against the rules for CreatePayment.
 * @throws ServiceError as `payAsked` does; CHECKOUT_SESSION_NOT_FOUND, INVALID_CUSTOMER_FOR_TOKEN.
 */
export async function payCheckout(
  deps: PaymentDeps,
  request: CreateCheckoutPaymentRequest,
  caller: Caller,
  valid: (request: CreatePaymentRequest) => void,
): Promise<OnceResponse<typeof CheckoutPaymentSchema>> {
  const asked = await askOnTerms(deps, request, caller, valid);
  const { record, replayed } = await payAsked(deps, asked);
  return { message: checkoutPayment(record), replayed };
}

/** Asks for a session's payment on the session's current terms. */
async function askOnTerms(
  deps: PaymentDeps,
  request: CreateCheckoutPaymentRequest,
  caller: Caller,
  valid: (request: CreatePaymentRequest) => void,
): Promise<AskedPayment> {
  const session = await requireSession(deps.database, caller.accountId, request.checkoutSession);
  const payment = paymentRequest(request, session);
  valid(payment);
  return {
    request: payment,
    caller: { ...caller, withinSession: session },
    onTermsOf(earlier) {
      const terms = firstTerms(earlier, session, request.amount);
      return terms && { ...payment, ...terms };
    },
    again: () => askOnTerms(deps, request, caller, valid),
  };
}

/**
 * Returns the terms of the session's first payment with the caller's key. The merchant may have changed the terms
 * since, and a browser that repeats its call sends none of them except, perhaps, the amount that it showed the payer.
 *
 * @returns undefined if the payment that holds the key belongs to another session or has another amount.
 */
function firstTerms(
  { merchantOrderId, country, amount, checkout }: Payment,
  session: StoredSession,
  shown: CheckoutAmount | undefined,
): Pick<CreatePaymentRequest, 'merchantOrderId' | 'country' | 'amount'> | undefined {
  if (!amount || checkout?.session !== session.id) return undefined;
  const { currency, value } = amount;
  if (shown && !isSameMoney(shown, parseMoney(value?.value ?? '', currency))) return undefined;
  return { merchantOrderId, country, amount: create(CreatePaymentRequest_AmountSchema, { currency, value }) };
}

/** Returns the last payment of a session. @throws ServiceError CHECKOUT_SESSION_NOT_FOUND, PAYMENT_NOT_FOUND. */
export async function getCheckoutPayment(
  { database }: Pick<PaymentDeps, 'database'>,
  accountId: string,
  sessionId: string,
): Promise<CheckoutPayment> {
  const { paymentId } = await requireSession(database, accountId, sessionId);
  const record = paymentId && (await getPaymentRecord(database, accountId, paymentId));
  if (!record) throw new ServiceError('PAYMENT_NOT_FOUND', 'the checkout session has no payment yet');
  return checkoutPayment(decodeRecord(record));
}

/**
 * Closes the payment that a payer was shown, if it is still the session's last, so that the payer can pay another way.
 *
 * @returns the session's last payment afterwards.
 * @throws ServiceError CHECKOUT_SESSION_NOT_FOUND, PAYMENT_NOT_FOUND.
 */
export async function closeCheckoutPayment(
  deps: ReturnDeps,
  accountId: string,
  { checkoutSession, payment }: CloseCheckoutPaymentRequest,
): Promise<CheckoutPayment> {
  const { paymentId } = await requireSession(deps.database, accountId, checkoutSession);
  if (paymentId !== undefined && paymentId === payment.toLowerCase()) await closePayment(deps, paymentId);
  return getCheckoutPayment(deps, accountId, checkoutSession);
}

/** Builds the payment request. @throws ServiceError INVALID_PARAMETERS for fields that a browser may not set. */
function paymentRequest(
  { paymentMethod, customerPayer, amount }: CreateCheckoutPaymentRequest,
  session: StoredSession,
): CreatePaymentRequest {
  if (!hasTerms(session)) throw notAllowed('checkout_session', 'has no terms; use CreatePayment');
  const kind = paymentMethod?.detail?.kind;
  if (kind?.case === 'card' && kind.value.cardData?.number) {
    const field = 'payment_method.detail.card.card_data.number';
    throw notAllowed(field, 'is not accepted here; create a one-time token for the card first');
  }
  const option = merchantsOption(kind);
  if (option) {
    const message = 'can only be set by the merchant; use CreatePayment';
    throw notAllowed(`payment_method.detail.${kind?.case}.${option}`, message);
  }
  if (customerPayer?.id) throw notAllowed('customer_payer.id', 'is set by the checkout session');
  if (paymentMethod?.vaultOnSuccess && !session.customerId) {
    throw notAllowed('payment_method.vault_on_success', 'requires a checkout session with a customer');
  }
  const { currency, minorUnits } = session;
  // In the session's own form, so that the request has the same hash with or without the amount.
  const own = { currency, value: toDecimal({ currency, minorUnits }) };
  return create(CreatePaymentRequestSchema, {
    accountId: session.accountId,
    merchantOrderId: session.merchantOrderId,
    country: session.country,
    // If the amount differs from the session's, the payment is refused later, like any payment of a session.
    amount:
      amount && !isSameMoney(amount, session) ? { currency: amount.currency, value: amount.value } : own,
    checkout: { session: session.id },
    paymentMethod,
    ...(customerPayer && { customerPayer }),
  });
}

/** Returns the field of a card's or wallet token's detail that only merchants may set; undefined if there is none. */
function merchantsOption(kind: PaymentMethodDetailInput['kind'] | undefined): string | undefined {
  if (kind?.case === 'card') return merchantsFeature(cardOptions(kind.value));
  if (kind?.case !== 'wallet' || !kind.value.paymentToken) return undefined;
  const { verify, capture, softDescriptor, storedCredentials } = kind.value;
  return merchantsFeature(cardOptions({ verify, capture, softDescriptor, storedCredentials }));
}

function isSameMoney({ currency, value }: CheckoutAmount, money: Money | undefined): boolean {
  const shown = parseMoney(value?.value ?? '', currency);
  return currency === money?.currency && shown?.minorUnits === money.minorUnits;
}

/** Returns a payment as shown to its payer, without the data of the provider, the merchant or stored objects. */
function checkoutPayment(record: Payment): CheckoutPayment {
  const { transactions: transaction, paymentMethod, amount } = record;
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const card = kind?.case === 'card' ? kind.value.cardData : undefined;
  return create(CheckoutPaymentSchema, {
    id: record.id,
    checkoutSession: record.checkout?.session ?? '',
    status: record.status,
    subStatus: record.subStatus,
    amount: create(CheckoutAmountSchema, { currency: amount?.currency ?? '', value: amount?.value }),
    responseCode: transaction?.responseCode ?? '',
    responseMessage: transaction?.responseMessage ?? '',
    redirectUrl: payerMustAct(record) || isPrepared(record) ? (kind?.value?.redirectUrl ?? '') : '',
    callbackUrl: callbackAddress(record) ?? '',
    type: paymentMethod?.type ?? '',
    name: card ? cardName(card) : '',
    createdAt: record.createdAt,
  });
}

/** Returns true while the code of a local method is prepared, which its page shows once it is ready. */
function isPrepared({ status, subStatus, paymentMethod }: Payment): boolean {
  const isLocal = localDetailOf(paymentMethod?.paymentMethodDetail) !== undefined;
  const { PENDING_PROVIDER_CONFIRMATION } = Payment_SubStatus_Value;
  return isLocal && status === Payment_Status.PENDING && subStatus === PENDING_PROVIDER_CONFIRMATION;
}
