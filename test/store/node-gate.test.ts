import { setTimeout as sleep } from 'node:timers/promises';
import { afterEach, beforeEach, expect, it, vi } from 'vitest';
import type { Database, Run, Statement } from '#src/store/engine/database.ts';
import {
  ConnectionLostError,
  isSurelyNotCommitted,
  isUnavailable,
} from '#src/store/engine/database-error.ts';
import { createNodeGate, type NodeGate } from '#src/store/engine/node-gate.ts';

// Two nodes, A and B. The accounts are named for their node. A statement on a node that hangs never ends by itself.

const READ: Statement = { name: 'read', text: 'SELECT id FROM payment WHERE account_id = $1' };
const SEARCH: Statement = { name: 'search', text: 'SELECT id FROM payment' };
const KEYS: Statement = { name: 'keys', text: 'SELECT public_key FROM public_key WHERE public_key = $1' };
const ANSWER_MS = 20;
const TIMING = {
  lookEveryMs: 5,
  suspectAfterMs: 20,
  askEveryMs: { well: 10_000, suspected: 10, ill: 10 },
  waitMs: 100,
};

let hanging: Set<string>;
/** Statements that were sent, by account or 'all'. */
let sent: string[];
let gate: NodeGate;
let warnings: unknown[];

beforeEach(() => {
  hanging = new Set();
  sent = [];
  warnings = [];
  gate = createNodeGate(
    database,
    {
      list: async () => ['A', 'B'],
      nodeOf: async (accountId) => accountId[0],
      ask: (node) => (hanging.has(node) ? sleep(ANSWER_MS, 'does not respond') : Promise.resolve(undefined)),
    },
    { maxConnections: 8, log, timing: TIMING },
  );
});
afterEach(() => gate.stop());

/** Resolves, or hangs until aborted, as a statement on a node does. */
function send(accounts: string, abort?: AbortSignal): Promise<never> {
  sent.push(accounts);
  const { promise, resolve, reject } = Promise.withResolvers<never>();
  const needs = accounts === 'all' ? ['A', 'B'] : [accounts[0] ?? ''];
  if (!needs.some((node) => hanging.has(node))) resolve({ rows: [accounts] } as never);
  abort?.addEventListener('abort', () => reject(new ConnectionLostError(new Error('Connection terminated'))));
  return promise;
}

const database = {
  isDistributed: true,
  query: (_statement, values = [], abort) => send(String(values[0] ?? 'all'), abort),
  async transaction(work, _timeoutMs, abort) {
    return work(((_text, values = []) => send(String(values[0] ?? 'all'), abort)) as Run);
  },
} as Partial<Database> as Database;
const log = { warn: (it: unknown) => warnings.push(it), info: () => {} };

const isIll = (node: string) => gate.database.nodes?.().find((one) => one.node === node)?.ill !== undefined;
const untilIll = (node: string, ill = true) =>
  vi.waitFor(() => expect(isIll(node)).toBe(ill), { timeout: 5_000, interval: 2 });

it('a node that hangs is found ill, its statements are given up and refused unsent, and the other node works', async () => {
  hanging.add('A');
  const given = gate.database.query(READ, ['A1']).catch((error) => error);
  await untilIll('A');
  const error = await given;
  expect(isUnavailable(error) && !isSurelyNotCommitted(error)).toBe(true);

  sent = [];
  const refused = await gate.database.query(READ, ['A1']).catch((error) => error);
  expect(isSurelyNotCommitted(refused)).toBe(true);
  expect(String(refused)).toContain('the node A does not respond');
  expect(sent).toEqual([]);
  expect((await gate.database.query(READ, ['B1'])).rows).toEqual(['B1']);
  expect(gate.database.nodes?.()).toEqual([
    { node: 'A', ill: 'does not respond' },
    { node: 'B', ill: undefined },
  ]);
  expect(warnings).toEqual([{ node: 'A', reason: 'does not respond' }]);
});

it('a node that answers again gets its statements', async () => {
  hanging.add('A');
  gate.database.query(READ, ['A1']).catch(() => {});
  await untilIll('A');
  hanging.delete('A');
  await untilIll('A', false);
  expect((await gate.database.query(READ, ['A1'])).rows).toEqual(['A1']);
});

it('statements of a node that hangs hold half of the connections at most, and the others wait for their turn', async () => {
  hanging.add('A');
  const results = Array.from({ length: 10 }, () => gate.database.query(READ, ['A1']).catch((error) => error));
  await sleep(1);
  expect(sent).toHaveLength(4);
  expect((await gate.database.query(READ, ['B1'])).rows).toEqual(['B1']);
  await untilIll('A');
  const errors = await Promise.all(results);
  expect(errors.every(isUnavailable)).toBe(true);
  expect(errors.filter(isSurelyNotCommitted)).toHaveLength(6);
  expect(sent.filter((accounts) => accounts === 'A1')).toHaveLength(4);
});

it('a statement that needs several nodes is refused while one is ill, and given up if it was waiting', async () => {
  hanging.add('B');
  const given = gate.database.query(SEARCH).catch((error) => error);
  await untilIll('B');
  expect(isUnavailable(await given)).toBe(true);
  await expect(gate.database.query(SEARCH)).rejects.toThrow('the node B does not respond');
  expect((await gate.database.query(KEYS, ['key'])).rows).toEqual(['key']);
});

it('a transaction is refused when it needs an ill node, and not before', async () => {
  hanging.add('A');
  gate.database.query(READ, ['A1']).catch(() => {});
  await untilIll('A');
  const read = (accountId: string) =>
    gate.database.transaction(async (run) => (await run(READ.text, [accountId])).rows);
  expect(await read('B1')).toEqual(['B1']);
  await expect(read('A1')).rejects.toThrow('the node A does not respond');
});

it('a transaction that waits for a node found ill is given up', async () => {
  hanging.add('A');
  const given = gate.database.transaction((run) => run(READ.text, ['A1'])).catch((error) => error);
  await untilIll('A');
  expect(isUnavailable(await given)).toBe(true);
});

it('a slow statement on a node that answers is left alone', async () => {
  const slow = Promise.withResolvers<never>();
  const own = createNodeGate(
    { ...database, query: () => slow.promise },
    { list: async () => ['A'], nodeOf: async () => 'A', ask: async () => undefined },
    { maxConnections: 8, log, timing: TIMING },
  );
  const result = own.database.query(READ, ['A1']);
  await sleep(4 * TIMING.suspectAfterMs);
  slow.resolve({ rows: ['A1'] } as never);
  expect((await result).rows).toEqual(['A1']);
  expect(warnings).toEqual([]);
  own.stop();
});

it('a node that cannot be asked, because the coordinator does not answer, keeps its state', async () => {
  const own = createNodeGate(
    database,
    {
      list: async () => ['A'],
      nodeOf: async () => 'A',
      ask: () => Promise.reject(new Error('no coordinator')),
    },
    { maxConnections: 8, log, timing: TIMING },
  );
  await vi.waitFor(() => expect(own.database.nodes?.()).toHaveLength(1), { timeout: 5_000, interval: 2 });
  await sleep(50);
  expect(own.database.nodes?.()).toEqual([{ node: 'A', ill: undefined }]);
  expect(warnings).toEqual([]);
  own.stop();
});
