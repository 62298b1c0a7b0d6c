import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { describe, expect, it, vi } from 'vitest';
import { scopeOf } from '#src/store/engine/statement-scope.ts';
import { cardPayment, headersOne } from '../support/payment-requests.ts';
import { runIn } from '../support/run-in.ts';
import { startTestServer } from '../support/server.ts';

// These tests need Citus: CITUS_URL names a database of a coordinator to which workers were added.

const PAYMENTS = 100;
const PAUSE_MS = 200;

describe.skipIf(!process.env.CITUS_URL)(
  'payments with notifications (skipped unless CITUS_URL names a coordinator)',
  () => {
    it('the check of a notified payment runs on its account’s node alone: only the interval searches several nodes', async () => {
      const counts = { one: 0, nodes: 0, searches: 0 };
      const query = pg.Client.prototype.query;
      vi.spyOn(pg.Client.prototype, 'query').mockImplementation(function (
        this: pg.Client,
        ...args: unknown[]
      ) {
        const { name = '', text } = (args[0] ?? {}) as { name?: string; text?: string };
        const scope = text ? scopeOf(text) : 'coordinator';
        if (scope !== 'coordinator') counts[scope === 'nodes' ? 'nodes' : 'one'] += 1;
        if (/^find_due_(notifications|transactions)$/.test(name)) counts.searches += 1;
        return Reflect.apply(query, this, args);
      } as typeof query);
      const server = await startTestServer();
      const startedMs = performance.now();
      for (let i = 0; i < PAYMENTS; i++) {
        const body = JSON.stringify(cardPayment());
        const headers = { ...headersOne(), 'content-type': 'application/json' };
        const { status } = await fetch(`${server.url}/v1/payments`, { method: 'POST', headers, body });
        expect(status).toBe(201);
        await sleep(PAUSE_MS);
      }
      const settled = () => runIn(server.databaseUrl, 'SELECT count(settled_at)::int AS n FROM notification');
      await expect.poll(settled).toEqual([{ n: PAYMENTS }]);
      const seconds = (performance.now() - startedMs) / 1_000;
      const counted = { ...counts };
      await server.close();
      vi.restoreAllMocks();
      // Two searches at each of four connections, at intervals of 0.75 s or more.
      const mostSearches = 8 * (seconds / 0.75 + 1);
      expect(counted).toMatchObject({ searches: expect.toSatisfy((n) => n <= mostSearches) });
      expect(counted.one / (counted.one + counted.nodes - counted.searches)).toBeGreaterThan(0.9);
    });
  },
);
