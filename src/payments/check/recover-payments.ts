import { setTimeout } from 'node:timers/promises';
import { equals } from '@bufbuild/protobuf';
import { type Payment, ProviderDataSchema, Transaction_Type } from '#gen/payments/v1/payment_pb.js';
import type { Hint, LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import type { Outcome } from '#src/connectors/outcome.ts';
import { unknownOutcome } from '#src/connectors/provider-answer.ts';
import { type Repeated, repeat } from '#src/repeat.ts';
import { takeDueFollowUps } from '#src/store/engine/follow-ups.ts';
import { type AskableConnection, MAX_TAKEN, type Take } from '#src/store/engine/lease-due.ts';
import {
  type DueAttempt,
  postponeLookUp,
  readOpenAttempt,
  takeDueAttempts,
  takeOpenAttempt,
} from '#src/store/engine/look-ups.ts';
import { leaseS, mayBeClosed, payerTimeLeftMs, reportsMore } from '../model/schedule.ts';
import { decodeRecord } from '../stored-record.ts';
import { lookedUpAttempt } from './ask-provider.ts';
import { finishOf, writeFinish } from './finish-payment.ts';
import { type FollowedUpNow, type FollowUpDeps, followUp, followUpNow } from './follow-up.ts';
import { lookUpPauseS } from './look-up-schedule.ts';
import { askableConnections } from './open-outcomes.ts';

/** Dependencies of looking up one attempt. */
export type RecoverOneDeps = FollowUpDeps & { readonly recovery: RecoveryObserver };

/** Dependencies of recovery. */
export type RecoveryDeps = RecoverOneDeps & {
  /** Connections through which an outcome can be learned, by id. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  /** Returns true while a connection's provider is left alone, since its circuit is open. */
  readonly isLeftAlone: (connectionId: string) => boolean;
};

/** Observer of recovery, for metrics and logs. */
export type RecoveryObserver = FollowUpDeps['recovery'] & {
  lookedUp(attempt: DueAttempt, result: Outcome): void;
  failed(error: unknown): void;
};

/** Limit on look-ups at once at one connection. Its slots are its own, so that a slow provider delays no other. */
const CONNECTION_SLOTS = MAX_TAKEN;
/** Limit on look-ups at once over all connections; each connection has at least one slot. */
const ALL_SLOTS = 200;
/** Pause between the end of a look-up and the search for the next, so that one search fills several slots. */
const BREATH_MS = 20;

/** Look-ups under way, by connection. */
type UnderWay = Map<string, Set<Promise<void>>>;

/**
 * Looks up unknown outcomes: of payments whose process died, and of those whose provider did not answer. Any number of
 * replicas may run it. Each takes due attempts, of the connections that it can ask, under a lease by the database's
 * clock; a fencing token keeps a replica that has lost its lease from writing. No outcome becomes "failed" without the
 * provider's word.
 *
 * @param options.intervalMs pause between two searches for due attempts.
 * @returns a function that stops it, and resolves once the look-ups under way have ended.
 */
export function startRecovery(
  deps: RecoveryDeps,
  options: { readonly intervalMs: number },
): () => Promise<void> {
  const underWay: UnderWay = new Map();
  let freed: Promise<void> | undefined;
  const search: Repeated = async (stop) => {
    freed = undefined;
    const { busy } = await beginDue(deps, underWay, stop);
    // More may be due at connections with no free slot.
    if (busy.length > 0) freed = Promise.race(busy).then(() => setTimeout(BREATH_MS));
  };
  const stop = repeat(search, { ...options, sooner: () => freed, onError: deps.recovery.failed });
  return async () => {
    await stop();
    await Promise.all([...underWay.values()].flatMap((lookUps) => [...lookUps]));
  };
}

/** Leases due attempts, up to the free slots, and looks them up. @returns the number of attempts leased. */
export async function recoverDue(deps: RecoveryDeps, stop?: AbortSignal): Promise<number> {
  const { begun } = await beginDue(deps, new Map(), stop);
  await Promise.all(begun);
  return begun.length;
}

/**
 * Leases due attempts and starts to look them up.
 *
 * @returns `begun`: every look-up that it started; `busy`: the look-ups under way at connections without a free slot.
 */
async function beginDue(
  deps: RecoveryDeps,
  underWay: UnderWay,
  stop: AbortSignal | undefined,
): Promise<{ readonly begun: readonly Promise<void>[]; readonly busy: readonly Promise<void>[] }> {
  const connections = deps.connections();
  // Collected here, since some have ended by the time that the rest is leased.
  const begun: Promise<void>[] = [];
  const begin = (connectionId: string, work: (connection: ProviderConnection) => Promise<unknown>) => {
    const connection = connections.get(connectionId);
    if (!connection) return;
    const lookUps = underWay.get(connectionId) ?? new Set();
    underWay.set(connectionId, lookUps);
    const lookUp: Promise<void> = work(connection)
      .then(() => {}, deps.recovery.failed)
      .finally(() => lookUps.delete(lookUp));
    lookUps.add(lookUp);
    begun.push(lookUp);
  };

  const takes = takesOf(deps, askableConnections(connections), underWay);
  const due = takes.length > 0 ? await takeDueAttempts(deps.database, takes) : [];
  for (const attempt of due) {
    begin(attempt.connectionId, (connection) => recoverOne(deps, connection, attempt, { stop }));
  }
  // Follow-ups come from every connection: waits end in time even where a provider offers no look-up.
  const all = [...connections].map(([connectionId, { identity }]) => ({ connectionId, identity }));
  const followUpTakes = takesOf(deps, all, underWay);
  const followUps = followUpTakes.length > 0 ? await takeDueFollowUps(deps.database, followUpTakes) : [];
  for (const one of followUps) {
    begin(one.connectionId, (connection) => followUp(deps, connection, one, { stop }));
  }
  const leased = Map.groupBy(due, ({ connectionId }) => connectionId);
  const full = takes.filter(({ connectionId, limit }) => leased.get(connectionId)?.length === limit);
  return { begun, busy: full.flatMap(({ connectionId }) => [...(underWay.get(connectionId) ?? [])]) };
}

/** Computes what may be leased now: from each connection, as many attempts as it has free slots. */
function takesOf(deps: RecoveryDeps, askable: readonly AskableConnection[], underWay: UnderWay): Take[] {
  const connections = deps.connections();
  const slots = Math.max(1, Math.min(CONNECTION_SLOTS, Math.floor(ALL_SLOTS / Math.max(1, askable.length))));
  return askable.flatMap((one) => {
    const connection = connections.get(one.connectionId);
    const limit = slots - (underWay.get(one.connectionId)?.size ?? 0);
    if (!connection || limit <= 0 || deps.isLeftAlone(one.connectionId)) return [];
    return [{ ...one, limit, leaseS: leaseS(connection, deps.schedule) }];
  });
}

/**
 * Looks up an open attempt since its provider sent a notification about it. Ahead of schedule it takes no lease, and so
 * postpones nothing, however often news comes: two look-ups at once ask the same.
 */
export async function recoverNow(
  deps: RecoverOneDeps,
  connection: ProviderConnection,
  transactionId: string,
  options: { readonly hint: Hint; readonly stop: AbortSignal | undefined },
): Promise<FollowedUpNow> {
  const due = await takeOpenAttempt(deps.database, transactionId, leaseS(connection, deps.schedule));
  if (due) return recoverOne(deps, connection, due, options);
  const open = await readOpenAttempt(deps.database, transactionId);
  return open ? recoverOne(deps, connection, open, { ...options, isAhead: true }) : 'waiting';
}

type RecoverOptions = {
  readonly hint?: Hint;
  readonly stop: AbortSignal | undefined;
  /** The attempt is not leased: its schedule stays as it is. */
  readonly isAhead?: boolean;
};

/** @returns 'waiting' if nothing is known yet. */
async function recoverOne(
  deps: RecoverOneDeps,
  connection: ProviderConnection,
  attempt: DueAttempt,
  { hint, stop, isAhead = false }: RecoverOptions,
): Promise<FollowedUpNow> {
  const record = decodeRecord(attempt.record);
  const query = { ...lookUpOf(deps, connection, attempt, record), ...(hint && { hint }) };
  const outcome = connection.lookUp
    ? await connection.lookUp(query)
    : await cancelTechnically(connection, query);
  deps.recovery.lookedUp(attempt, outcome);
  // If the process of a payment died, its key stays in progress until something is known, and then a retry gets the
  // response. Where no look-up will ever give an outcome, the response is PENDING.
  const isKnown = outcome.kind !== 'unknown' && !(attempt.answered && isStillPending(record, outcome));
  const isAnsweredAnyway = !connection.lookUp && !attempt.answered;
  if (isKnown || isAnsweredAnyway) {
    await writeFinish(deps, finishOf(deps, attempt, record, outcome), stop);
  } else if (!isAhead) {
    await postponeLookUp(deps.database, attempt, lookUpPauseS(deps.schedule, attempt.ageMs));
  }
  if (!isKnown) return 'waiting';
  if (!reportsMore(outcome, attempt)) return 'applied';
  const again = await followUpNow(deps, connection, attempt.transactionId, { hint: hint ?? {}, stop });
  return again === 'unchanged' ? 'applied' : again;
}

/** Asks a provider without look-up to undo an attempt that no notification has reported for too long. */
async function cancelTechnically({ technicalCancel }: ProviderConnection, query: LookUp): Promise<Outcome> {
  if (!technicalCancel || query.ageMs < technicalCancel.afterMs) return unknownOutcome('there is no look-up');
  const isTaken = await technicalCancel.send(query);
  return unknownOutcome(
    isTaken ? 'the provider was asked to cancel it' : 'the provider did not take a cancel of it',
  );
}

/** Returns true if the provider has yet to decide and the record already says so. */
function isStillPending({ transactions }: Payment, outcome: Outcome): boolean {
  const reported = transactions?.providerData;
  return (
    outcome.kind === 'pending' &&
    reported !== undefined &&
    equals(ProviderDataSchema, reported, outcome.providerData)
  );
}

function lookUpOf(
  deps: RecoverOneDeps,
  connection: ProviderConnection,
  attempt: DueAttempt,
  record: Payment,
): LookUp {
  const { ageMs } = attempt;
  const terms = connection.capabilities;
  const isVerification = record.transactions?.type === Transaction_Type.VERIFY;
  return {
    transactionId: attempt.transactionId,
    money: { minorUnits: attempt.minorUnits, currency: attempt.currency },
    reference: attempt.reference,
    ageMs,
    payerTimeLeftMs: payerTimeLeftMs(ageMs, terms),
    close: mayBeClosed(ageMs, connection, deps.schedule),
    of: lookedUpAttempt(record, { capture: attempt.capture, isVerification }, deps.publicUrl(), terms),
  };
}
