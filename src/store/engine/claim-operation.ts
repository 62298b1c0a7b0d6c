import type { Database } from './database.ts';
import { callText, callValues, type Parameter } from './function-call.ts';
import { onlyRow } from './rows.ts';

/** The claim of an operation, written before the operation is sent. */
export type OperationClaim = {
  readonly accountId: string;
  readonly paymentId: string;
  /** The version of the payment on which the operation was planned. */
  readonly version: number;
  readonly status: string;
  readonly record: Uint8Array;
  readonly transactionId: string;
  readonly type: 'CAPTURE' | 'CANCEL' | 'REFUND';
  /** The purchase or authorization. */
  readonly baseId: string;
  /** The transaction that the operation acts on. */
  readonly parentId: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** true for the last capture. */
  readonly isFinal: boolean;
  readonly leaseS: number;
  /** Name of the rpc, within which idempotency keys are unique. */
  readonly method: string;
  /** undefined for a cancel without a key. */
  readonly idempotencyKey: string | undefined;
  readonly requestHash: Uint8Array;
  readonly requestShape: Uint8Array;
  /** The merchant's own reference; undefined if one was generated. */
  readonly merchantReference: string | undefined;
  /** The version of the catalogue in force; 0 for a catalogue from a file. */
  readonly catalogueVersion: number;
};

const PARAMETERS: readonly Parameter<OperationClaim>[] = [
  ['the_account', 'uuid', ({ accountId }) => accountId],
  ['the_payment', 'uuid', ({ paymentId }) => paymentId],
  ['the_version', 'integer', ({ version }) => version],
  ['the_status', 'text', ({ status }) => status],
  ['the_record', 'bytea', ({ record }) => record],
  ['the_transaction', 'uuid', ({ transactionId }) => transactionId],
  ['the_type', 'text', ({ type }) => type],
  ['the_base', 'uuid', ({ baseId }) => baseId],
  ['the_parent', 'uuid', ({ parentId }) => parentId],
  ['the_connection', 'text', ({ connectionId }) => connectionId],
  ['the_identity', 'text', ({ connectionIdentity }) => connectionIdentity],
  ['the_minor_units', 'bigint', ({ minorUnits }) => minorUnits.toString()],
  ['the_currency', 'text', ({ currency }) => currency],
  ['is_final', 'boolean', ({ isFinal }) => isFinal],
  ['lease_s', 'float8', ({ leaseS }) => leaseS],
  ['the_method', 'text', ({ method }) => method],
  ['the_key', 'text', ({ idempotencyKey }) => idempotencyKey],
  ['the_hash', 'bytea', ({ requestHash }) => requestHash],
  ['the_shape', 'bytea', ({ requestShape }) => requestShape],
  ['the_merchant_reference', 'text', ({ merchantReference }) => merchantReference],
  ['the_catalogue_version', 'integer', ({ catalogueVersion }) => catalogueVersion],
];

const CLAIM = { name: 'claim_operation', text: callText('claim_operation_1', PARAMETERS) };

/**
 * Claims an operation: reserves its amount, opens it and inserts its transaction, in one call and one commit.
 *
 * @returns false if the payment has changed since it was read, has an open operation, already has an operation with the
 * same reference and method, or has less left than the amount.
 * @throws a unique violation (`isKeyTaken`) if the key is held; nothing was changed.
 */
export async function claimOperation(database: Database, claim: OperationClaim): Promise<boolean> {
  type Row = { readonly result: boolean };
  return onlyRow(await database.query<Row>(CLAIM, callValues(PARAMETERS, claim))).result;
}
