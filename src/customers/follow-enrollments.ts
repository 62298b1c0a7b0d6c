import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import type { LookUpTurns } from '#src/payments/check/look-up-turns.ts';
import { merchantAddress } from '#src/payments/check/payer-return.ts';
import { repeat } from '#src/repeat.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { orUnavailable } from '#src/store/engine/unavailable.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import {
  type EnrollmentEnd,
  endEnrollment,
  findEnrollment,
  type OpenEnrollment,
  takeDueEnrollments,
} from '#src/store/tables/wallet-enrollments.ts';
import { emitMethodEvent } from './emit-method-event.ts';

/** Dependencies of following enrollments. */
export type FollowDeps = {
  readonly database: Database;
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Relays events that were just added to the outbox. */
  readonly eventWritten?: (() => void) | undefined;
  readonly onFollowError: (error: unknown) => void;
};

const BATCH = 20;

/**
 * Asks providers about open enrollments. Any number of replicas may run it at once; another one asks about those that
 * a killed one leaves.
 *
 * @returns a function that stops it after the current batch.
 */
export function startEnrollments(
  deps: FollowDeps,
  { intervalMs }: { intervalMs: number },
): () => Promise<void> {
  return repeat(() => followDue(deps), { intervalMs, onError: deps.onFollowError });
}

/** Asks about due enrollments. @returns true if there may be more. */
async function followDue(deps: FollowDeps): Promise<boolean> {
  const due = await takeDueEnrollments(deps.database, BATCH);
  await Promise.all(due.map((one) => followEnrollment(deps, one).catch(deps.onFollowError)));
  return due.length === BATCH;
}

/**
 * Asks the provider about the enrollment of a payer who came back.
 *
 * @returns the status, and the address to which the payer is sent: the merchant's `callback_url` with `vaulted_token`
 *   and `status` added.
 * @throws ServiceError VAULTED_TOKEN_NOT_FOUND.
 */
export async function returnFromEnrollment(
  deps: FollowDeps,
  id: string,
  turns: LookUpTurns,
): Promise<{ readonly status: string; readonly address: string | undefined }> {
  const before = await find(deps, id);
  const isOpen = ({ status }: OpenEnrollment) => status === 'READY_TO_ENROLL';
  if (isOpen(before)) {
    await turns.take(id, {
      ask: () => orUnavailable(followEnrollment(deps, before)),
      isOpen: async () => isOpen(await find(deps, id)),
      evidence: '',
    });
  }
  const { status, callbackUrl } = isOpen(before) ? await find(deps, id) : before;
  const url = merchantAddress(callbackUrl);
  url?.searchParams.set('vaulted_token', id);
  url?.searchParams.set('status', status);
  return { status, address: url?.href };
}

async function find({ database }: FollowDeps, id: string): Promise<OpenEnrollment> {
  const found = isUuid(id) ? await orUnavailable(findEnrollment(database, id)) : undefined;
  if (found) return found;
  throw new ServiceError('VAULTED_TOKEN_NOT_FOUND', 'there is no such enrollment', { isResource: true });
}

async function followEnrollment(deps: FollowDeps, open: OpenEnrollment): Promise<void> {
  const connection = deps.connections().get(open.connectionId);
  const isSameAccount = connection?.identity === open.connectionIdentity;
  const outcome = isSameAccount ? await connection?.lookUpEnrollment?.({ enrollmentId: open.id }) : undefined;
  const end = endOf(outcome) ?? (open.isLongOver ? EXPIRED : undefined);
  if (!end) return;
  await deps.database.transaction(async (run) => {
    const ended = await endEnrollment(run, open, end);
    if (ended) await emitMethodEvent(run, ended);
  });
  deps.eventWritten?.();
}

const EXPIRED: EnrollmentEnd = { status: 'EXPIRED', providerToken: undefined };

/** Returns undefined while the enrollment is open, or its outcome is not known. */
function endOf(outcome: Outcome | undefined): EnrollmentEnd | undefined {
  if (outcome?.kind === 'approved' && outcome.enrolledToken) {
    return { status: 'ENROLLED', providerToken: outcome.enrolledToken };
  }
  if (outcome?.kind === 'declined') return { status: 'DECLINED', providerToken: undefined };
  return outcome?.kind === 'expired' ? EXPIRED : undefined;
}
