import { fromBinary } from '@bufbuild/protobuf';
import { StoredPaymentMethodSchema } from '#gen/payments/v1/payment_method_service_pb.js';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { sentIdempotencyKey } from '#src/payments/idempotency.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { LeasedDelivery } from '#src/store/tables/deliveries.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { TEST_EVENT_TYPE } from './events.ts';

const encodeMethod = jsonEncoder(StoredPaymentMethodSchema);
const encodePayment = jsonEncoder(PaymentSchema);
const VERSION = 2;

/** Returns the body of a delivery, with the payment or stored method as REST renders it. */
export function eventBody(accountId: string, { event, retry }: LeasedDelivery): string {
  const head = JSON.stringify({
    id: event.id,
    type: event.type.split('.')[0],
    type_event: event.type,
    account_id: accountId,
    version: VERSION,
    retry,
    timestamp: event.createdAt.toISOString(),
    sequence: event.sequence,
  });
  return `${head.slice(0, -1)},"data":${dataOf(event)}}`;
}

function dataOf({ type, record, idempotencyKey }: LeasedDelivery['event']): string {
  if (type === TEST_EVENT_TYPE) return '{}';
  if (!type.startsWith('enrollment.')) return `{"payment":${paymentOf(record, idempotencyKey)}}`;
  return `{"payment_method":${encodeMethod(fromBinary(StoredPaymentMethodSchema, record))}}`;
}

/** Renders a payment with two additional members, for receivers written for other services' webhooks. */
function paymentOf(record: Uint8Array, idempotencyKey: string | null): string {
  const payment = decodeRecord(record);
  const more = JSON.stringify({
    order_id: payment.merchantOrderId,
    idempotency_key: sentIdempotencyKey(idempotencyKey ?? ''),
  });
  return `${encodePayment(payment).slice(0, -1)},${more.slice(1)}`;
}
