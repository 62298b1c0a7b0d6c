import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { callOnce, type OnceCall, type OnceResponse } from '#src/customers/call-once.ts';
import { type Database, queriesOf, type Run } from '#src/store/engine/database.ts';
import type { WebhookName } from '#src/store/tables/outbox.ts';
import type { ManageDeps } from '#src/webhooks/manage-webhooks.ts';

/**
 * Changes webhooks or deliveries, in one transaction with the call's idempotency key (if any), and then wakes the
 * webhooks. Without a key, a repeated call is a new call.
 *
 * @param work returns the response, which is stored for retries and must not contain a secret.
 * @throws ServiceError as `callOnce` and `work` do.
 */
export async function manageOnce<Desc extends DescMessage>(
  deps: ManageDeps,
  call: OnceCall<Desc>,
  work: (deps: ManageDeps) => Promise<MessageShape<Desc>>,
): Promise<OnceResponse<Desc>> {
  const woken: WebhookName[] = [];
  const wake: ManageDeps['wake'] = (webhook) => void woken.push(webhook);
  const response = await callOnce(deps.database, call, (run) =>
    work({ ...deps, database: within(deps.database, run), wake }),
  );
  woken.forEach(deps.wake);
  return response;
}

/** Returns a database whose calls run inside the open transaction. */
function within(database: Database, run: Run): Database {
  return { ...database, ...queriesOf(run), transaction: (work) => work(run) };
}
