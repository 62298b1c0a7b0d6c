import { Payment_Status, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import type { PaymentResponse, StoredResponses } from '#src/payments/keys/stored-response.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import type { KeyHolder } from '#src/store/tables/payment-keys.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';

const encodeJson = jsonEncoder(PaymentSchema);

/** The body that REST sends for a response. */
export function restBody({ record, body }: PaymentResponse): Buffer {
  return Buffer.from(body ?? encodeJson(record));
}

/** The stored responses of a single release, which need no schema. */
export const RESPONSES: StoredResponses = { own: Buffer.from('own'), body: async () => undefined };

/** Returns the id and the status in the response stored for a key; undefined if there is no response. */
export function shownUnder(holder: KeyHolder | undefined): string | undefined {
  if (!holder?.response) return undefined;
  const { id, status } = decodeRecord(holder.record);
  return `${id} ${Payment_Status[status]}`;
}
