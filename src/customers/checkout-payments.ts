import { create } from '@bufbuild/protobuf';
import {
  type CheckoutAmount,
  CheckoutAmountSchema,
  type CheckoutPayment,
  CheckoutPaymentSchema,
  type CloseCheckoutPaymentRequest,
  type CreateCheckoutPaymentRequest,
} from '#gen/payments/v1/checkout_service_pb.js';
import type { CardInput } from '#gen/payments/v1/payment_method_pb.js';
import { type Payment, Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import {
  type CreatePaymentRequest,
  CreatePaymentRequest_AmountSchema,
  CreatePaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { type Money, parseMoney, toDecimal } from '#src/money.ts';
import type { Caller } from '#src/payments/caller.ts';
import { callbackAddress, closePayment, type ReturnDeps } from '#src/payments/check/payer-return.ts';
import { cardName } from '#src/payments/create/card.ts';
import { createPayment, type PaymentDeps } from '#src/payments/create/create-payment.ts';
import { hasThreeDSecureResults } from '#src/payments/create/payment-method.ts';
import { hasTerms } from '#src/payments/create/session-terms.ts';
import type { OnceResponse } from '#src/payments/keys/call-once.ts';
import { storedIdempotencyKey } from '#src/payments/keys/key.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { fieldRefusal, notAllowed, ServiceError } from '#src/service-error.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { findByKey } from '#src/store/tables/payment-keys.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { AlreadyUsedError } from '#src/store/tables/single-uses.ts';
import { findStoredObjects } from '#src/store/tables/stored-objects.ts';
import { requireSession } from './checkout-sessions.ts';

/**
 * Maximum number of tries to pay: a session may change after its terms were read, but hardly this often by accident.
 */
const TRIES = 5;

/**
 * Pays a session with its terms or, if they change in the meantime, with the new terms. Anyone who knows the session's
 * id may call this, so stored methods must belong to the session's customer.
 *
 * @param valid checks the resulting request against the rules for CreatePayment.
 * @throws ServiceError as `createPayment` does; CHECKOUT_SESSION_NOT_FOUND, INVALID_CUSTOMER_FOR_TOKEN.
 */
export async function payCheckout(
  deps: PaymentDeps,
  request: CreateCheckoutPaymentRequest,
  caller: Caller,
  valid: (request: CreatePaymentRequest) => void,
): Promise<OnceResponse<typeof CheckoutPaymentSchema>> {
  for (let tries = 1; ; tries++) {
    try {
      return await payOnTerms(deps, request, caller, valid);
    } catch (error) {
      if (!(error instanceof AlreadyUsedError) || tries === TRIES) throw error;
    }
  }
}

async function payOnTerms(
  deps: PaymentDeps,
  request: CreateCheckoutPaymentRequest,
  caller: Caller,
  valid: (request: CreatePaymentRequest) => void,
): Promise<OnceResponse<typeof CheckoutPaymentSchema>> {
  const session = await requireSession(deps.database, caller.accountId, request.checkoutSession);
  const payment = paymentRequest(request, session);
  valid(payment);
  await requireOwnMethod(deps, payment, session);
  const within = { ...caller, withinSession: { id: session.id, version: session.version } };
  const created = await createPayment(deps, payment, within).catch(async (refusal) => {
    const isReused = refusal instanceof ServiceError && refusal.reason === 'IDEMPOTENCY_KEY_REUSED';
    const terms = isReused ? await firstTerms(deps, session, caller, request.amount) : undefined;
    if (!terms) throw refusal;
    // A payment holds the key, so this request is only compared with that payment's request.
    return createPayment(deps, { ...payment, ...terms }, within);
  });
  return { message: checkoutPayment(created.record), replayed: created.replayed };
}

/**
 * Returns the terms of the session's first payment with the caller's key. The merchant may have changed the terms
 * since, and a browser that repeats its call sends none of them except, perhaps, the amount that it showed the payer.
 *
 * @returns undefined if the payment that holds the key belongs to another session or has another amount.
 */
async function firstTerms(
  { database }: PaymentDeps,
  session: StoredSession,
  caller: Caller,
  shown: CheckoutAmount | undefined,
): Promise<Pick<CreatePaymentRequest, 'merchantOrderId' | 'country' | 'amount'> | undefined> {
  const key = storedIdempotencyKey(caller);
  const holder = await findByKey(database, session.accountId, key);
  const first = holder && decodeRecord(holder.record);
  if (!first?.amount || first.checkout?.session !== session.id) return undefined;
  const { merchantOrderId, country } = first;
  const { currency, value } = first.amount;
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
  const option = kind?.case === 'card' && merchantsOption(kind.value);
  if (option)
    throw notAllowed(
      `payment_method.detail.card.${option}`,
      'can only be set by the merchant; use CreatePayment',
    );
  if (customerPayer?.id) throw notAllowed('customer_payer.id', 'is set by the checkout session');
  if (paymentMethod?.vaultOnSuccess && !session.customerId) {
    throw notAllowed('payment_method.vault_on_success', 'requires a checkout session with a customer');
  }
  const { currency, minorUnits } = session;
  // In the session's own form, so that the request has the same hash with or without the amount.
  const own = { currency, value: toDecimal({ currency, minorUnits }) };
  // Only the merchant may change a customer's stored data.
  const payer = session.customerId
    ? { browserInfo: customerPayer?.browserInfo, deviceFingerprints: customerPayer?.deviceFingerprints ?? [] }
    : customerPayer;
  return create(CreatePaymentRequestSchema, {
    accountId: session.accountId,
    merchantOrderId: session.merchantOrderId,
    country: session.country,
    // If the amount differs from the session's, the payment is refused later, like any payment of a session.
    amount:
      amount && !isSameMoney(amount, session) ? { currency: amount.currency, value: amount.value } : own,
    checkout: { session: session.id },
    paymentMethod,
    ...(customerPayer && { customerPayer: payer }),
  });
}

function isSameMoney({ currency, value }: CheckoutAmount, money: Money | undefined): boolean {
  const shown = parseMoney(value?.value ?? '', currency);
  return currency === money?.currency && shown?.minorUnits === money.minorUnits;
}

/**
 * Returns the name of a card option that is set although no payer may set it: such an option decides when the money
 * arrives or who is liable.
 */
function merchantsOption(card: CardInput): string | undefined {
  if (card.verify) return 'verify';
  if (card.capture === false) return 'capture';
  if (card.softDescriptor) return 'soft_descriptor';
  if (card.storedCredentials) return 'stored_credentials';
  return card.threeDSecure && hasThreeDSecureResults(card.threeDSecure) ? 'three_d_secure' : undefined;
}

/** Checks that a stored method belongs to the session's customer, since its token is not a secret. */
async function requireOwnMethod(
  { database }: PaymentDeps,
  { paymentMethod }: CreatePaymentRequest,
  session: StoredSession,
): Promise<void> {
  const vaultedToken = paymentMethod?.vaultedToken;
  if (!vaultedToken) return;
  const names = { customerId: undefined, vaultedToken };
  const { vaultedToken: stored } = await findStoredObjects(database, session.accountId, names);
  // An unknown token is refused later, with a more specific reason.
  if (!stored || (session.customerId && stored.customerId === session.customerId)) return;
  const message = 'does not belong to the checkout session’s customer';
  throw fieldRefusal('INVALID_CUSTOMER_FOR_TOKEN', 'payment_method.vaulted_token', 'NOT_ALLOWED', message);
}

/** Returns a payment as shown to its payer, without the data of the provider, the merchant or stored objects. */
function checkoutPayment(record: Payment): CheckoutPayment {
  const { transactions: transaction, paymentMethod, amount } = record;
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const isOpen = record.status === Payment_Status.READY_TO_PAY || record.status === Payment_Status.PENDING;
  // After the payer's return, only the provider still has something to do.
  const mustGo = isOpen && record.subStatus !== Payment_SubStatus_Value.IN_PROCESS;
  const card = kind?.case === 'card' ? kind.value.cardData : undefined;
  return create(CheckoutPaymentSchema, {
    id: record.id,
    checkoutSession: record.checkout?.session ?? '',
    status: record.status,
    subStatus: record.subStatus,
    amount: create(CheckoutAmountSchema, { currency: amount?.currency ?? '', value: amount?.value }),
    responseCode: transaction?.responseCode ?? '',
    responseMessage: transaction?.responseMessage ?? '',
    redirectUrl: mustGo ? (kind?.value?.redirectUrl ?? '') : '',
    callbackUrl: callbackAddress(record) ?? '',
    type: paymentMethod?.type ?? '',
    name: card ? cardName(card) : '',
    createdAt: record.createdAt,
  });
}
