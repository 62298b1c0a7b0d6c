import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { getPaymentRecord } from '#src/store/tables/payment-record.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { accountOf, type Caller } from '../caller.ts';
import { decodeRecord } from '../stored-record.ts';

/**
 * Returns the current payment, which may have changed since the response to its creation.
 *
 * @throws ServiceError PAYMENT_NOT_FOUND, also for another account's payment; INVALID_CREDENTIALS with only the public
 * key.
 */
export async function getPayment(
  deps: { readonly database: Database },
  paymentId: string,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<Payment> {
  const accountId = accountOf(caller);
  const record = isUuid(paymentId) ? await getPaymentRecord(deps.database, accountId, paymentId) : undefined;
  if (record) return decodeRecord(record);
  throw unknownId('PAYMENT_NOT_FOUND', 'id');
}
