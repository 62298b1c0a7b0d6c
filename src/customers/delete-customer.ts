import { eraseCustomer } from '#src/store/customers.ts';
import { eraseMethods } from '#src/store/stored-methods.ts';
import { isUuid } from '#src/store/stored-objects.ts';
import { orUnavailable } from '#src/store/unavailable.ts';
import { customerNotFound } from './customers.ts';
import { endMethodsOf, type MethodDeps } from './stored-methods.ts';

/** Erases a customer with its stored methods, in one commit. @throws ServiceError CUSTOMER_NOT_FOUND. */
export async function deleteCustomer(
  { database, eventWritten }: Pick<MethodDeps, 'database' | 'eventWritten'>,
  accountId: string,
  id: string,
): Promise<void> {
  if (!isUuid(id)) throw customerNotFound('id');
  const work = database.transaction(async (run) => {
    // First, since payments and other calls that add methods to the customer wait for it, or it for them.
    const customerId = await eraseCustomer(run, accountId, id);
    if (customerId === undefined) throw customerNotFound('id');
    await endMethodsOf(run, { accountId, customerId });
    await eraseMethods(run, { accountId, customerId });
  });
  await orUnavailable(work);
  eventWritten?.();
}
