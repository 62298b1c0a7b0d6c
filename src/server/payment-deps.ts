import { setTimeout as sleep } from 'node:timers/promises';
import type { Admission } from '#src/api/admission.ts';
import { systemClock } from '#src/clock.ts';
import type { Config } from '#src/config.ts';
import type { CheckDeps } from '#src/payments/check/check-transaction.ts';
import type { ReturnDeps } from '#src/payments/check/payer-return.ts';
import type { PaymentDeps } from '#src/payments/create/create-payment.ts';
import type { OperationDeps } from '#src/payments/operate/claim-operation.ts';
import type { ListDeps } from '#src/payments/read/find-payments.ts';

/** Dependencies of every payment call. */
export type ApiDeps = PaymentDeps & OperationDeps & ListDeps & ReturnDeps & CheckDeps;

/** Dependencies that the caller provides; the others follow from the configuration. */
type Given = Omit<ApiDeps, 'now' | 'patience' | 'schedule'>;

/** Completes the dependencies of payments. With them, waiting for a provider or another call does not count as work. */
export function paymentDeps(config: Config, admission: Admission, given: Given): ApiDeps {
  return {
    ...given,
    now: systemClock(),
    patience: {
      waitMs: config.inProgressWaitMs,
      retryAfterS: 1,
      pause: (ms) => admission.pauseWork(() => sleep(ms)),
    },
    observer: {
      ...given.observer,
      providerCall: (connectionId, transactionId, call) =>
        admission.pauseWork(() => given.observer.providerCall(connectionId, transactionId, call)),
    },
    schedule: config.checkSchedule,
  };
}
