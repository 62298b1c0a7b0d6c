import { setTimeout } from 'node:timers/promises';
import { timestampMs, timestampNow } from '@bufbuild/protobuf/wkt';
import { type Payment, Payment_Workflow, Transaction_Category } from '#gen/payments/v1/payment_pb.js';
import type { AttemptFacts } from '#src/connectors/attempt.ts';
import type { LookUp, Outcome, ProviderConnection } from '#src/connectors/connector.ts';
import { countOpenAttempts, type DueAttempt, postponeLookUp, takeDueAttempts } from '#src/store/look-ups.ts';
import { type FinishDeps, finishOf, lookUpPauseS, writeFinish } from './finish-payment.ts';
import { attemptFacts } from './payment-attempt.ts';
import { decodeRecord } from './stored-record.ts';

/** What recovery needs. */
export type RecoveryDeps = FinishDeps & {
  readonly publicUrl: () => string;
  /** The connections in force, by id. */
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
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
  deps: RecoveryDeps,
  options: { readonly intervalMs: number },
): () => Promise<void> {
  const stop = new AbortController();
  const running = (async () => {
    while (!stop.signal.aborted) {
      try {
        const taken = await recoverDue(deps, stop.signal);
        if (taken === BATCH) continue;
        deps.recovery.open(await countOpenAttempts(deps.database));
      } catch (error) {
        deps.recovery.failed(error);
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
export async function recoverDue(deps: RecoveryDeps, stop?: AbortSignal): Promise<number> {
  const deadlinesMs = [...deps.connections().values()].map(({ deadlineMs }) => deadlineMs);
  const leaseS = (Math.max(0, ...deadlinesMs) + deps.schedule.leaseMarginMs) / 1000;
  const due = await takeDueAttempts(deps.database, BATCH, leaseS);
  await Promise.all(
    due.map((attempt) => recoverOne(deps, attempt, stop).catch((error) => deps.recovery.failed(error))),
  );
  return due.length;
}

async function recoverOne(
  deps: RecoveryDeps,
  attempt: DueAttempt,
  stop: AbortSignal | undefined,
): Promise<void> {
  const record = decodeRecord(attempt.record);
  const lookUp = deps.connections().get(attempt.connectionId)?.lookUp;
  const outcome = await lookUp?.(lookUpOf(deps, attempt, record));
  deps.recovery.lookedUp(attempt, outcome?.kind ?? 'no_look_up');
  // Whose process died is answered by its retry once something is known; till then its key is in progress. Where there
  // is nobody to ask, that would be for ever: PENDING is then the true answer.
  const learned = outcome !== undefined && outcome.kind !== 'unknown';
  if (learned || (!lookUp && !attempt.answered)) {
    await writeFinish(deps, finishOf(deps, attempt, record, outcome ?? NOBODY_KNOWS), stop);
  } else {
    await postponeLookUp(deps.database, attempt, lookUpPauseS(deps.schedule, attempt.lookUps));
  }
}

const NOBODY_KNOWS: Outcome = { kind: 'unknown', detail: 'there is no look-up', providerData: undefined };

function lookUpOf(deps: RecoveryDeps, attempt: DueAttempt, record: Payment): LookUp {
  return {
    transactionId: attempt.transactionId,
    money: { minorUnits: attempt.minorUnits, currency: attempt.currency },
    reference: undefined,
    sentAtMs: timestampMs(record.transactions?.createdAt ?? timestampNow()),
    close: attempt.lookUps > deps.schedule.lookUpsBeforeClosing,
    of: lookedUp(deps, attempt, record),
  };
}

function lookedUp(deps: RecoveryDeps, attempt: DueAttempt, record: Payment): LookUp['of'] {
  const facts: AttemptFacts = attemptFacts(record, deps.publicUrl());
  if (record.transactions?.category === Transaction_Category.CARD) {
    return { kind: 'card', capture: attempt.capture, verify: false, attempt: facts };
  }
  const isRedirect = record.workflow === Payment_Workflow.REDIRECT;
  return { kind: isRedirect ? 'wallet_redirect' : 'wallet_enrollment', attempt: facts };
}
