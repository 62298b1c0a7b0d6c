import { randomBytes } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, it } from 'vitest';
import {
  CreateWebhookRequestSchema,
  RotateWebhookSecretRequestSchema,
  TestWebhookRequestSchema,
} from '#gen/payments/v1/webhook_service_pb.js';
import { type WebhookServiceDeps, webhookService } from '#src/api/webhook-service.ts';
import type { Caller } from '#src/payments/caller.ts';
import type { Database } from '#src/store/engine/database.ts';
import { ConnectionLostError } from '#src/store/engine/database-error.ts';
import { openWebhookWorld, type WebhookWorld } from './webhook-world.ts';

let world: WebhookWorld;
let caller: Caller;
let id: string;

beforeEach(async () => {
  world = await openWebhookWorld();
  caller = { accountId: await world.addAccount(), idempotencyKey: undefined, secretPresented: true };
  ({ id } = (await world.addWebhook(caller.accountId, 'http://127.0.0.1:9/hook')).webhook);
});
afterEach(() => world.close());

const url = 'http://127.0.0.1:9/other';
const CALLS = {
  createWebhook: () => create(CreateWebhookRequestSchema, { url, events: ['payment.purchase'] }),
  rotateWebhookSecret: () => create(RotateWebhookSecretRequestSchema, { id }),
  testWebhook: () => create(TestWebhookRequestSchema, { id }),
};

/** A database whose connection breaks after each commit, before it is acknowledged. */
function losing(database: Database): Database {
  const lost = new ConnectionLostError(new Error('Connection terminated unexpectedly'));
  const query: Database['query'] = async (statement, values) => {
    const result = await database.query(statement, values);
    if (/INSERT|UPDATE/.test(statement.text)) throw lost;
    return result as never;
  };
  const transaction: Database['transaction'] = async (work, timeoutMs) => {
    await database.transaction(work, timeoutMs);
    throw lost;
  };
  return { ...database, query, transaction };
}

it.each(['createWebhook', 'rotateWebhookSecret', 'testWebhook'] as const)(
  'a %s call without a key whose commit was not acknowledged tells the merchant to check before a retry',
  async (name) => {
    const deps: WebhookServiceDeps = { ...world.deps, requestHashKey: randomBytes(32) };
    const service = webhookService({ ...deps, database: losing(world.deps.database) });
    const before = await written();
    const call = service[name] as (request: unknown, caller: Caller) => Promise<unknown>;
    await expect(call(CALLS[name](), caller)).rejects.toMatchObject({
      reason: 'REQUEST_IN_PROGRESS',
      message: expect.stringContaining('check before you retry'),
    });
    expect(await written()).not.toEqual(before);
  },
);

const written = () =>
  world.tables.query(
    `SELECT (SELECT count(*) FROM webhook) AS webhooks, (SELECT count(*) FROM delivery) AS deliveries,
       (SELECT string_agg(secret, '' ORDER BY id) FROM webhook) AS secrets`,
  );
