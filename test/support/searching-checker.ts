import { type Checker, type CheckerDeps, startChecker } from '#src/payments/check/checker.ts';
import { startSearch } from '#src/server/search-due-work.ts';

/** Starts a checker with a search for its due work, as the service does. */
export function startSearchingChecker(
  deps: CheckerDeps,
  options: { readonly intervalMs: number },
): Pick<Checker, 'wake' | 'stop'> {
  const checker = startChecker(deps);
  const finders = { checks: checker.search, enrollments: () => {}, events: () => {} };
  const search = startSearch({ ...deps, onSearchError: deps.checked.failed }, finders, options);
  return {
    wake: checker.wake,
    async stop() {
      await search.stop();
      await checker.stop();
    },
  };
}
