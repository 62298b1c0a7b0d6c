import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import pg from 'pg';
import { sandboxProvider } from '#src/sandbox/sandbox-provider.ts';
import { createTestDatabase } from '../support/database.ts';

export const API_KEY = 'sandbox_test_key';
export const CARD = { number: '4111111111111111', exp_month: 12, exp_year: 19, cvc: '987', holder: 'Ana' };
export const CHARGE = { amount: 5575, currency: 'USD', capture: true, installments: 1, card: CARD };

/** A sandbox provider on a port and a database of its own. */
export type ProviderUnderTest = {
  readonly app: FastifyInstance;
  readonly origin: string;
  readonly databaseUrl: string;
  /** POSTs JSON with an API key; a string is sent as it is. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string): Promise<Response>;
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Closes the provider and drops its database. */
  close(): Promise<void>;
};

export async function startProvider(): Promise<ProviderUnderTest> {
  const database = await createTestDatabase({ empty: true });
  const { app, origin } = await startApp(database.url);
  const pool = new pg.Pool({ connectionString: database.url, max: 1 });
  const authorization = `Bearer ${API_KEY}`;
  return {
    app,
    origin,
    databaseUrl: database.url,
    post: (path, body, headers = {}) =>
      fetch(origin + path, {
        method: 'POST',
        headers: {
          authorization,
          'content-type': 'application/json',
          'idempotency-key': randomUUID(),
          ...headers,
        },
        body: typeof body === 'string' ? body : JSON.stringify(body),
      }),
    get: (path) => fetch(origin + path, { headers: { authorization } }),
    query: async (sql) => (await pool.query(sql)).rows,
    close: async () => {
      await app.close();
      await pool.end();
      await database.drop();
    },
  };
}

/** The application alone, on a database that is there already. */
export async function startApp(databaseUrl: string): Promise<{ app: FastifyInstance; origin: string }> {
  const app = Fastify();
  await app.register(sandboxProvider, {
    databaseUrl,
    publicUrl: () => 'http://shop.example',
    apiKeys: [API_KEY],
  });
  return { app, origin: await app.listen({ host: '127.0.0.1', port: 0 }) };
}
