import { create } from '@bufbuild/protobuf';
import {
  type SearchPaymentsRequest,
  type SearchPaymentsResponse,
  SearchPaymentsResponseSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { findPossibleDuplicates } from '#src/store/tables/look-through-payments.ts';
import { accountOf, type Caller } from '../caller.ts';
import type { PayerHashKeys } from '../payer-hashes.ts';
import { decodeRecord } from '../stored-record.ts';
import { findPayments, type ListDeps } from './find-payments.ts';
import { pageSize } from './list-payments.ts';
import { payerConditions, paymentFilter } from './payment-filter.ts';

/** Dependencies of searchPayments. */
export type SearchDeps = ListDeps & PayerHashKeys;

/**
 * Finds payments of the caller's account by their payer and the filters of the list, newest first, and marks possible
 * duplicates.
 *
 * @param request must satisfy the rules of its .proto.
 * @throws ServiceError as listPayments, and INVALID_PARAMETERS for a payer that no payment can have.
 */
export async function searchPayments(
  deps: SearchDeps,
  request: SearchPaymentsRequest,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<SearchPaymentsResponse> {
  const accountId = accountOf(caller);
  const payer = payerConditions(deps, accountId, request.country, request);
  const filter = { ...(await paymentFilter(deps.database, accountId, request)), ...payer };
  const page = { size: pageSize(request.pageSize), token: request.pageToken };
  const { found, nextPageToken, lookedAt } = await findPayments(deps, filter, page);
  const ids = found.map(({ id }) => id);
  const duplicates = await findPossibleDuplicates(deps.database, accountId, ids);
  return create(SearchPaymentsResponseSchema, {
    payments: found.map(({ record }) => decodeRecord(record)),
    nextPageToken,
    lookedAt,
    possibleDuplicates: ids.flatMap((paymentId) => {
      const otherPaymentIds = duplicates.get(paymentId);
      return otherPaymentIds ? [{ paymentId, otherPaymentIds: [...otherPaymentIds] }] : [];
    }),
  });
}
