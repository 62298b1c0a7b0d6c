import { setTimeout } from 'node:timers/promises';
import { type Payment, Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { Connection, LookUp, Outcome } from '#src/connectors/connector.ts';
import { countOpenAttempts, type DueAttempt, postponeLookUp, takeDueAttempts } from '#src/store/look-ups.ts';
import { type FinishParts, finishOf, lookUpPauseS, writeFinish } from './finish-payment.ts';
import { decodeRecord } from './stored-record.ts';

/** What recovery needs. */
export type RecoveryParts = FinishParts & {
  /** The connections in force, by id. */
  readonly connections: () => ReadonlyMap<string, Connection>;
  readonly recovery: RecoveryObserver;
};

/** Is told what recovery learns, for metrics and logs. */
export type RecoveryObserver = {
  lookedUp(attempt: DueAttempt, result: Outcome['kind'] | 'no_look_up'): void;
  open(attempts: { open: number; oldestS: number }): void;
  failed(error: unknown): void;
};

const BATCH = 20;

/**
 * Looks up the outcomes that nobody knows: of payments whose process died, and of those whose provider did not answer.
 * Any number of replicas may run it: each takes attempts that are due under a lease by the database's clock, and a
 * fence keeps who lost it from writing. It never ends in "failed" without the provider's word.
 *
 * @param options.intervalMs between two searches for what is due.
 * @returns stops it; resolves once what is under way has ended.
 */
export function startRecovery(
  parts: RecoveryParts,
  options: { readonly intervalMs: number },
): () => Promise<void> {
  const stop = new AbortController();
  const running = (async () => {
    while (!stop.signal.aborted) {
      try {
        const taken = await recoverDue(parts, stop.signal);
        if (taken === BATCH) continue;
        parts.recovery.open(await countOpenAttempts(parts.database));
      } catch (error) {
        parts.recovery.failed(error);
      }
      // Jittered, so that replicas that started together do not search together.
      const pauseMs = options.intervalMs * (0.75 + Math.random() / 2);
      await setTimeout(pauseMs, undefined, { signal: stop.signal }).catch(() => {});
    }
  })();

  return async () => {
    stop.abort();
    await running;
  };
}

/** Takes what is due and looks it up. @returns how many attempts were taken. */
export async function recoverDue(parts: RecoveryParts, stop?: AbortSignal): Promise<number> {
  const deadlinesMs = [...parts.connections().values()].map(({ deadlineMs }) => deadlineMs);
  const leaseS = (Math.max(0, ...deadlinesMs) + parts.schedule.leaseMarginMs) / 1000;
  const due = await takeDueAttempts(parts.database, BATCH, leaseS);
  await Promise.all(
    due.map((attempt) => recoverOne(parts, attempt, stop).catch((error) => parts.recovery.failed(error))),
  );
  return due.length;
}

async function recoverOne(
  parts: RecoveryParts,
  attempt: DueAttempt,
  stop: AbortSignal | undefined,
): Promise<void> {
  const record = decodeRecord(attempt.record);
  const lookUp = parts.connections().get(attempt.connectionId)?.lookUp;
  const outcome = await lookUp?.(lookUpOf(parts, attempt, record));
  parts.recovery.lookedUp(attempt, outcome?.kind ?? 'no_look_up');
  // Whose process died is answered by its retry once something is known; till then its key is in progress. Where there
  // is nobody to ask, that would be for ever: PENDING is then the true answer.
  const learned = outcome !== undefined && outcome.kind !== 'unknown';
  if (learned || (!lookUp && !attempt.answered)) {
    await writeFinish(parts, finishOf(parts, attempt, record, outcome ?? NOBODY_KNOWS), stop);
  } else {
    await postponeLookUp(parts.database, attempt, lookUpPauseS(parts.schedule, attempt.lookUps));
  }
}

const NOBODY_KNOWS: Outcome = { kind: 'unknown', detail: 'there is no look-up', providerData: undefined };

function lookUpOf(parts: RecoveryParts, attempt: DueAttempt, record: Payment): LookUp {
  return {
    transactionId: attempt.transactionId,
    money: { minorUnits: attempt.minorUnits, currency: attempt.currency },
    method: methodOf(attempt, record),
    closeIfAbsent: attempt.lookUps > parts.schedule.lookUpsBeforeClosing,
  };
}

function methodOf(attempt: DueAttempt, record: Payment): LookUp['method'] {
  if (record.transactions?.category === Transaction_Category.CARD) {
    return { kind: 'card', capture: attempt.capture };
  }
  return { kind: record.workflow === Payment_Workflow.REDIRECT ? 'wallet_redirect' : 'wallet_enrollment' };
}
