import { type Payment, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import type { PaymentResponse, StoredResponses } from '#src/payments/stored-response.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';

const encodeJson = jsonEncoder(PaymentSchema);

/** The body that REST sends for a response. */
export function restBody({ record, body }: PaymentResponse): Buffer {
  return Buffer.from(body ?? encodeJson(record));
}

/** Responses that are stored whole, as a text of the record. */
export function wholeResponses(textOf: (record: Payment) => string): StoredResponses {
  return { encode: (record) => Buffer.from(textOf(record)), body: async (stored) => stored };
}
