import http from 'node:http';
import type { AddressInfo } from 'node:net';
import { setTimeout as sleep } from 'node:timers/promises';
import pg from 'pg';
import { PUBLIC_KEY, SECRET_KEY } from './request.ts';

/** A webhook of the benchmark's account, turned off at first. Its receiver accepts everything at once. */
export type BenchWebhook = {
  turn(active: boolean): Promise<void>;
  /** Resolves once everything is delivered. */
  drained(): Promise<void>;
  /** Returns the number of deliveries since the last call. */
  takeReceived(): number;
  close(): Promise<void>;
};

const POLL_MS = 50;
const OPEN = `
  SELECT FROM event WHERE relayed_at IS NULL
  UNION ALL SELECT FROM delivery WHERE due_at IS NOT NULL LIMIT 1`;

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

  async function call(method: string, path: string, body: object): Promise<{ id: string }> {
    const response = await fetch(`http://127.0.0.1:${servicePort}/v1/webhooks${path}`, {
      method,
      headers: {
        'content-type': 'application/json',
        'public-api-key': PUBLIC_KEY,
        'private-secret-key': SECRET_KEY,
      },
      body: JSON.stringify(body),
    });
    const text = await response.text();
    if (!response.ok) throw new Error(`${method} of the webhook returned ${response.status}: ${text}`);
    return JSON.parse(text);
  }
  const { port } = receiver.address() as AddressInfo;
  const { id } = await call('POST', '', { url: `http://127.0.0.1:${port}/`, events: ['payment.purchase'] });
  const turn = async (active: boolean) => void (await call('PATCH', `/${id}`, { active }));
  await turn(false);
  return {
    turn,
    async drained() {
      while ((await client.query(OPEN)).rowCount) await sleep(POLL_MS);
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
