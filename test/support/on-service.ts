import { afterAll, beforeAll } from 'vitest';
import { type ApiClients, apiClients } from './api-clients.ts';
import { startTestServer, type TestServer } from './server.ts';
import { openTables, type Tables } from './tables.ts';

/** The service under test. */
export let server: TestServer;
export let clients: ApiClients;
/** Its database. */
export let tables: Tables;

type Options = NonNullable<Parameters<typeof startTestServer>[0]>;

/**
 * Starts the service for a file's tests and stops it after them.
 *
 * @param options may be a function, if the options are known only after the file's earlier hooks.
 */
export function onService(options: Options | (() => Options) = {}): void {
  beforeAll(async () => {
    server = await startTestServer(typeof options === 'function' ? options() : options);
    clients = apiClients(server.url);
    tables = await openTables(server.databaseUrl);
  });
  afterAll(async () => {
    clients?.close();
    await tables?.close();
    await server?.close();
  });
}
