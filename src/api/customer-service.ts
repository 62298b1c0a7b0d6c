import { create } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import {
  CreateCustomerRequestSchema,
  type CustomerService,
  FindCustomerRequestSchema,
  UpdateCustomerRequestSchema,
} from '#gen/payments/v1/customer_service_pb.js';
import {
  type CustomerDeps,
  changeCustomer,
  createCustomer,
  getCustomer,
  getCustomerOfMerchant,
} from '#src/customers/customers.ts';
import { deleteCustomer } from '#src/customers/delete-customer.ts';
import type { MethodDeps } from '#src/customers/stored-methods.ts';
import { accountOf, type Caller } from '#src/payments/caller.ts';
import { requireValidOf } from './require-valid.ts';
import type { CallResponse, ServiceHandlers } from './rest.ts';

const validCreate = requireValidOf(CreateCustomerRequestSchema);
const validFind = requireValidOf(FindCustomerRequestSchema);
const validUpdate = requireValidOf(UpdateCustomerRequestSchema);

/** The handlers of payments.v1.CustomerService, the same for every protocol. */
export function customerService(
  deps: CustomerDeps & MethodDeps,
): ServiceHandlers<typeof CustomerService, Caller> {
  const { database } = deps;
  return {
    async createCustomer(request, caller) {
      accountOf(caller);
      const response = await createCustomer(deps, validCreate(request), caller);
      return createdResponse(response, `/v1/customers/${response.message.id}`);
    },
    async getCustomer({ id }, caller) {
      return { message: await getCustomer(database, accountOf(caller), id) };
    },
    async findCustomer(request, caller) {
      const account = accountOf(caller);
      return {
        message: await getCustomerOfMerchant(database, account, validFind(request).merchantCustomerId),
      };
    },
    async updateCustomer(request, caller) {
      const account = accountOf(caller);
      return { message: await changeCustomer(deps, account, validUpdate(request)) };
    },
    async deleteCustomer({ id }, caller) {
      await deleteCustomer(deps, accountOf(caller), id);
      return { message: create(EmptySchema) };
    },
  };
}

type Once<M> = { readonly message: M; readonly replayed: boolean };

/**
 * Builds the response to a call that created an object, or to a repeat of the call.
 *
 * @param created the object's path, if any.
 */
export function createdResponse<M>(once: Once<M>, created?: string): CallResponse<M> {
  return { ...onceResponse(once), created: created ?? '' };
}

/** Builds the response to any other call that has an idempotency key, or to a repeat of the call. */
export function onceResponse<M>({ message, replayed }: Once<M>): CallResponse<M> {
  return { message, ...(replayed && { headers: { 'idempotent-replayed': 'true' } }) };
}
