import { describeError } from '#src/api/describe-error.ts';
import { CatalogueError } from '#src/catalogue/catalogue-error.ts';
import { UnknownFormatError } from '#src/catalogue/publish-catalogue.ts';
import { ConfigError } from '#src/config.ts';
import { SettlementFileError } from '#src/connectors/port/settlement-line.ts';
import { SettlementFetchError } from '#src/connectors/port/settlement-source.ts';
import { EmbeddedPostgresError } from '#src/postgres/embedded-postgres-error.ts';
import { ServiceError } from '#src/service-error.ts';
import {
  DatabaseUnavailableError,
  hasSqlState,
  isUnavailable,
  READ_ONLY,
  UnsafeDatabaseError,
} from '#src/store/engine/database-error.ts';
import { DistributionError } from '#src/store/engine/distribution.ts';
import { PoolerError } from '#src/store/engine/pooler.ts';
import { MigrationError } from '#src/store/engine/schema-lock.ts';
import { InstallationKeysError } from '#src/store/tables/installation-keys.ts';

/**
 * Explains why a process exits. Returns the message of an error that the operator can fix, or the stack of any other.
 */
export function explainFailure(error: unknown): string {
  if (!(error instanceof Error)) return String(error);
  if (IN_THEIR_OWN_WORDS.some((type) => error instanceof type)) return error.message;
  if (error instanceof CatalogueError) {
    const source = error.version > 0 ? `version ${error.version} in the database` : 'CATALOGUE_FILE';
    return `the catalogue (${source}): ${error.message}`;
  }
  if (error instanceof DatabaseUnavailableError) return `${error.message} (see DATABASE_URL)`;
  if (hasSqlState(error, READ_ONLY)) return 'the database is read-only. Point DATABASE_URL to the primary';
  if (error instanceof UnsafeDatabaseError) {
    return `${error.message}. Switch them on, or accept the risk with ALLOW_UNSAFE_DATABASE=on`;
  }
  if (isUnavailable(error)) {
    const [reason] = error.message.split('\n', 1);
    return `the database, or one of its nodes, is unavailable: ${reason}. Try again once npm run doctor finds it well`;
  }
  return explainListening(error) ?? `${error.message}\n${JSON.stringify(describeError(error))}`;
}

const IN_THEIR_OWN_WORDS = [
  UnknownFormatError,
  ConfigError,
  MigrationError,
  EmbeddedPostgresError,
  DistributionError,
  InstallationKeysError,
  PoolerError,
  SettlementFetchError,
  SettlementFileError,
  ServiceError,
];

/** Explains why the operating system refused to listen. */
function explainListening(
  error: NodeJS.ErrnoException & { port?: number; address?: string },
): string | undefined {
  const { code, port, address } = error;
  switch (code) {
    case 'EADDRINUSE':
      return `port ${port} of ${address} is in use by another process. Set PORT to a free one`;
    case 'EACCES':
      if (error.syscall !== 'listen') return undefined;
      return `this user does not have permission to listen on port ${port}. Set PORT to one above 1023`;
    case 'EADDRNOTAVAIL':
    case 'ENOTFOUND':
      return 'HOST is not an address of this machine';
    default:
      return undefined;
  }
}
