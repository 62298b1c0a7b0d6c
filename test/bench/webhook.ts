import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PUBLIC_KEY, SECRET_KEY } from './request.ts';

/** A webhook of the benchmark's account. Its receiver accepts everything at once. */
export type BenchWebhook = {
  /** Resolves once everything is delivered. Rejects if the deliveries stand still. */
  drained(): Promise<void>;
  /** Returns the number of deliveries since the last call. */
  takeReceived(): number;
  close(): Promise<void>;
};

const POLL_MS = 50;
/** Time without a delivery after which the rest is not waited for: longer than a delivery that is tried once. */
const STILL_MS = 60_000;
const OPEN = `
  SELECT to_jsonb(e) - 'record' AS row FROM event e WHERE relayed_at IS NULL
  UNION ALL SELECT to_jsonb(d) FROM delivery d WHERE due_at IS NOT NULL LIMIT 1`;

/** Adds a webhook for all purchases at a service. */
export async function addWebhook(servicePort: number, databaseUrl: string): Promise<BenchWebhook> {
  let received = 0;
  const receiver = http.createServer((request, response) => {
    request.resume().on('end', () => {
      received += 1;
      response.writeHead(204).end();
    });
  });
  await new Promise<void>((resolve) => receiver.listen(0, '127.0.0.1', resolve));
  const client = new pg.Client(databaseUrl);
  await client.connect();

  const { port } = receiver.address() as AddressInfo;
  const response = await fetch(`http://127.0.0.1:${servicePort}/v1/webhooks`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'public-api-key': PUBLIC_KEY,
      'private-secret-key': SECRET_KEY,
    },
    body: JSON.stringify({ url: `http://127.0.0.1:${port}/`, events: ['payment.purchase'] }),
  });
  if (!response.ok)
    throw new Error(`adding the webhook returned ${response.status}: ${await response.text()}`);
  return {
    async drained() {
      let [before, sinceMs] = [received, performance.now()];
      for (;;) {
        const { rows } = await client.query(OPEN);
        if (rows.length === 0) return;
        if (received !== before) [before, sinceMs] = [received, performance.now()];
        if (performance.now() - sinceMs > STILL_MS) {
          throw new Error(`the deliveries stand still: ${JSON.stringify(rows)}`);
        }
        await sleep(POLL_MS);
      }
    },
    takeReceived() {
      const taken = received;
      received = 0;
      return taken;
    },
    async close() {
      await client.end();
      receiver.closeAllConnections();
      await new Promise((resolve) => receiver.close(resolve));
    },
  };
}
