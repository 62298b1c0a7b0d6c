import { createHash } from 'node:crypto';
import PgBoss from 'pg-boss';
import type { Database, Run } from './database.ts';

/** Jobs in PostgreSQL: pg-boss on our own connections and without timers, so that every failure reaches the caller. */
export type JobQueue<Data extends object> = {
  /** Adds jobs that are due in `inS` seconds. A key has at most one waiting job; adding an earlier one brings it forward. */
  add(jobs: readonly { readonly key: string; readonly data: Data }[], inS: number): Promise<void>;
  /** Takes up to `limit` due jobs; no other replica gets them. */
  take(limit: number): Promise<{ readonly id: string; readonly data: Data }[]>;
  /** Removes a job that was taken. */
  remove(id: string): Promise<void>;
  /** Removes jobs taken by replicas that have died. */
  removeAbandoned(): Promise<void>;
};

const SCHEMA = 'job_queue';
/** Key of the advisory lock under which a queue is created. */
const CREATE_LOCK = 7_305_128_402;
/** Time after which a job that was taken counts as abandoned. */
const EXPIRE_S = 300;

// pg-boss has no such call. The key and the policy are as in its index of waiting jobs.
const BRING_FORWARD = `
  UPDATE ${SCHEMA}.job SET start_after = now() + make_interval(secs => $3::float8)
  WHERE name = $1 AND coalesce(singleton_key, '') = ANY ($2::text[]) AND state = 'created' AND policy = 'short'
    AND start_after > now() + make_interval(secs => $3::float8)`;

/** Opens a queue, and creates pg-boss's schema if there is none. */
export async function openJobQueue<Data extends object>(
  database: Database,
  name: string,
): Promise<JobQueue<Data>> {
  let creating: Run | undefined;
  const run = within(database);
  const boss = new PgBoss({
    db: { executeSql: (text, values) => (creating ?? run)(text, values) },
    schema: SCHEMA,
    supervise: false,
    schedule: false,
    archiveCompletedAfterSeconds: 60,
    deleteAfterSeconds: 60,
  });
  await boss.start();
  // pg-boss creates a table for each queue; replicas that did so at once would deadlock.
  await database.transaction(async (run) => {
    await run(`SELECT pg_advisory_xact_lock(${CREATE_LOCK})`);
    creating = run;
    // "short": at most one job of a key waits, beside any that are running.
    const options = { name, policy: 'short', retryLimit: 0, expireInSeconds: EXPIRE_S } as const;
    await boss.createQueue(name, options).finally(() => {
      creating = undefined;
    });
  });
  return {
    async add(jobs, inS) {
      const startAfter = String(inS);
      const rows = jobs.map(({ key, data }) => ({ name, data, singletonKey: key, startAfter }));
      if (rows.length === 0) return;
      await boss.insert(rows);
      const keys = rows.map(({ singletonKey }) => singletonKey);
      // Nothing waits for longer than what is due at once.
      if (inS > 0) await run(BRING_FORWARD, [name, keys, inS]);
    },
    take: async (limit) => (await boss.fetch<Data>(name, { batchSize: limit })) ?? [],
    remove: (id) => boss.deleteJob(name, id),
    async removeAbandoned() {
      await boss.maintain();
    },
  };
}

/** Runs SQL of pg-boss. Text that it repeats has values; text that sets it up has none, and is several statements. */
function within(database: Database) {
  return async (text: string, values: readonly unknown[] = []): Promise<{ rows: unknown[] }> => {
    if (values.length === 0) return database.transaction((run) => run(text));
    const digest = createHash('sha256').update(text).digest('hex').slice(0, 16);
    return database.query({ name: `job_queue_${digest}`, text }, values);
  };
}
