import { create } from '@bufbuild/protobuf';
import { timestampDate, timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  CheckoutAmountSchema,
  CheckoutService,
  type CheckoutSession,
  CheckoutSessionSchema,
  type CreateCheckoutSessionRequest,
  type UpdateCheckoutSessionRequest,
  UpdateCheckoutSessionRequestSchema,
} from '#gen/payments/v1/checkout_service_pb.js';
import { Payment_Workflow } from '#gen/payments/v1/payment_pb.js';
import { parseMoney, toDecimal } from '#src/money.ts';
import { type Caller, requireOwnAccount } from '#src/payments/caller.ts';
import { hasTerms, whyClosed, workflowOf } from '#src/payments/create/session-terms.ts';
import { callOnce, type OnceResponse, onceCallsOf } from '#src/payments/keys/call-once.ts';
import { checkAmount, checkCallbackUrl, checkCountry } from '#src/payments/request/check-request.ts';
import { readMetadata, writeMetadata } from '#src/payments/request/metadata.ts';
import {
  faultsOf,
  invalidParameters,
  missingResource,
  notAllowed,
  type ServiceError,
  unknownId,
} from '#src/service-error.ts';
import type { Database, Run } from '#src/store/engine/database.ts';
import {
  insertSession,
  lockSession,
  readSession,
  type SessionTerms,
  type StoredSession,
  updateSession,
} from '#src/store/tables/checkout-sessions.ts';
import { lockCustomer } from '#src/store/tables/customers.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import type { CustomerDeps } from './customers.ts';
import { fieldChanges } from './field-changes.ts';

/** Lifetime of a session that does not set an expiry. */
const LIVES_S = 5 * 3_600;
/** Maximum lifetime of a session. */
const MAX_LIVES_MS = 30 * 24 * 3_600_000;

const creation = onceCallsOf(CheckoutService.method.createCheckoutSession);

/** Opens a session. @throws ServiceError INVALID_PARAMETERS, CUSTOMER_NOT_FOUND; and as `callOnce`. */
export function createSession(
  deps: CustomerDeps,
  request: CreateCheckoutSessionRequest,
  caller: Caller,
): Promise<OnceResponse<typeof CheckoutSessionSchema>> {
  requireOwnAccount(request.accountId, caller);
  const { $typeName: _, ...fields } = request;
  const terms = termsOf(create(CheckoutSessionSchema, fields));
  const { accountId } = caller;
  return callOnce(deps.database, creation(deps, request, caller), async (run) => {
    await requireCustomer(run, accountId, terms.customerId);
    const stored = await insertSession(run, { accountId, id: deps.newId(accountId) }, terms, LIVES_S);
    requireTimeToCome(stored);
    return sessionMessage(stored);
  });
}

