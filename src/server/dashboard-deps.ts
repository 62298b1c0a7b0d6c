import type { AddressShare } from '#src/api/limit-at-once.ts';
import { operatorService } from '#src/api/operator-service.ts';
import type { OpenedCatalogue } from '#src/catalogue/open-catalogue.ts';
import type { Config } from '#src/config.ts';
import type { DashboardDeps } from '#src/dashboard/mount-dashboard.ts';
import type { InFlight } from './in-flight.ts';
import type { ApiDeps } from './payment-deps.ts';

/** Dependencies that the caller provides; the others follow from them. */
type Given = Pick<DashboardDeps, 'webhooks' | keyof AddressShare> & {
  readonly operations: ApiDeps;
  readonly opened: () => OpenedCatalogue;
  readonly inFlight: InFlight;
};

/** Completes the dependencies of the dashboard, which shares the API's functions. */
export function dashboardDeps(config: Config, { inFlight, ...given }: Given): DashboardDeps {
  const { operations, opened } = given;
  const { explainRoute } = operatorService({ opened, now: operations.now });
  return {
    ...given,
    database: operations.database,
    pageTokenKey: operations.pageTokenKey,
    connections: () => opened().reachable,
    connectionIds: () => [...opened().reachable.keys()],
    explain: async (request) => (await explainRoute(request, undefined)).message,
    track: inFlight.track,
    keys: { operate: config.operatorKeys, read: config.operatorReadKeys },
    isSecure: config.tls !== undefined || config.publicUrl?.startsWith('https:') === true,
  };
}
