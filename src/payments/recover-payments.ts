import { fromBinary } from '@bufbuild/protobuf';
import {
  type Payment,
  Payment_Workflow,
  PaymentSchema,
  Transaction_Category,
} from '../../gen/payments/v1/payment_pb.js';
import type { Connection, LookUp, Outcome } from '../connectors/connector.ts';
import { countOpenAttempts, type DueAttempt, postponeLookUp, takeDueAttempts } from '../store/look-ups.ts';
import { type FinishParts, finishOf, lookUpPauseS, writeFinish } from './finish-payment.ts';

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

/** After so many look-ups the provider is asked to close what it has not heard of: half a minute, by their schedule. */
const LOOK_UPS_BEFORE_CLOSING = 3;
const BATCH = 20;
/** Of a taken attempt: longer than a look-up may take. */
const LEASE_MARGIN_S = 30;
const MAX_DEADLINE_S = 60;

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
  let stopped = false;
  let wake: (() => void) | undefined;
  const pause = () =>
    new Promise<void>((resolve) => {
      // Jittered, so that replicas that started together do not search together.
      const timer = setTimeout(resolve, options.intervalMs * (0.75 + Math.random() / 2));
      wake = () => {
        clearTimeout(timer);
        resolve();
      };
    });

  const running = (async () => {
    while (!stopped) {
      try {
        const taken = await recoverDue(parts);
        if (taken === BATCH) continue;
        parts.recovery.open(await countOpenAttempts(parts.database));
      } catch (error) {
        parts.recovery.failed(error);
      }
      if (!stopped) await pause();
    }
  })();

  return async () => {
    stopped = true;
    wake?.();
    await running;
  };
}

/** Takes what is due and looks it up. @returns how many attempts were taken. */
export async function recoverDue(parts: RecoveryParts): Promise<number> {
  const due = await takeDueAttempts(parts.database, BATCH, MAX_DEADLINE_S + LEASE_MARGIN_S);
  await Promise.all(
    due.map((attempt) => recoverOne(parts, attempt).catch((error) => parts.recovery.failed(error))),
  );
  return due.length;
}

async function recoverOne(parts: RecoveryParts, attempt: DueAttempt): Promise<void> {
  const record = fromBinary(PaymentSchema, attempt.record);
  const connection = parts.connections().get(attempt.connectionId);
  const outcome = await connection?.lookUp?.(lookUpOf(attempt, record));
  parts.recovery.lookedUp(attempt, outcome?.kind ?? 'no_look_up');
  if (!outcome || outcome.kind === 'unknown') {
    // Whose process died is answered by its retry only once something is known; its key is in progress till then.
    await postponeLookUp(parts.database, attempt, lookUpPauseS(attempt.lookUps));
    return;
  }
  await writeFinish(parts, finishOf(parts, attempt, record, outcome));
}

function lookUpOf(attempt: DueAttempt, record: Payment): LookUp {
  return {
    transactionId: attempt.transactionId,
    money: { minorUnits: attempt.minorUnits, currency: attempt.currency },
    method: methodOf(attempt, record),
    closeIfAbsent: attempt.lookUps > LOOK_UPS_BEFORE_CLOSING,
  };
}

function methodOf(attempt: DueAttempt, record: Payment): LookUp['method'] {
  if (record.transactions?.category === Transaction_Category.CARD) {
    return { kind: 'card', capture: attempt.capture };
  }
  return { kind: record.workflow === Payment_Workflow.REDIRECT ? 'wallet_redirect' : 'wallet_enrollment' };
}
