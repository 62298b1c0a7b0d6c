import { fromBinary, toBinary } from '@bufbuild/protobuf';
import { DisputeEventDataSchema } from '#gen/payments/v1/dispute_service_pb.js';
import type { Database } from '#src/store/engine/database.ts';
import { type Erase, erasePayments } from '#src/store/engine/erased-payments.ts';
import type { EraseEvent } from '#src/store/engine/payer-payments.ts';
import { type Step, sweep } from '#src/store/engine/sweep.ts';
import { listAccounts } from '#src/store/tables/accounts.ts';
import type { StoredResponses } from './keys/stored-response.ts';
import { withoutPersonalData } from './personal-data.ts';
import { decodeRecord, encodeRecord } from './stored-record.ts';

/** Options for an erasure run. */
export type EraseOptions = {
  /** Number of days without a write after which a payment is due for erasure. */
  readonly days: number;
  /** The stored form of the responses to later retries; undefined for a dry run. */
  readonly response: StoredResponses['own'] | undefined;
  /** Called after each step, with the account's position and the number of accounts. */
  readonly onStep: (step: Step, account: number, accounts: number) => void;
};

/**
 * Erases the payer's personal data from old payments, both in the record and in responses to retries. The key and the
 * request's hash are kept, so that a retry can always be distinguished from another request, gets the rest of the
 * response, and never pays again. Payments with anything open are left unchanged. May run alongside the service or
 * another such run; the next run completes an interrupted one.
 *
 * @returns the number of payments that were due for erasure.
 */
export async function eraseOldPayments(database: Database, options: EraseOptions): Promise<number> {
  const { days, response, onStep } = options;
  const erase = response && eraseFrom(response).erase;
  const accounts = await listAccounts(database);
  let due = 0;
  for (const [i, { id }] of accounts.entries()) {
    due += await sweep((after) => erasePayments(database, id, { days, erase }, after), {
      dryRun: !erase,
      onStep: (step) => onStep(step, i + 1, accounts.length),
    });
  }
  return due;
}

/** Returns the functions that erase the personal data of stored records, responses and events. */
export function eraseFrom(response: StoredResponses['own']): {
  readonly erase: Erase;
  readonly eraseEvent: EraseEvent;
} {
  const erased = (record: Uint8Array) => encodeRecord(withoutPersonalData(decodeRecord(record)));
  const erase: Erase = {
    payment: ({ record, responseRecord }) => ({
      record: erased(record),
      response,
      responseRecord: responseRecord && erased(responseRecord),
    }),
    operation: ({ responseRecord }) => ({ response, responseRecord: erased(responseRecord) }),
  };
  return {
    erase,
    eraseEvent({ type, record }) {
      if (type.startsWith('payment.')) return erased(record);
      const data = fromBinary(DisputeEventDataSchema, record);
      const payment = data.payment && { ...withoutPersonalData(data.payment), transactions: undefined };
      return toBinary(DisputeEventDataSchema, { ...data, payment });
    },
  };
}
