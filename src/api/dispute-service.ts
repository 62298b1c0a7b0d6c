import { create } from '@bufbuild/protobuf';
import {
  type DisputeService,
  ListDisputesRequestSchema,
  ListDisputesResponseSchema,
} from '#gen/payments/v1/dispute_service_pb.js';
import type { Caller } from '#src/payments/caller.ts';
import { getDispute, listDisputes } from '#src/payments/read/disputes.ts';
import type { ListDeps } from '#src/payments/read/find-payments.ts';
import { requireValidOf } from './require-valid.ts';
import type { ServiceHandlers } from './rest.ts';

const validList = requireValidOf(ListDisputesRequestSchema);

/** The handlers of payments.v1.DisputeService, the same for every protocol. */
export function disputeService(deps: ListDeps): ServiceHandlers<typeof DisputeService, Caller> {
  return {
    async getDispute({ id }, caller) {
      return { message: await getDispute(deps, id, caller) };
    },
    async listDisputes(request, caller) {
      const page = await listDisputes(deps, validList(request), caller);
      return { message: create(ListDisputesResponseSchema, page) };
    },
  };
}
