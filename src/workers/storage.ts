import type { InstallationKeys } from '#src/vault/key-file.ts';

/** The database that a process uses, migrated, and the installation's keys. */
export type Storage = {
  /** May hold a password: not for a log. */
  readonly databaseUrl: string;
  readonly keys: InstallationKeys;
  /** Directory of the database that the service runs itself. */
  readonly dataDir?: string;
};

/** Connections without which a process would wait for itself. */
const LEAST_CONNECTIONS = 4;

/** Returns a worker's share of the database connections that its replica may have. */
export function connectionsOfWorker(connections: number, workers: number): number {
  return workers === 1 ? connections : Math.max(LEAST_CONNECTIONS, Math.floor(connections / workers));
}
