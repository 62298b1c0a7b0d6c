import { setTimeout as sleep } from 'node:timers/promises';

/** Observes all payments and transactions continuously. */
export type StatusWatch = {
  /** Payments and transactions that left a terminal status. */
  readonly changes: readonly string[];
  /** The ids of payments with two open outcomes at the same time. */
  readonly doublyOpen: ReadonlySet<string>;
  stop(): Promise<void>;
};

const TERMINAL: ReadonlySet<string> = new Set(['SUCCEEDED', 'DECLINED', 'ERROR']);
const INTERVAL_MS = 40;
/** The time after which every status has been observed, so that a later change is noticed. */
export const WATCHED_MS = 400;
const DOUBLY_OPEN = `SELECT payment_id FROM transaction WHERE parent_id IS NULL AND status IN ('CREATED', 'PENDING')
   GROUP BY payment_id HAVING count(*) > 1`;

// A payment changes with its operations, but its transactions never leave a terminal status.
const STATUSES = `SELECT id, status FROM transaction UNION ALL
  SELECT p.id, p.status FROM payment p
  WHERE NOT EXISTS (SELECT FROM transaction t WHERE t.payment_id = p.id AND t.parent_id IS NOT NULL)`;

/** Selects the attempts and operations whose outcome is open. */
export const OPEN = `FROM transaction
  WHERE check_at IS NOT NULL AND status IN ('CREATED', 'PENDING') AND NOT awaits_payer`;

type Query = (sql: string) => Promise<readonly Record<string, unknown>[]>;

/** Starts observing. */
export function watchStatuses(query: Query): StatusWatch {
  const ended = new Map<string, string>();
  const changes: string[] = [];
  const doublyOpen = new Set<string>();
  let stopped = false;
  const look = async () => {
    for (const { id, status } of await query(STATUSES)) {
      const before = ended.get(String(id));
      if (before !== undefined && before !== status) changes.push(`${id}: ${before} → ${status}`);
      if (TERMINAL.has(String(status))) ended.set(String(id), String(status));
    }
    for (const { payment_id } of await query(DOUBLY_OPEN)) doublyOpen.add(String(payment_id));
  };
  const running = (async () => {
    while (!stopped) {
      // The database may be down in some cases.
      await look().catch(() => {});
      await sleep(INTERVAL_MS);
    }
  })();
  return {
    changes,
    doublyOpen,
    async stop() {
      stopped = true;
      await running;
    },
  };
}
