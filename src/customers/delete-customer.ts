import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { CustomerSchema } from '#gen/payments/v1/customer_service_pb.js';
import {
  type StoredPaymentMethod,
  StoredPaymentMethodSchema,
} from '#gen/payments/v1/payment_method_service_pb.js';
import { eraseCustomer } from '#src/store/tables/customers.ts';
import { keepResponse, lockResponsesOf } from '#src/store/tables/replayed-calls.ts';
import { eraseMethods } from '#src/store/tables/stored-methods.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { customerNotFound } from './customers.ts';
import { emitMethodEvent } from './emit-method-event.ts';
import type { WalletDeps } from './enroll-wallet.ts';

/**
 * Erases a customer and its stored methods in one commit. From then on, repeats of the calls that made them get
 * responses without personal data.
 *
 * @throws ServiceError CUSTOMER_NOT_FOUND.
 */
export async function deleteCustomer(
  { database, eventWritten }: Pick<WalletDeps, 'database' | 'eventWritten'>,
  accountId: string,
  id: string,
): Promise<void> {
  if (!isUuid(id)) throw customerNotFound('id');
  const work = database.transaction(async (run) => {
    // Done first, so that payments and other calls that add methods to the customer either wait for it or are waited
    // for.
    const customerId = await eraseCustomer(run, accountId, id);
    if (customerId === undefined) throw customerNotFound('id');
    for (const ended of await eraseMethods(run, { accountId, customerId })) await emitMethodEvent(run, ended);
    for (const call of await lockResponsesOf(run, accountId, customerId)) {
      const erased = ERASERS[call.method]?.(call.response);
      if (!erased) throw new Error(`nothing erases a response of ${call.method}`);
      await keepResponse(run, call, erased);
    }
  });
  await work;
  eventWritten?.();
}

/** Functions that remove the personal data from a stored response, by method, for later repeats. */
const ERASERS: Readonly<Record<string, (response: Uint8Array) => Uint8Array>> = {
  CreateCustomer(response) {
    const { id, accountId, createdAt, updatedAt } = fromBinary(CustomerSchema, response);
    return toBinary(CustomerSchema, create(CustomerSchema, { id, accountId, createdAt, updatedAt }));
  },
  EnrollPaymentMethod(response) {
    return toBinary(StoredPaymentMethodSchema, erasedMethod(fromBinary(StoredPaymentMethodSchema, response)));
  },
};

/** Returns a stored method as shown to merchants, without the payer's data. */
export function erasedMethod(method: StoredPaymentMethod): StoredPaymentMethod {
  const { cardData: _, ...left } = method;
  return { ...left, name: method.type, redirectUrl: '' };
}
