import type { InstallationKeys } from '#src/vault/key-file.ts';

/** The migrated database that a process uses, with the installation's keys. */
export type Storage = {
  /** May contain a password: never log it. */
  readonly databaseUrl: string;
  readonly keys: InstallationKeys;
  /** Directory of the embedded database, if the service runs it. */
  readonly dataDir?: string;
};

/** Minimum number of connections with which a process cannot deadlock with itself. */
const LEAST_CONNECTIONS = 4;

/** Returns a worker's share of its replica's database connections. */
export function connectionsOfWorker(connections: number, workers: number): number {
  return workers === 1 ? connections : Math.max(LEAST_CONNECTIONS, Math.floor(connections / workers));
}
