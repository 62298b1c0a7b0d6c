import { setTimeout } from 'node:timers/promises';
import type { ConnectionConfig } from '#gen/payments/v1/catalogue_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { TOO_LATE, withinLease } from '#src/connectors/guards/within-lease.ts';
import { isHard } from '#src/connectors/port/decline.ts';
import { assertNever, type Outcome } from '#src/connectors/port/outcome.ts';
import { newId } from '#src/new-id.ts';
import { openConnection } from '#src/payments/route/live-catalogue.ts';
import type { ChosenRoute } from '#src/routing/router.ts';
import { isUnavailable } from '#src/store/engine/database-error.ts';
import { namesOf, UNNAMED } from '../model/change.ts';
import { recordOutcome, withAttempt } from '../model/record.ts';
import { callsBeginWithinMs, leaseS } from '../model/schedule.ts';
import { WAITING } from '../model/states.ts';
import { type CallObserver, type WriteDeps, writeNextAttempt } from '../write-change.ts';
import type { ConnectionSlot } from './connection-slots.ts';
import { attemptFacts, expiryAt, wayOfPayer } from './payment-attempt.ts';
import type { PreparedPayment } from './prepare-payment.ts';

/** Dependencies of makeAttempts. */
export type AttemptDeps = WriteDeps & {
  readonly publicUrl: () => string;
  readonly observer: CallObserver & {
    /** Called when an attempt failed and the payment fails over to another connection. */
    failedOver(fromConnectionId: string, toConnectionId: string, outcome: Outcome): void;
  };
};

/** A payment's last attempt so far, with its outcome. */
export type LastAttempt = {
  readonly transactionId: string;
  readonly outcome: Outcome;
  /** The record, whose last transaction is this attempt. */
  readonly record: Payment;
  /** The payment's version. */
  readonly version: number;
};

/** Time after which no further attempt begins, since the caller is waiting. */
const GOES_ON_FOR_MS = 10_000;

/**
 * Makes a payment's attempts one after another, until an outcome ends them. Each is committed before it is sent,
 * together with the end of the previous one.
 *
 * @param slot the payment's slot, at the first attempt's connection.
 * @param beginBeforeMs deadline for sending the first attempt, which is already committed, by its lease.
 */
export async function makeAttempts(
  deps: AttemptDeps,
  prepared: PreparedPayment,
  slot: ConnectionSlot,
  beginBeforeMs: number,
): Promise<LastAttempt> {
  const { chosen, catalogue, facts } = prepared;
  const canTake = ({ id }: ConnectionConfig) =>
    catalogue.signals.isAvailable(id) && slot.moveTo(openConnection(catalogue, id));
  const nextTarget = targetsInTurn(chosen, canTake);
  const goesOnUntilMs = performance.now() + GOES_ON_FOR_MS;
  let { attempt, record } = prepared;
  let beforeMs = beginBeforeMs;
  let { connectionId } = prepared.claim;
  let version = 0;
  for (;;) {
    const { transactionId } = attempt;
    const { methodKind } = prepared.claim;
    const connection = withinLease(openConnection(catalogue, connectionId), beforeMs);
    const sent = attempt;
    const outcome = await deps.observer.providerCall(connectionId, transactionId, () => connection.pay(sent));
    const last: LastAttempt = { transactionId, outcome, record, version };
    if (outcome === TOO_LATE) return last;
    catalogue.learn(connectionId, facts, outcome);

    const target = performance.now() > goesOnUntilMs ? undefined : nextTarget(outcome);
    if (!target) return last;

    const { transaction } = recordOutcome(record, outcome, { methodKind }, deps.now());
    const next = { transactionId: newId(record.accountId) };
    const nextConnection = openConnection(catalogue, target.id);
    const at = deps.now();
    const expiresAt = expiryAt(attempt.method, nextConnection.capabilities, at);
    const moved = withAttempt(record, { transactionId: next.transactionId, at, expiresAt }, target);
    beforeMs = Math.min(performance.now() + callsBeginWithinMs(deps.schedule), goesOnUntilMs);
    const nextAttempt = { ...attempt, ...attemptFacts(moved, deps.publicUrl(), nextConnection.capabilities) };
    const { minorUnits, currency, capture, type } = prepared.claim;
    const own = { accountId: record.accountId, paymentId: attempt.paymentId, transactionId, version };
    const begin = {
      record: moved,
      ended: { status: transaction, ...namesOf(outcome) },
      next: {
        ...{ id: next.transactionId, connectionId: target.id, connectionIdentity: nextConnection.identity },
        ...{ minorUnits, currency, capture, type, parentId: undefined, isFinal: false, ...UNNAMED },
        status: WAITING.transaction,
        vaultedToken: prepared.claim.vault?.token ?? prepared.claim.storedMethod,
        ...wayOfPayer(nextAttempt.method, nextAttempt, at),
        catalogueVersion: catalogue.version,
        checkInS: leaseS(nextConnection, deps.schedule),
      },
    };
    const isBegun = await beginNext(deps, own, begin, beforeMs);
    if (!isBegun) return last;
    deps.observer.failedOver(connectionId, target.id, outcome);
    attempt = nextAttempt;
    record = moved;
    version += 1;
    connectionId = target.id;
  }
}

/**
 * Returns a function that takes a payment's outcomes in turn, starting with the first target's, and returns the
 * target to try next; undefined ends the attempts. An attempt that met an open circuit does not count.
 *
 * @param canTake returns false for a target that must be skipped, because it would reject the call.
 */
function targetsInTurn(
  { targets, maxAttempts, softDeclines }: ChosenRoute,
  canTake: (target: ConnectionConfig) => boolean,
): (outcome: Outcome) => ConnectionConfig | undefined {
  const left = targets.slice(1);
  let tried = 0;
  return (outcome) => {
    if (!(outcome.kind === 'not_sent' && outcome.because === 'circuit_open')) tried += 1;
    if (tried >= maxAttempts || !mayGoOn(outcome, softDeclines)) return undefined;
    for (let target = left.shift(); target; target = left.shift()) {
      if (canTake(target)) return target;
    }
    return undefined;
  };
}

/**
 * Returns true if a payment may fail over after an outcome: only if it is certain that no money moves. Never after a
 * hard decline, which any provider would repeat; NEVER while the outcome is unknown.
 */
function mayGoOn(outcome: Outcome, softDeclines: boolean): boolean {
  switch (outcome.kind) {
    case 'not_sent':
      return true;
    case 'declined':
      return softDeclines && !outcome.nowhereElse && !isHard(outcome);
    case 'approved':
    case 'awaits_payer':
    case 'to_complete':
    case 'pending':
    case 'expired':
    case 'unknown':
      return false;
    default:
      return assertNever(outcome);
  }
}

const BEGIN_PAUSE_MS = 50;

/**
 * Begins the next attempt, and tries again while the database is unavailable and there is still time to send it.
 *
 * @returns false if the attempt is not known to be stored. It is then not sent, and the payment ends with the
 *   outcome so far.
 */
async function beginNext(
  deps: AttemptDeps,
  own: Parameters<typeof writeNextAttempt>[1],
  begin: Parameters<typeof writeNextAttempt>[2],
  beforeMs: number,
): Promise<boolean> {
  for (;;) {
    try {
      return await writeNextAttempt(deps, own, begin);
    } catch (error) {
      deps.observer.finishFailed(own.paymentId, error);
      if (!isUnavailable(error) || performance.now() > beforeMs) return false;
      await setTimeout(BEGIN_PAUSE_MS);
    }
  }
}
