import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import pg from 'pg';
import { type LedgerLocation, sandboxProvider } from '#src/sandbox/sandbox-provider.ts';
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

/** Options of a provider under test, beside its database. */
export type AppOptions = {
  readonly publicUrl?: (origin: string) => string;
  readonly notificationSecrets?: readonly string[];
  readonly notificationUrl?: string;
};

export async function startProvider(options: AppOptions = {}): Promise<ProviderUnderTest> {
  const database = await createTestDatabase({ empty: true });
  const { app, origin } = await startApp({ databaseUrl: database.url }, options);
  const client = new pg.Client(database.url);
  await client.connect();
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
    query: async (sql) => (await client.query(sql)).rows,
    close: async () => {
      await app.close();
      await client.end();
      await database.drop();
    },
  };
}

/** Starts the application alone, on a ledger that may exist already. */
export async function startApp(
  location: LedgerLocation,
  options: AppOptions = {},
): Promise<{ app: FastifyInstance; origin: string }> {
  const { publicUrl = () => 'http://shop.example', ...others } = options;
  const app = Fastify();
  let origin = '';
  await app.register(sandboxProvider, {
    ...location,
    ...others,
    publicUrl: () => publicUrl(origin),
    apiKeys: [API_KEY],
  });
  origin = await app.listen({ host: '127.0.0.1', port: 0 });
  return { app, origin };
}

/** The fields of the provider's answers that the tests look at. */
export type Answer = {
  readonly id: string;
  readonly object: string;
  readonly status: string;
  readonly amount: number;
  readonly idempotency_key: string;
  readonly [field: string]: unknown;
};

/** POSTs to a provider, and reads its answer. */
export async function ask(
  origin: string,
  path: string,
  body: object,
  idempotencyKey: string = randomUUID(),
): Promise<{ status: number; answer: Answer }> {
  const response = await fetch(origin + path, {
    method: 'POST',
    headers: {
      authorization: `Bearer ${API_KEY}`,
      'content-type': 'application/json',
      'idempotency-key': idempotencyKey,
    },
    body: JSON.stringify(body),
  });
  return { status: response.status, answer: (await response.json()) as Answer };
}

/** GETs from a provider's API. */
export async function read(origin: string, path: string): Promise<Answer> {
  const response = await fetch(origin + path, { headers: { authorization: `Bearer ${API_KEY}` } });
  return (await response.json()) as Answer;
}