/** Returns a session, even if used or expired. @throws ServiceError CHECKOUT_SESSION_NOT_FOUND. */
export async function requireSession(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredSession> {
  const session = isUuid(id) ? await readSession(database, accountId, id) : undefined;
  if (!session) throw sessionNotFound('does not exist in this account');
  return session;
}

/**
 * Returns a session that can be paid. @throws ServiceError CHECKOUT_SESSION_NOT_FOUND, even if it is used or expired.
 */
export async function requireOpenSession(
  database: Database,
  accountId: string,
  id: string,
): Promise<StoredSession> {
  const session = await requireSession(database, accountId, id);
  requireOpen(session);
  return session;
}

/**
 * Changes the fields of an open session that a request sets or clears.
 *
 * @throws ServiceError INVALID_PARAMETERS, CUSTOMER_NOT_FOUND, CHECKOUT_SESSION_NOT_FOUND.
 */
export async function changeSession(
  { database }: CustomerDeps,
  accountId: string,
  request: UpdateCheckoutSessionRequest,
): Promise<CheckoutSession> {
  const change = fieldChanges(request, CHANGES);
  const id = request.checkoutSession;
  if (!isUuid(id)) throw sessionNotFound('does not exist in this account');
  const work = database.transaction(async (run) => {
    const stored = await lockSession(run, accountId, id);
    if (!stored) throw sessionNotFound('does not exist in this account');
    requireOpen(stored);
    const session = sessionMessage(stored);
    change(session);
    const terms = termsOf(session);
    if (terms.customerId !== stored.customerId) await requireCustomer(run, accountId, terms.customerId);
    const changed = await updateSession(run, { accountId, id }, terms);
    requireTimeToCome(changed);
    return sessionMessage(changed);
  });
  return work;
}

const CHANGES = {
  request: UpdateCheckoutSessionRequestSchema,
  target: CheckoutSessionSchema,
  names: ['checkout_session'],
  required: ['merchant_order_id', 'country', 'amount', 'expires_at'],
};

/**
 * Checks the expiry of a session that was just written. The database compares the times, as it does when the session is
 * paid, since the process's clock may differ. A refusal rolls the session back.
 */
function requireTimeToCome({ expired, expiresAt, createdAt }: StoredSession): void {
  if (expired) throw notAllowed('expires_at', 'must be in the future');
  if (expiresAt && expiresAt.getTime() - createdAt.getTime() > MAX_LIVES_MS)
    throw notAllowed('expires_at', 'must be at most 30 days after the session was opened');
}

function requireOpen(session: StoredSession): void {
  const message = whyClosed(session);
  if (message !== undefined) throw sessionNotFound(message);
}

/** Returns the refusal of a session that is missing or takes no more. */
export function sessionNotFound(message: string): ServiceError {
  return missingResource('CHECKOUT_SESSION_NOT_FOUND', 'checkout_session', message);
}

/** Checks that a customer exists, and prevents its deletion until the session is stored. */
async function requireCustomer(run: Run, accountId: string, customerId: string | undefined): Promise<void> {
  if (customerId === undefined) return;
  if (isUuid(customerId) && (await lockCustomer(run, accountId, customerId))) return;
  throw unknownId('CUSTOMER_NOT_FOUND', 'customer_id');
}

/** Checks what the rules in the .proto cannot express. @throws ServiceError INVALID_PARAMETERS. */
function termsOf(session: CheckoutSession): SessionTerms {
  const { country, amount, callbackUrl } = session;
  const faults = faultsOf((report) => {
    checkCountry(report, 'country', country);
    checkAmount(report, amount);
    checkCallbackUrl(report, callbackUrl);
  });
  const money = parseMoney(amount?.value?.value ?? '', amount?.currency ?? '');
  if (faults.length > 0 || !money) throw invalidParameters(faults);
  return {
    merchantOrderId: session.merchantOrderId,
    paymentDescription: session.paymentDescription,
    country,
    ...money,
    customerId: session.customerId || undefined,
    callbackUrl: callbackUrl || undefined,
    metadata: writeMetadata(session.metadata),
    workflow: Payment_Workflow[session.workflow || Payment_Workflow.SDK_CHECKOUT],
    paymentMethodTypes: session.paymentMethodTypes,
    securityCodeRequired: session.securityCodeRequired,
    maxInstallments: session.maxInstallments,
    expiresAt: session.expiresAt && timestampDate(session.expiresAt),
  };
}

/** Returns a session as shown to its merchant. */
export function sessionMessage(session: StoredSession): CheckoutSession {
  const { minorUnits, currency } = session;
  return create(CheckoutSessionSchema, {
    checkoutSession: session.id,
    accountId: session.accountId,
    merchantOrderId: session.merchantOrderId,
    paymentDescription: session.paymentDescription,
    country: session.country,
    ...(hasTerms(session) && {
      amount: create(CheckoutAmountSchema, { currency, value: toDecimal({ minorUnits, currency }) }),
      expiresAt: timestampFromDate(session.expiresAt),
    }),
    customerId: session.customerId,
    callbackUrl: session.callbackUrl,
    metadata: readMetadata(session.metadata),
    workflow: workflowOf(session),
    createdAt: timestampFromDate(session.createdAt),
    updatedAt: timestampFromDate(session.updatedAt),
    used: session.used,
    paymentMethodTypes: [...session.paymentMethodTypes],
    securityCodeRequired: session.securityCodeRequired,
    maxInstallments: session.maxInstallments,
  });
}

/** Returns a session as shown to anyone who knows its id. */
export function publicSession(session: CheckoutSession): CheckoutSession {
  const { customerId: _, ...told } = session;
  return create(CheckoutSessionSchema, { ...told, metadata: [] });
}
