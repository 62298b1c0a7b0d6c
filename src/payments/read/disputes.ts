import {
  type Dispute,
  Dispute_Status,
  type ListDisputesRequest,
} from '#gen/payments/v1/dispute_service_pb.js';
import { invalidField, unknownId } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  type DisputeFilter,
  getDispute as getStored,
  listDisputes as listStored,
  MAX_DISPUTES,
} from '#src/store/tables/disputes.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { accountOf, type Caller } from '../caller.ts';
import { disputeMessage } from '../dispute-message.ts';
import type { ListDeps } from './find-payments.ts';
import { firstTime, timeAfter } from './list-times.ts';
import { readPage } from './page-token.ts';

const DEFAULT_PAGE_SIZE = 20;
// The query reads one row more than the page.
const MAX_PAGE_SIZE = MAX_DISPUTES - 1;

/**
 * Lists the current disputes of the caller's account, newest first.
 *
 * @param request must satisfy the rules of its .proto.
 * @returns a page, and the token of the next page; "" on the last page.
 * @throws ServiceError INVALID_CREDENTIALS with only the public key; INVALID_PARAMETERS for a malformed time or id, and for a
 * page token that is malformed or belongs to another account or filter.
 */
export async function listDisputes(
  deps: ListDeps,
  request: ListDisputesRequest,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<{ readonly disputes: Dispute[]; readonly nextPageToken: string }> {
  const accountId = accountOf(caller);
  if (request.paymentId !== '' && !isUuid(request.paymentId)) {
    throw invalidField('payment_id', 'INVALID_FORMAT', 'must be a UUID');
  }
  const filter: DisputeFilter = {
    accountId,
    paymentId: request.paymentId || undefined,
    status: request.status ? Dispute_Status[request.status] : undefined,
    from: firstTime('opened_from', request.openedFrom),
    before: timeAfter('opened_to', request.openedTo),
  };
  // A token of another list is refused.
  const bound = { list: 'disputes', ...filter };
  const page = {
    size: Math.min(request.pageSize || DEFAULT_PAGE_SIZE, MAX_PAGE_SIZE),
    token: request.pageToken,
  };
  const { rows, nextPageToken } = await readPage(deps.pageTokenKey, bound, page, (after, limit) =>
    listStored(deps.database, filter, after, limit),
  );
  return { disputes: rows.map(disputeMessage), nextPageToken };
}

/**
 * Returns a dispute in its current state.
 *
 * @throws ServiceError DISPUTE_NOT_FOUND, also for another account's dispute; INVALID_CREDENTIALS with only the public key.
 */
export async function getDispute(
  deps: { readonly database: Database },
  id: string,
  caller: Pick<Caller, 'accountId' | 'secretPresented'>,
): Promise<Dispute> {
  const accountId = accountOf(caller);
  const found = isUuid(id) ? await getStored(deps.database, accountId, id) : undefined;
  if (found) return disputeMessage(found);
  throw unknownId('DISPUTE_NOT_FOUND', 'id');
}
