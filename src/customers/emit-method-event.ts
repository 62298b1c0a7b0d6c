import { toBinary } from '@bufbuild/protobuf';
import {
  type StoredPaymentMethod,
  StoredPaymentMethodSchema,
} from '#gen/payments/v1/payment_method_service_pb.js';
import { storedMethodMessage } from '#src/payments/method/stored-method.ts';
import type { Run } from '#src/store/engine/database.ts';
import { insertMethodEvent } from '#src/store/tables/outbox.ts';
import type { StoredMethod } from '#src/store/tables/stored-methods.ts';

/** The event that reports a status. */
const EVENTS: Readonly<Record<StoredMethod['status'], string>> = {
  READY_TO_ENROLL: 'enrollment.ready',
  ENROLLED: 'enrollment.enroll',
  DECLINED: 'enrollment.declined',
  EXPIRED: 'enrollment.expired',
  UNENROLLED: 'enrollment.unenroll',
};

/**
 * Writes the event for a method's new status in the transaction that changes the status.
 *
 * @returns the method as shown to merchants.
 */
export async function emitMethodEvent(run: Run, method: StoredMethod): Promise<StoredPaymentMethod> {
  const message = storedMethodMessage(method);
  const record = toBinary(StoredPaymentMethodSchema, message);
  await insertMethodEvent(run, { accountId: method.accountId, type: EVENTS[method.status], record });
  return message;
}
