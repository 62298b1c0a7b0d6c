import { randomUUID } from 'node:crypto';
import http2 from 'node:http2';
import net from 'node:net';
import { expect } from 'vitest';
import { type ApiClients, apiClients, PROTOCOLS, type Protocol, type Reply } from './api-clients.ts';
import { type HeldProvider, startHeldProvider } from './held-provider.ts';
import { cardPayment, headersOne, type RequestJson } from './payment-requests.ts';
import { startTestServer, type TestServer } from './server.ts';
import { openTables, type Tables } from './tables.ts';

export const QUICK = cardPayment();

export let server: TestServer;
/** The provider of `server`, which can hold its responses to HELD payments. */
export let provider: HeldProvider;
export let clients: ApiClients;
export let tables: Tables;

/** Starts the service. @param maxInFlight the limit for each connection; by default, the service's. */
export async function open(
  options: Parameters<typeof startTestServer>[0],
  { maxInFlight }: { readonly maxInFlight?: number } = {},
): Promise<void> {
  provider = await startHeldProvider();
  const limit = maxInFlight === undefined ? '' : `max_in_flight: ${maxInFlight}\n    `;
  const catalogue = provider.catalogue.replaceAll('connector: ', `${limit}connector: `);
  server = await startTestServer({ ...options, catalogue });
  provider.frontOf(server.url);
  clients = apiClients(server.url);
  tables = await openTables(server.databaseUrl);
}

export async function close(): Promise<void> {
  await tables.close();
  clients.close();
  await server.close();
  await provider.close();
}

/** Reads a gauge or a counter of the service, with its labels. */
export async function gauge(name: string): Promise<number> {
  const metrics = await (await fetch(`${server.url}/metrics`)).text();
  const line = metrics.split('\n').find((line) => line.startsWith(`${name} `));
  return Number(line?.slice(name.length + 1));
}

export const inFlight = () => gauge('calls_in_flight');

/** Reads the number of calls that each limit has refused, and their sums in the log. */
export async function refusedBy(limit: string): Promise<{ counted: number; logged: number }> {
  const lines = server.logLines.map((line) => JSON.parse(line));
  const sums = lines.filter((line) => line.msg === 'calls refused' && line.limit === limit);
  return {
    counted: (await gauge(`calls_refused_total{limit="${limit}"}`)) || 0,
    logged: sums.reduce((calls, line) => calls + line.calls, 0),
  };
}

export async function untilInFlight(count: number): Promise<void> {
  await expect.poll(inFlight, { interval: 20 }).toBe(count);
}

export async function untilReceiving(count: number): Promise<void> {
  await expect.poll(() => gauge('calls_receiving'), { interval: 20 }).toBe(count);
}

export const isAccepted = (reply: Reply) => reply.record !== '';

/** Sends a payment over each protocol in turn, `count` in all, without waiting for any. */
export function sendMany(count: number, request: RequestJson) {
  return Array.from({ length: count }, (_, i) => {
    const protocol = PROTOCOLS[i % PROTOCOLS.length] as Protocol;
    const key = randomUUID();
    return { protocol, key, reply: clients.create(protocol, request, headersOne(key)) };
  });
}

/** Waits until this many calls have received a response. */
export async function untilAnswered(calls: readonly { reply: Promise<Reply> }[], count: number) {
  let answered = 0;
  for (const { reply } of calls) void reply.finally(() => answered++);
  await expect.poll(() => answered).toBe(count);
}

/** Starts calls whose body never arrives, every other one over HTTP/2. */
export function sendEndless(count: number): { leave(): void } {
  const { hostname, port } = new URL(server.url);
  const headers = { ...headersOne(), 'content-type': 'application/json', 'content-length': '99' };
  const lines = Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
  const session = http2.connect(server.url);
  session.on('error', () => {});
  const sockets: net.Socket[] = [];
  for (let i = 0; i < count; i++) {
    if (i % 2 === 0) {
      session.request({ ':method': 'POST', ':path': '/v1/payments', ...headers }).on('error', () => {});
    } else {
      const socket = net.connect(Number(port), hostname);
      socket.write(`POST /v1/payments HTTP/1.1\r\nhost: ${hostname}\r\n${lines.join('')}\r\n{`);
      sockets.push(socket);
    }
  }
  return {
    leave() {
      session.destroy();
      for (const socket of sockets) socket.destroy();
    },
  };
}
