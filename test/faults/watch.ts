import { setTimeout as sleep } from 'node:timers/promises';

/** Looks at every payment's status all the time, and remembers those that left a terminal one. */
export type StatusWatch = {
  readonly changes: readonly string[];
  stop(): Promise<void>;
};

const TERMINAL: ReadonlySet<string> = new Set(['SUCCEEDED', 'DECLINED', 'ERROR']);
const INTERVAL_MS = 40;

type Query = (sql: string) => Promise<readonly Record<string, unknown>[]>;

/** Begins to look. */
export function watchStatuses(query: Query): StatusWatch {
  const ended = new Map<string, string>();
  const changes: string[] = [];
  let stopped = false;
  const look = async () => {
    for (const { id, status } of await query('SELECT id, status FROM payment')) {
      const before = ended.get(String(id));
      if (before !== undefined && before !== status) changes.push(`${id}: ${before} → ${status}`);
      if (TERMINAL.has(String(status))) ended.set(String(id), String(status));
    }
  };
  const running = (async () => {
    while (!stopped) {
      // The database may be away: that is what some cases are about.
      await look().catch(() => {});
      await sleep(INTERVAL_MS);
    }
  })();
  return {
    changes,
    async stop() {
      stopped = true;
      await running;
    },
  };
}
