import { afterAll, beforeAll } from 'vitest';
import { startTestServer, type TestServer } from '../support/server.ts';
import { openTables, type Tables } from '../support/tables.ts';
import { type Call, restCalls } from './calls.ts';
import { checkoutCalls } from './checkout.ts';

/** The file's service. */
export let server: TestServer;
/** Its database, for the test's own statements. */
export let tables: Tables;
/** Calls it by REST. */
export let call: Call;
export let checkout: ReturnType<typeof checkoutCalls>;

/** Gives a file's tests a service of their own, with the sandbox's accounts. */
export function onOwnServer(): void {
  beforeAll(async () => {
    server = await startTestServer();
    tables = await openTables(server.databaseUrl);
    call = restCalls(server.url);
    checkout = checkoutCalls(call);
  });
  afterAll(async () => {
    await tables?.close();
    await server?.close();
  });
}
