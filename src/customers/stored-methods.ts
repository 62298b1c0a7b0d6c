import { toBinary } from '@bufbuild/protobuf';
import { CardDataSchema } from '#gen/payments/v1/payment_method_pb.js';
import {
  type EnrollPaymentMethodRequest,
  PaymentMethodService,
  type StoredPaymentMethod,
  type StoredPaymentMethodSchema,
} from '#gen/payments/v1/payment_method_service_pb.js';
import type { Caller } from '#src/payments/caller.ts';
import { callOnce, type OnceResponse, onceCallsOf } from '#src/payments/keys/call-once.ts';
import { cardData, cardFingerprint } from '#src/payments/method/card.ts';
import { ONE_TIME_TOKEN_TYPE as CARD_TYPE } from '#src/payments/method/payment-method.ts';
import { storedMethodMessage } from '#src/payments/method/stored-method.ts';
import { requireRoom } from '#src/payments/method/vault-card.ts';
import { checkCountry } from '#src/payments/request/check-request.ts';
import { Secret } from '#src/secret.ts';
import { invalidField, missingResource, notAllowed, requireFaultless } from '#src/service-error.ts';
import { type Database, queriesOf } from '#src/store/engine/database.ts';
import { lockCustomer } from '#src/store/tables/customers.ts';
import {
  endMethod,
  findCardOfCustomer,
  insertMethodCard,
  listMethods,
  type MethodName,
  readMethod,
  updateMethodCard,
} from '#src/store/tables/stored-methods.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { customerNotFound, customerOf } from './customers.ts';
import { emitMethodEvent } from './emit-method-event.ts';
import { enrollWallet, type WalletDeps } from './enroll-wallet.ts';
import { requireCard, type TokenDeps, withoutCode } from './one-time-tokens.ts';

/** Dependencies of the stored-method functions. */
export type MethodDeps = TokenDeps & WalletDeps;

const enrollment = onceCallsOf(PaymentMethodService.method.enrollPaymentMethod, {
  canonical: withoutCode,
  customerIn: ({ customerId }) => customerId,
});

/**
 * Stores a card for a customer, or starts the enrollment of a wallet. A card that the customer has already stored
 * remains the same method.
 *
 * @throws ServiceError INVALID_PARAMETERS, CUSTOMER_NOT_FOUND, STORED_METHOD_LIMIT_REACHED; and as `callOnce`.
 */
export async function enrollMethod(
  deps: MethodDeps,
  request: EnrollPaymentMethodRequest,
  caller: Caller,
): Promise<OnceResponse<typeof StoredPaymentMethodSchema>> {
  const { customerId, country } = request;
  const call = enrollment(deps, request, caller);
  if (request.type !== '' && request.type !== CARD_TYPE) return enrollWallet(deps, request, caller, call);
  if (!request.cardData) throw invalidField('card_data', 'REQUIRED', 'is required for a card');
  if (request.callbackUrl) throw notAllowed('callback_url', 'must not be sent with a card');
  const card = requireCard(request.cardData);
  requireFaultless((report) => checkCountry(report, 'country', country));
  if (!isUuid(customerId)) throw customerNotFound('customer_id');
  const customer = { accountId: caller.accountId, customerId: customerId.toLowerCase() };
  const fingerprint = cardFingerprint(deps.fingerprintKey, customer.accountId, card.number);
  const data = cardData({ ...card, securityCode: '' }, deps.catalogue().bins(card.number));
  const id = deps.newId(customer.accountId);
  const method = {
    ...{ ...customer, id, type: CARD_TYPE, country, fingerprint, card: toBinary(CardDataSchema, data) },
    cardNumber: await deps.vault.seal(new Secret(card.number), id),
  };
  const response = await callOnce(deps.database, call, async (run) => {
    // Other calls that store a card for this customer wait here, so that the same card is stored only once.
    if (!(await lockCustomer(run, customer.accountId, customer.customerId)))
      throw customerNotFound('customer_id');
    const found = await findCardOfCustomer(queriesOf(run), customer, fingerprint);
    // The method may be unenrolled in the meantime, by a call or because it was not used.
    const updated = found && (await updateMethodCard(run, { ...method, id: found.id }, method.card, country));
    if (updated) return storedMethodMessage(updated);
    await requireRoom(queriesOf(run), customer, 'customer_id');
    return emitMethodEvent(run, await insertMethodCard(run, method));
  });
  deps.eventWritten?.();
  return response;
}

/** Lists a customer's usable methods, newest first. @throws ServiceError CUSTOMER_NOT_FOUND. */
export async function listStoredMethods(
  database: Database,
  accountId: string,
  customerId: string,
): Promise<StoredPaymentMethod[]> {
  await customerOf(database, accountId, customerId, 'customer_id');
  const methods = await listMethods(database, { accountId, customerId });
  return methods.map(storedMethodMessage);
}

/** Returns one of a customer's stored payment methods. @throws ServiceError VAULTED_TOKEN_NOT_FOUND. */
export async function getStoredMethod(database: Database, name: MethodName): Promise<StoredPaymentMethod> {
  const isName = isUuid(name.customerId) && isUuid(name.id);
  const method = isName ? await readMethod(database, name) : undefined;
  if (!method) throw missingResource('VAULTED_TOKEN_NOT_FOUND', 'id', 'does not exist for this customer');
  return storedMethodMessage(method);
}

/**
 * Unenrolls a method. A method that is already unenrolled does not change. @throws ServiceError
 * VAULTED_TOKEN_NOT_FOUND.
 */
export async function unenrollMethod(deps: MethodDeps, name: MethodName): Promise<StoredPaymentMethod> {
  await getStoredMethod(deps.database, name);
  const work = deps.database.transaction(async (run) => {
    const ended = await endMethod(run, name);
    return ended && emitMethodEvent(run, ended);
  });
  const ended = await work;
  deps.eventWritten?.();
  return ended ?? getStoredMethod(deps.database, name);
}
