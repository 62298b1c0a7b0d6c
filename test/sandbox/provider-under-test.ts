import { randomUUID } from 'node:crypto';
import Fastify, { type FastifyInstance } from 'fastify';
import pg from 'pg';
import { MAGIC_CARDS } from '#sandbox/magic-cards.ts';
import { sandboxProvider } from '#sandbox/sandbox-provider.ts';
import { createTestDatabase } from '../support/database.ts';

export const API_KEY = 'sandbox_test_key';
const AUTHORIZATION = `Bearer ${API_KEY}`;
export const CARD = { number: '4111111111111111', exp_month: 12, exp_year: 19, cvc: '987', holder: 'Ana' };
export const CHARGE = { amount: 5575, currency: 'USD', capture: true, installments: 1, card: CARD };

/** Returns the number of a magic card. */
export function magic(name: string): string {
  const card = MAGIC_CARDS.find((one) => one.name === name);
  if (!card) throw new Error(`no magic card ${name}`);
  return card.number;
}

/** A sandbox provider on its own port and database. */
export type ProviderUnderTest = {
  readonly app: FastifyInstance;
  readonly origin: string;
  readonly databaseUrl: string;
  /** POSTs JSON with an API key. A string is sent unchanged. */
  post(path: string, body: unknown, headers?: Record<string, string>): Promise<Response>;
  get(path: string): Promise<Response>;
  query(sql: string): Promise<Record<string, unknown>[]>;
  /** Closes the provider and drops its database. */
  close(): Promise<void>;
};

/** The options of a provider under test, apart from its database. */
export type AppOptions = {
  /** The path prefix of its routes; '' for none. */
  readonly prefix?: string;
  readonly publicUrl?: (origin: string) => string;
  readonly notificationSecrets?: readonly string[];
  readonly notificationUrl?: string;
};

export async function startProvider(options: AppOptions = {}): Promise<ProviderUnderTest> {
  const database = await createTestDatabase({ empty: true });
  const { app, origin } = await startApp({ databaseUrl: database.url }, options);
  const client = new pg.Client(database.url);
  await client.connect();
  return {
    app,
    origin,
    databaseUrl: database.url,
    post: (path, body, headers) => post(origin + path, body, headers),
    get: (path) => fetch(origin + path, { headers: { authorization: AUTHORIZATION } }),
    query: async (sql) => (await client.query(sql)).rows,
    close: async () => {
      await app.close();
      await client.end();
      await database.drop();
    },
  };
}

function post(url: string, body: unknown, headers: Record<string, string> = {}): Promise<Response> {
  return fetch(url, {
    method: 'POST',
    headers: {
      authorization: AUTHORIZATION,
      'content-type': 'application/json',
      'idempotency-key': randomUUID(),
      ...headers,
    },
    body: typeof body === 'string' ? body : JSON.stringify(body),
  });
}

/** Starts only the application, on a ledger that may already exist. */
export async function startApp(
  location: { readonly databaseUrl: string },
  options: AppOptions = {},
): Promise<{ app: FastifyInstance; origin: string }> {
  const { publicUrl = () => 'http://shop.example', prefix = '', ...others } = options;
  const app = Fastify();
  let origin = '';
  await app.register(sandboxProvider, {
    prefix,
    ...location,
    ...others,
    publicUrl: () => publicUrl(origin),
    apiKeys: [API_KEY],
  });
  origin = (await app.listen({ host: '127.0.0.1', port: 0 })) + prefix;
  return { app, origin };
}

/** The fields of the provider's responses that tests read. */
export type Answer = {
  readonly id: string;
  readonly object: string;
  readonly status: string;
  readonly amount: number;
  readonly idempotency_key: string;
  readonly [field: string]: unknown;
};

/** POSTs to a provider, and parses its response. */
export async function ask(
  origin: string,
  path: string,
  body: object,
  idempotencyKey: string = randomUUID(),
): Promise<{ status: number; answer: Answer }> {
  const response = await post(origin + path, body, { 'idempotency-key': idempotencyKey });
  return { status: response.status, answer: (await response.json()) as Answer };
}

/** GETs a resource from a provider's API. */
export async function read(origin: string, path: string): Promise<Answer> {
  const response = await fetch(origin + path, { headers: { authorization: AUTHORIZATION } });
  return (await response.json()) as Answer;
}
