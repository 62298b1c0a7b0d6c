import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { parseMoney } from '#src/money.ts';
import { notAvailable, type RequestedMethod } from '#src/payments/method/payment-method.ts';
import { readMetadata } from '#src/payments/request/metadata.ts';
import { type FieldError, invalidField, invalidParameters } from '#src/service-error.ts';
import type { StoredSession } from '#src/store/tables/checkout-sessions.ts';
import { MAX_SESSION_PAYMENTS } from '#src/store/tables/single-uses.ts';

/**
 * Checks a request against the terms of its checkout session, and fills absent fields from them.
 *
 * @returns the completed request.
 * @throws ServiceError INVALID_PARAMETERS naming each field that differs.
 */
export function requestInSession(
  request: CreatePaymentRequest,
  session: StoredSession | undefined,
): CreatePaymentRequest {
  if (!session || !hasTerms(session)) return request;
  requireTerms(request, session);
  return {
    ...request,
    description: request.description || session.paymentDescription,
    callbackUrl: request.callbackUrl || session.callbackUrl,
    metadata: request.metadata.length > 0 ? request.metadata : readMetadata(session.metadata),
    workflow: request.workflow || workflowOf(session),
  };
}

/**
 * Returns true if a session has terms. Only the sandbox's own session has none: it takes payments of any amount, any
 * number of times.
 */
export function hasTerms<T extends Pick<StoredSession, 'expiresAt'>>(
  session: T,
): session is T & { readonly expiresAt: Date } {
  return session.expiresAt !== undefined;
}

/** Returns the workflow of a session's payments for a request that does not set one. */
export function workflowOf({ workflow }: Pick<StoredSession, 'workflow'>): Payment_Workflow {
  const known = Payment_Workflow[workflow as keyof typeof Payment_Workflow];
  return known || Payment_Workflow.SDK_CHECKOUT;
}

function requireTerms(
  { amount, country, customerPayer }: CreatePaymentRequest,
  session: StoredSession,
): void {
  const money = parseMoney(amount?.value?.value ?? '', amount?.currency ?? '');
  const terms: readonly [field: string, agrees: boolean][] = [
    ['country', country === session.country],
    ['amount.currency', amount?.currency === session.currency],
    ['amount.value', money?.minorUnits === session.minorUnits],
    ['customer_payer.id', isOfCustomer(customerPayer?.id, session.customerId)],
  ];
  const message = 'differs from the value in the checkout session';
  const faults = terms
    .filter(([, agrees]) => !agrees)
    .map(([field]): FieldError => ({ field, code: 'NOT_ALLOWED', message }));
  if (faults.length > 0) throw invalidParameters(faults);
}

/**
 * Returns false if the request and the session name different customers. Any customer may pay a session without a
 * customer.
 */
function isOfCustomer(sent: string | undefined, customerId: string | undefined): boolean {
  return !sent || customerId === undefined || sent.toLowerCase() === customerId;
}

/** Returns true if a session accepts this type of payment method. */
export function takesType({ paymentMethodTypes }: StoredSession, type: string): boolean {
  return paymentMethodTypes.length === 0 || paymentMethodTypes.includes(type);
}

/**
 * Checks a payment's method against the session, whoever makes the payment.
 *
 * @throws ServiceError PAYMENT_METHOD_NOT_AVAILABLE, INVALID_PARAMETERS.
 */
export function requireMethodInSession(session: StoredSession | undefined, method: RequestedMethod): void {
  if (!session) return;
  if (!takesType(session, method.type))
    throw notAvailable('payment_method.type', 'is not accepted by the checkout session');
  if (method.by !== 'card') return;
  const { maxInstallments, securityCodeRequired } = session;
  const { installments, card } = method;
  if (maxInstallments > 0 && installments > maxInstallments) {
    const message = `must be at most ${maxInstallments} in this checkout session`;
    throw invalidField('payment_method.detail.card.installments', 'OUT_OF_RANGE', message);
  }
  if (securityCodeRequired && card.source === 'stored' && !card.securityCode) {
    const message = 'is required for a stored card in this checkout session';
    throw invalidField('payment_method.detail.card.card_data.security_code', 'REQUIRED', message);
  }
}

/** Returns the reason why a session accepts no more payments; undefined if it accepts another. */
export function whyClosed({ used, payments, expired }: StoredSession): string | undefined {
  if (used) return 'already has a payment that succeeded or is still open';
  if (payments >= MAX_SESSION_PAYMENTS) return `has had ${MAX_SESSION_PAYMENTS} payments, the maximum`;
  return expired ? 'has expired' : undefined;
}
