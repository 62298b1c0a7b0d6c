import { randomBytes, randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { afterEach, beforeEach, expect, vi } from 'vitest';
import { PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { encodeRecord } from '#src/payments/stored-record.ts';
import type { Loop } from '#src/repeat.ts';
import { startSearch } from '#src/server/search-due-work.ts';
import type { Database } from '#src/store/engine/database.ts';
import { insertAccount } from '#src/store/tables/accounts.ts';
import { UUID_V7 } from '#src/store/tables/outbox.ts';
import type { StoredWebhook } from '#src/store/tables/webhooks.ts';
import { cardVault } from '#src/vault/card-vault.ts';
import { addWebhook, type ManageDeps, type WebhookWithSecret } from '#src/webhooks/manage-webhooks.ts';
import type { SecretVault } from '#src/webhooks/signing-secret.ts';
import {
  DEFAULT_SETTINGS,
  startWebhooks,
  type WebhookSettings,
  type Webhooks,
} from '#src/webhooks/start-webhooks.ts';
import { createTestDatabase, openTestDatabase } from '../support/database.ts';
import { openTables, type Tables } from '../support/tables.ts';
import { type Receiver, startReceiver } from './receiver.ts';

/** A database with accounts, and workers that deliver their events. */
export type WebhookWorld = {
  readonly databaseUrl: string;
  readonly vaultKey: Uint8Array;
  readonly tables: Tables;
  readonly deps: ManageDeps;
  /** Every error that the workers reported. */
  readonly errors: unknown[];
  readonly results: string[];
  addAccount(): Promise<string>;
  addWebhook(accountId: string, url: string, events?: readonly string[]): Promise<WebhookWithSecret>;
  /** Starts a replica's worker. */
  start(
    settings?: Partial<WebhookSettings>,
    other?: { readonly database?: Database; readonly vault?: SecretVault },
  ): Promise<Webhooks>;
  /** Changes a payment and writes its event in the same statement. @returns the payment's id. */
  change(accountId: string, type?: string, paymentId?: string): Promise<string>;
  close(): Promise<void>;
};

/** Settings with short waits, but with timeouts that a receiver on a busy machine does not exceed. */
export const QUICK: WebhookSettings = {
  ...DEFAULT_SETTINGS,
  allowPrivate: true,
  timeoutMs: 30_000,
  leaseS: 60,
  overdueIntervalMs: 200,
  retryScheduleS: [0.05, 0.1, 0.2],
};

const CHANGE = {
  name: 'change',
  text: `
    WITH changed AS (
      INSERT INTO payment (account_id, id, idempotency_key, request_hash, request_shape, status, record, event_sequence)
      VALUES ($1, $2::uuid, ($2::uuid)::text, '', '', 'SUCCEEDED', $3, 1)
      ON CONFLICT (account_id, id) DO UPDATE SET record = $3, event_sequence = payment.event_sequence + 1
      RETURNING account_id, id, event_sequence
    ), event AS (
      INSERT INTO event (account_id, id, type, payment_id, sequence, record)
      SELECT account_id, ${UUID_V7}, $4::text, id, event_sequence, $3 FROM changed
      WHERE EXISTS (SELECT FROM webhook w WHERE w.account_id = $1 AND w.active AND $4::text = ANY (w.events))
      RETURNING id
    )
    SELECT EXISTS (SELECT FROM event) AS event FROM changed`,
};

/** Opens a world. Nothing is sent before a worker starts. */
export async function openWebhookWorld(): Promise<WebhookWorld> {
  const owned = await createTestDatabase();
  const database = openTestDatabase(owned.url, 8);
  const tables = await openTables(owned.url);
  const vaultKey = randomBytes(32);
  const vault = cardVault(new Map([['test-1', vaultKey]]));
  const workers: Webhooks[] = [];
  const errors: unknown[] = [];
  const results: string[] = [];
  const wake: ManageDeps['wake'] = (webhook) => workers.at(-1)?.wake(webhook);
  const deps: ManageDeps = { database, vault, allowPrivate: true, newId: randomUUID, wake };
  return {
    databaseUrl: owned.url,
    vaultKey,
    tables,
    deps,
    errors,
    results,
    async addAccount() {
      const id = randomUUID();
      await insertAccount(database, { id, name: 'test' });
      return id;
    },
    addWebhook: (accountId, url, events = ['payment.purchase']) =>
      addWebhook(deps, accountId, { url, events, description: '' }),
    async start(settings = {}, other = {}) {
      const worker = startWebhooks({
        database,
        vault,
        ...other,
        observer: {
          delivered: (_webhook, { result }) => results.push(result),
          turnedOff: () => {},
          failed: (error) => errors.push(error),
        },
        settings: { ...QUICK, ...settings },
      });
      const search = searchFor(worker, { database, ...other }, (error) => errors.push(error));
      const stop = () => Promise.all([search.stop(), worker.stop()]).then(() => {});
      workers.push({ ...worker, stop });
      return { ...worker, stop };
    },
    async change(accountId, type = 'payment.purchase', paymentId = randomUUID()) {
      const record = encodeRecord(create(PaymentSchema, { id: paymentId, accountId, description: type }));
      const { rows } = await database.query<{ event: boolean }>(CHANGE, [accountId, paymentId, record, type]);
      if (rows[0]?.event) workers.at(-1)?.eventWritten();
      return paymentId;
    },
    async close() {
      await Promise.all(workers.map((worker) => worker.stop()));
      await tables.close();
      await database.close();
      await owned.drop();
    },
  };
}

/** Searches for events that no worker was told about, as the service does. */
export function searchFor(
  { eventWritten }: Webhooks,
  { database }: { readonly database: Database },
  onSearchError: (error: unknown) => void,
): Loop {
  const deps = { database, connections: () => new Map(), isLeftAlone: () => false, onSearchError };
  return startSearch(
    deps,
    { checks: () => {}, enrollments: () => {}, events: eventWritten },
    { intervalMs: 50 },
  );
}

export let world: WebhookWorld;
/** A merchant's server, with a webhook of `account` that subscribes to payment.purchase. */
export let shop: Receiver;
export let account: string;
/** The webhook as a worker reads it. */
export let webhook: StoredWebhook;
export let webhookId: string;

/** Gives each test in a file a new world with a shop. */
export function onWebhookWorld(): void {
  beforeEach(async () => {
    world = await openWebhookWorld();
    shop = await startReceiver();
    account = await world.addAccount();
    ({ webhook } = await world.addWebhook(account, shop.url));
    webhookId = webhook.id;
  });
  afterEach(async () => {
    await shop.close();
    await world.close();
  });
}

/** Counts deliveries. @param where an SQL condition. */
export async function countDeliveries(where: string): Promise<unknown> {
  return (await world.tables.query(`SELECT count(*)::int AS n FROM delivery WHERE ${where}`))[0]?.n;
}

/** Waits until `count` deliveries have succeeded. */
export async function hasDelivered(count: number): Promise<void> {
  const isDelivered = "status = 'DELIVERED'";
  await vi.waitFor(async () => expect(await countDeliveries(isDelivered)).toBe(count), 60_000);
}
