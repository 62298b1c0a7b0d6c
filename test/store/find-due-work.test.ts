import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import { startSearch } from '#src/server/search-due-work.ts';
import { findDueWork } from '#src/store/engine/due-work.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import { claimAttempt } from '../support/claimed-rows.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'payment, transaction, vaulted_token, notification, event' });

const CONNECTIONS = ['scripted', 'silent'];
const NOTHING = { connectionIds: [], hasEnrollments: false, hasEvents: false };

/** Every kind of due work, as another process leaves it when it dies, and what a search reports. */
const WORK: Readonly<Record<string, { write(): Promise<unknown>; found: Partial<typeof FOUND> }>> = {
  'a due transaction': {
    write: () => claimAttempt(database),
    found: { connectionIds: ['scripted'] },
  },
  'a due notification': {
    write: () =>
      insertNotification(database, {
        ...{ connectionId: 'silent', deduplicationKey: 'one', subjects: [{ providerPaymentId: 'ch_1' }] },
        ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
      }),
    found: { connectionIds: ['silent'] },
  },
  'a due enrollment': {
    write: () =>
      tables.query(
        `INSERT INTO vaulted_token (account_id, id, type, connection_id, active, status, check_at)
         VALUES ($1, $2, 'WALLET', 'c', false, 'READY_TO_ENROLL', now())`,
        [ACCOUNT_ONE, randomUUID()],
      ),
    found: { hasEnrollments: true },
  },
  'an event that is not relayed': {
    write: () =>
      tables.query(
        `INSERT INTO event (account_id, id, type, payment_id, sequence, record) VALUES ($1, $2, '', $2, 1, '')`,
        [ACCOUNT_ONE, randomUUID()],
      ),
    found: { hasEvents: true },
  },
};
const FOUND = { connectionIds: ['scripted'], hasEnrollments: true, hasEvents: true };

it('a search finds nothing where nothing is due', async () => {
  await claimAttempt(database, { leaseS: 60 });
  expect(await findDueWork(database, CONNECTIONS, [])).toEqual(NOTHING);
});

it.each(Object.entries(WORK))('a search finds %s, and nothing else', async (_what, { write, found }) => {
  await write();
  expect(await findDueWork(database, CONNECTIONS, [])).toEqual({ ...NOTHING, ...found });
});

it('a search finds only what is due at the given connections, and no transactions of one that is left alone', async () => {
  await claimAttempt(database);
  await claimAttempt(database, { connectionId: 'silent' });
  const connectionIdsOf = async (ids: readonly string[], leftAlone: readonly string[]) =>
    (await findDueWork(database, ids, leftAlone)).connectionIds.toSorted();
  expect(await connectionIdsOf(CONNECTIONS, [])).toEqual(CONNECTIONS);
  expect(await connectionIdsOf(['silent'], [])).toEqual(['silent']);
  expect(await connectionIdsOf(CONNECTIONS, ['silent'])).toEqual(['scripted']);
  expect(await connectionIdsOf([], [])).toEqual([]);
});

it('a thousand due transactions at one connection do not hide those of another', async () => {
  await claimAttempt(database, { connectionId: 'aaa' });
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status,
       amount_minor_units, currency, capture, merchant_reference, reference, check_at, updated_at)
     SELECT gen_random_uuid(), payment_id, account_id, connection_id, connection_identity, status,
       amount_minor_units, currency, capture, gen_random_uuid(), gen_random_uuid(), check_at, updated_at
     FROM transaction, generate_series(1, 1000)`,
  );
  await claimAttempt(database, { connectionId: 'zzz' });
  const { connectionIds } = await findDueWork(database, ['aaa', 'idle', 'zzz'], []);
  expect(connectionIds).toEqual(['aaa', 'idle', 'zzz']);
});

const INTERVAL_MS = 1_000;
/** The longest time until a search finds what another process left: an interval with its jitter. */
const WITHIN_MS = 1.25 * INTERVAL_MS + 500;

it.each(Object.entries(WORK))(
  '%s that another process wrote is found within the interval',
  async (_what, { write, found }) => {
    const seen: Partial<typeof FOUND>[] = [];
    const deps = {
      database,
      connections: () => new Map(CONNECTIONS.map((id) => [id, undefined])),
      isLeftAlone: () => false,
      onSearchError: (error: unknown) => {
        throw error;
      },
    };
    const finders = {
      checks: (connectionIds: readonly string[]) => seen.push({ connectionIds: [...connectionIds] }),
      enrollments: () => seen.push({ hasEnrollments: true }),
      events: () => seen.push({ hasEvents: true }),
    };
    const search = startSearch(deps, finders, { intervalMs: INTERVAL_MS });
    await new Promise((resolve) => setTimeout(resolve, 200));
    expect(seen).toEqual([]);
    await write();
    const writtenAtMs = performance.now();
    await expect.poll(() => seen, { timeout: 5_000 }).toContainEqual(found);
    expect(performance.now() - writtenAtMs).toBeLessThan(WITHIN_MS);
    await search.stop();
  },
);
