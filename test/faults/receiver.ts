import { createServer, type ServerResponse } from 'node:http';
import type { AddressInfo, Socket } from 'node:net';
import { Webhook } from 'standardwebhooks';
import type { World } from './world.ts';

/** A merchant's server that receives an account's events. */
export type Receiver = {
  /** The events that it accepted with a 2xx, and how often. */
  readonly taken: ReadonlyMap<string, number>;
  /** Faults in received messages: a wrong signature, or a body that changed between attempts. */
  readonly faults: readonly string[];
  /** Returns the number of requests received. */
  readonly asked: () => number;
  /** Breaks every connection and accepts none until `up`. */
  down(): Promise<void>;
  up(): Promise<void>;
};

/** Responds to a request with a 2xx, or fails like a faulty receiver. */
export type Mood = () => 'take' | 'fail' | 'break';

/**
 * Starts a receiver and points an account's webhook at it.
 *
 * @param read normalizes a body, because two releases may write it differently.
 */
export async function startReceiver(
  world: World,
  accountId: string,
  mood: Mood = () => 'take',
  read = (text: string) => text,
): Promise<Receiver> {
  const signature = new Webhook(world.cluster.signingSecrets.get(accountId) ?? '');
  const taken = new Map<string, number>();
  const bodies = new Map<string, string>();
  const faults: string[] = [];
  const sockets = new Set<Socket>();
  let asked = 0;

  function take(headers: Record<string, string>, text: string, response: ServerResponse): void {
    const id = headers['webhook-id'] ?? '';
    try {
      signature.verify(text, headers);
    } catch (error) {
      faults.push(`${id}: ${(error as Error).message}`);
    }
    const { retry: _retry, ...body } = JSON.parse(read(text));
    const before = bodies.get(id);
    if (before !== undefined && before !== JSON.stringify(body))
      faults.push(`${id} was told in two ways:\n${before}\n${JSON.stringify(body)}`);
    bodies.set(id, JSON.stringify(body));
    const does = mood();
    if (does === 'break') return void response.destroy();
    response.writeHead(does === 'take' ? 204 : 500).end();
    if (does === 'take') taken.set(id, (taken.get(id) ?? 0) + 1);
  }

  const server = createServer(async (request, response) => {
    asked += 1;
    const chunks: Buffer[] = [];
    try {
      for await (const chunk of request) chunks.push(chunk);
    } catch {
      // The sender was killed.
      return;
    }
    take(request.headers as Record<string, string>, Buffer.concat(chunks).toString(), response);
  });
  server.on('connection', (socket) => {
    sockets.add(socket);
    socket.once('close', () => sockets.delete(socket));
  });
  const listen = (port: number) =>
    new Promise<void>((resolve) => server.listen(port, '127.0.0.1', () => resolve()));
  const down = () =>
    new Promise<void>((resolve) => {
      server.close(() => resolve());
      for (const socket of sockets) socket.destroy();
    });
  await listen(0);
  const { port } = server.address() as AddressInfo;
  world.atEnd(() => (server.listening ? down() : Promise.resolve()));
  await world.query('UPDATE webhook SET url = $2 WHERE account_id = $1', [
    accountId,
    `http://127.0.0.1:${port}/events`,
  ]);
  return { taken, faults, asked: () => asked, down, up: () => listen(port) };
}

/** Makes open deliveries overdue: ends their pauses and the leases of dead replicas. */
export async function passTime(world: World): Promise<void> {
  await world.query("UPDATE delivery SET due_at = now() - interval '10 s' WHERE due_at > now()");
}

const ALL_TOLD_MS = 90_000;

/** Expects that the receiver got every event of an account, and nothing else. */
export async function expectAllTold(world: World, accountId: string, receiver: Receiver): Promise<void> {
  const events = `SELECT e.id, d.attempts, d.status, d.delivered_at IS NULL AND d.status IS DISTINCT FROM 'FAILED' AS open
    FROM event e LEFT JOIN delivery d ON d.account_id = e.account_id AND d.event_id = e.id WHERE e.account_id = $1`;
  let rows: Record<string, unknown>[] = [];
  let rounds = 0;
  const isOver = async () => {
    if (rounds++ % 50 === 0) await passTime(world);
    rows = await world.query(events, [accountId]);
    return !rows.some(({ open }) => open);
  };
  await world
    .until('every event to be told', isOver, ALL_TOLD_MS)
    .catch((error: Error) => world.expect(false, error.message));
  for (const { id, status, attempts } of rows) {
    if (receiver.taken.has(String(id))) continue;
    world.expect(false, `event ${id} never came; it is ${status} after ${attempts} attempts`);
  }
  const all = new Set((await world.query(events, [accountId])).map(({ id }) => String(id)));
  for (const id of receiver.taken.keys()) world.expect(all.has(id), `event ${id} came, and is none`);
  for (const fault of receiver.faults) world.expect(false, fault);
  world.expect(all.size > 0, 'there was nothing to tell');
}
