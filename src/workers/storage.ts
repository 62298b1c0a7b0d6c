import type { InstallationKeys } from '#src/vault/key-file.ts';

/** The database that a process uses, migrated, and the installation's keys. */
export type Storage = {
  /** May contain a password: never log it. */
  readonly databaseUrl: string;
  readonly keys: InstallationKeys;
  /** Directory of the embedded database, if the service runs one. */
  readonly dataDir?: string;
};

/** Fewest connections with which a process does not wait for itself. */
const LEAST_CONNECTIONS = 4;

/** Returns a worker's share of the database connections that its replica may have. */
export function connectionsOfWorker(connections: number, workers: number): number {
  return workers === 1 ? connections : Math.max(LEAST_CONNECTIONS, Math.floor(connections / workers));
}
