import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { PROMPTED_APART_S } from '#src/payments/check/news.ts';
import { merchantAddress } from '#src/payments/check/payer-return.ts';
import { type Patience, waitFor } from '#src/payments/keys/await-response.ts';
import { AGAIN, type Loop, repeat } from '#src/repeat.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import {
  type EnrollmentEnd,
  endEnrollment,
  findEnrollment,
  type OpenEnrollment,
  promptEnrollment,
  takeDueEnrollments,
} from '#src/store/tables/wallet-enrollments.ts';
import { emitMethodEvent } from './emit-method-event.ts';

/** Dependencies for following up on enrollments. */
export type FollowDeps = {
  readonly database: Database;
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Relays events that were just added to the outbox. */
  readonly eventWritten?: (() => void) | undefined;
  readonly onFollowError: (error: unknown) => void;
};

const BATCH = 20;

/** Dependencies for a payer's return from enrolling a wallet. */
export type EnrollmentReturnDeps = Pick<FollowDeps, 'database'> & {
  /** Maximum time that the payer's page waits for the provider's response. */
  readonly patience: Patience;
  /** Starts a search for due enrollments immediately. */
  readonly wakeEnrollments: () => void;
};

/**
 * Queries providers about open enrollments whenever it is woken. Any number of replicas may do so at once; if one is
 * killed, another takes over its enrollments.
 */
export function startEnrollments(deps: FollowDeps): Loop {
  return repeat(() => followDue(deps), { onError: deps.onFollowError });
}

/** Queries providers about due enrollments. */
async function followDue(deps: FollowDeps) {
  const due = await takeDueEnrollments(deps.database, BATCH);
  await Promise.all(due.map((one) => followEnrollment(deps, one).catch(deps.onFollowError)));
  return due.length === BATCH ? AGAIN : undefined;
}

/**
 * Makes the check of an enrollment due, because its payer has returned, and waits a few seconds for the provider's
 * response.
 *
 * @returns the status, and the URL to redirect the payer to: the merchant's `callback_url` with `vaulted_token` and
 * `status` added.
 * @throws ServiceError VAULTED_TOKEN_NOT_FOUND.
 */
export async function returnFromEnrollment(
  deps: EnrollmentReturnDeps,
  id: string,
): Promise<{ readonly status: string; readonly address: string | undefined }> {
  let enrollment = await find(deps, id);
  const isOver = () => enrollment.status !== 'READY_TO_ENROLL';
  if (!isOver()) {
    await promptEnrollment(deps.database, enrollment, PROMPTED_APART_S);
    deps.wakeEnrollments();
    await waitFor(async () => {
      enrollment = await find(deps, id);
      return isOver() || undefined;
    }, deps.patience);
  }
  const { status, callbackUrl } = enrollment;
  const url = merchantAddress(callbackUrl);
  url?.searchParams.set('vaulted_token', id);
  url?.searchParams.set('status', status);
  return { status, address: url?.href };
}

async function find({ database }: Pick<FollowDeps, 'database'>, id: string): Promise<OpenEnrollment> {
  const found = isUuid(id) ? await findEnrollment(database, id) : undefined;
  if (found) return found;
  throw new ServiceError('VAULTED_TOKEN_NOT_FOUND', 'no such enrollment', { isResource: true });
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

/** Returns the outcome of an enrollment; undefined while it is open or unknown. */
function endOf(outcome: Outcome | undefined): EnrollmentEnd | undefined {
  if (outcome?.kind === 'approved' && outcome.enrolledToken) {
    return { status: 'ENROLLED', providerToken: outcome.enrolledToken };
  }
  if (outcome?.kind === 'declined') return { status: 'DECLINED', providerToken: undefined };
  return outcome?.kind === 'expired' ? EXPIRED : undefined;
}
