import { create, fromBinary, toBinary } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import {
  type CreateCustomerRequest,
  type Customer,
  CustomerSchema,
  CustomerService,
  type UpdateCustomerRequest,
  UpdateCustomerRequestSchema,
} from '#gen/payments/v1/customer_service_pb.js';
import { type Caller, requireOwnAccount } from '#src/payments/caller.ts';
import { callOnce, type OnceResponse, onceCallsOf } from '#src/payments/keys/call-once.ts';
import { checkPerson, type Person } from '#src/payments/request/check-request.ts';
import { readMetadata, writeMetadata } from '#src/payments/request/metadata.ts';
import { fieldRefusal, missingResource, requireFaultless, type ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { isKeyTaken } from '#src/store/engine/database-error.ts';
import {
  type CustomerFields,
  findCustomer,
  insertNewCustomer,
  lockCustomer,
  readCustomer,
  type StoredCustomer,
  updateCustomer,
} from '#src/store/tables/customers.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { fieldChanges } from './field-changes.ts';

/** Dependencies of the customer functions. */
export type CustomerDeps = {
  readonly database: Database;
  /** Key of the hash that distinguishes a retry from a different request. */
  readonly requestHashKey: Uint8Array;
  readonly newId: (accountId: string) => string;
};

const creation = onceCallsOf(CustomerService.method.createCustomer, { customerIn: ({ id }) => id });

/** Adds a customer. @throws ServiceError CUSTOMER_ID_DUPLICATED; and as `callOnce`. */
export function createCustomer(
  deps: CustomerDeps,
  request: CreateCustomerRequest,
  caller: Caller,
): Promise<OnceResponse<typeof CustomerSchema>> {
  if (request.accountId !== '') requireOwnAccount(request.accountId, caller);
  requirePerson(request);
  const { accountId } = caller;
  return callOnce(deps.database, creation(deps, request, caller), async (run) => {
    const { $typeName: _, ...fields } = request;
    const customer = create(CustomerSchema, { ...fields, id: deps.newId(accountId), accountId });
    const stored = await insertNewCustomer(run, fieldsOf(customer));
    if (!stored) throw duplicated();
    return toMessage(stored);
  });
}

/** Returns a customer. @throws ServiceError CUSTOMER_NOT_FOUND, even for another account's customer. */
export async function getCustomer(database: Database, accountId: string, id: string): Promise<Customer> {
  return toMessage(await customerOf(database, accountId, id, 'id'));
}

/** Reads the customer that a field of a request refers to. @throws ServiceError CUSTOMER_NOT_FOUND. */
export async function customerOf(
  database: Database,
  accountId: string,
  id: string,
  field: string,
): Promise<StoredCustomer> {
  const stored = isUuid(id) ? await readCustomer(database, accountId, id) : undefined;
  if (!stored) throw customerNotFound(field);
  return stored;
}

/** Returns a customer by the merchant's own identifier. @throws ServiceError CUSTOMER_NOT_FOUND. */
export async function getCustomerOfMerchant(
  database: Database,
  accountId: string,
  merchantCustomerId: string,
): Promise<Customer> {
  const stored = merchantCustomerId.includes('\0')
    ? undefined
    : await findCustomer(database, accountId, merchantCustomerId);
  if (!stored) throw customerNotFound('merchant_customer_id');
  return toMessage(stored);
}

/** Sets or clears fields of a customer. @throws ServiceError CUSTOMER_NOT_FOUND, CUSTOMER_ID_DUPLICATED. */
export async function changeCustomer(
  { database }: CustomerDeps,
  accountId: string,
  request: UpdateCustomerRequest,
): Promise<Customer> {
  requirePerson(request);
  const change = fieldChanges(request, CHANGES);
  if (!isUuid(request.id)) throw customerNotFound('id');
  const work = database.transaction(async (run) => {
    const stored = await lockCustomer(run, accountId, request.id);
    if (!stored) throw customerNotFound('id');
    const customer = toMessage(stored);
    change(customer);
    return toMessage(await updateCustomer(run, fieldsOf(customer)));
  });
  return work.catch((error) => {
    throw isKeyTaken(error) ? duplicated() : error;
  });
}

const CHANGES = {
  request: UpdateCustomerRequestSchema,
  target: CustomerSchema,
  names: ['id'],
  required: ['merchant_customer_id'],
};

/** Returns the refusal for an unknown customer in the path or query. */
export function customerNotFound(field: string): ServiceError {
  return missingResource('CUSTOMER_NOT_FOUND', field, 'does not exist in this account');
}

function duplicated(): ServiceError {
  const message = 'belongs to another customer of this account';
  return fieldRefusal('CUSTOMER_ID_DUPLICATED', 'merchant_customer_id', 'NOT_ALLOWED', message);
}

/** Checks what the rules in the .proto cannot express. @throws ServiceError INVALID_PARAMETERS. */
function requirePerson(person: Person): void {
  requireFaultless((report) => checkPerson(report, '', person));
}

function fieldsOf(customer: Customer): CustomerFields {
  const { $typeName: _, $unknown: __, metadata, createdAt, updatedAt, id, accountId, ...person } = customer;
  return {
    accountId,
    id,
    merchantCustomerId: customer.merchantCustomerId,
    // Encoded in the form that payments read. The payment fills in the id.
    payer: toBinary(CustomerPayerSchema, create(CustomerPayerSchema, person)),
    metadata: writeMetadata(metadata),
  };
}

function toMessage(stored: StoredCustomer): Customer {
  const {
    $typeName: _,
    $unknown: __,
    ipAddress,
    deviceFingerprint,
    deviceFingerprints,
    browserInfo,
    ...person
  } = fromBinary(CustomerPayerSchema, stored.payer);
  return create(CustomerSchema, {
    ...person,
    id: stored.id,
    accountId: stored.accountId,
    metadata: readMetadata(stored.metadata),
    createdAt: timestampFromDate(stored.createdAt),
    updatedAt: timestampFromDate(stored.updatedAt),
  });
}
