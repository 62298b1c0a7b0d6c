import { eraseCustomer, lockCustomer } from '#src/store/customers.ts';
import { queriesOf } from '#src/store/database.ts';
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
  const customer = { accountId, customerId: id };
  const work = database.transaction(async (run) => {
    if (!(await lockCustomer(run, accountId, id))) throw customerNotFound('id');
    await endMethodsOf(run, customer);
    await eraseMethods(run, customer);
    await eraseCustomer(queriesOf(run), accountId, id);
  });
  await orUnavailable(work);
  eventWritten?.();
}
