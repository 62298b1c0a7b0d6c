import { operatorService } from '#src/api/operator-service.ts';
import type { OpenedCatalogue } from '#src/catalogue/open-catalogue.ts';
import type { Config } from '#src/config.ts';
import type { Figures } from '#src/dashboard/figures.ts';
import type { DashboardDeps } from '#src/dashboard/mount-dashboard.ts';
import type { PaymentObserver } from '#src/payments/create-payment.ts';
import type { OpenOutcomesObserver } from '#src/payments/open-outcomes.ts';
import type { DeliveryObserver } from '#src/webhooks/deliver.ts';
import type { ApiDeps } from './payment-deps.ts';

/** Dependencies that the caller provides; the rest follows. */
type Given = Pick<DashboardDeps, 'webhooks' | 'figures'> & {
  readonly operations: ApiDeps;
  readonly opened: () => OpenedCatalogue;
  /** Work under way, for a shutdown to wait for. */
  readonly inFlight: Set<Promise<unknown>>;
};

/** Completes the dependencies of the dashboard: it does what the API does, by the same calls. */
export function dashboardDeps(config: Config, { inFlight, ...given }: Given): DashboardDeps {
  const { operations, opened } = given;
  const { explainRoute } = operatorService({ opened, now: operations.now });
  return {
    ...given,
    database: operations.database,
    pageTokenKey: operations.pageTokenKey,
    connectionIds: () => [...opened().reachable.keys()],
    explain: async (request) => (await explainRoute(request, undefined)).message,
    track(work) {
      inFlight.add(work);
      const forget = () => inFlight.delete(work);
      work.then(forget, forget);
      return work;
    },
    keys: { operate: config.operatorKeys, read: config.operatorReadKeys },
    isSecure: config.tls !== undefined || config.publicUrl?.startsWith('https:') === true,
  };
}

/** An observer of payments that counts them for the dashboard as well. */
export function withPaid<Observer extends Pick<PaymentObserver, 'finished'>>(
  figures: Figures,
  observer: Observer,
): Observer {
  return {
    ...observer,
    finished(payment, isLearnedLater) {
      observer.finished(payment, isLearnedLater);
      figures.paid(payment, isLearnedLater);
    },
  };
}

/** An observer of deliveries that counts them for the dashboard as well. */
export function withDelivered(figures: Figures, observer: DeliveryObserver): DeliveryObserver {
  return {
    ...observer,
    delivered(webhook, attempt) {
      observer.delivered(webhook, attempt);
      figures.delivered(attempt.result);
    },
  };
}

/** An observer of open outcomes that keeps their count for the dashboard as well. */
export function withCounted(figures: Figures, observer: OpenOutcomesObserver): OpenOutcomesObserver {
  return {
    ...observer,
    counted(outcomes) {
      observer.counted(outcomes);
      figures.counted(outcomes);
    },
  };
}
