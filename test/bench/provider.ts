import { randomUUID } from 'node:crypto';
import http, { type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import { latencyMs } from './provider-latency.ts';
import { ready } from './worker.ts';

// The provider stub: approves every charge, at once or with the latency that its arguments give (median and 99th
// percentile in milliseconds), and keeps the charges in memory. It implements only the part of the sandbox provider's
// API that the load needs.

const [medianMs = 0, p99Ms = 0] = process.argv.slice(2).map(Number);

/** A line for every charge: its idempotency key and its amount. A repeated key appears twice. */
let ledger: string[] = [];
let held: (() => void)[] | undefined;
let openSockets = 0;
let peakSockets = 0;

const routes: Readonly<Record<string, (request: IncomingMessage, response: ServerResponse) => void>> = {
  'POST /v1/charges': (request, response) => {
    readBody(request, (body) => {
      const asked: ChargeRequest = JSON.parse(body);
      const approve = () => answer(response, 201, JSON.stringify(charge(request, asked)));
      if (held) held.push(approve);
      else if (medianMs > 0) setTimeout(approve, latencyMs({ medianMs, p99Ms }, asked.amount));
      else approve();
    });
  },
  'GET /ledger': (_request, response) => answer(response, 200, ledger.join('\n')),
  'DELETE /ledger': (_request, response) => {
    ledger = [];
    answer(response, 200, '');
  },
  /** Returns the peak number of open connections since the last such request. */
  'GET /sockets': (_request, response) => {
    answer(response, 200, String(peakSockets));
    peakSockets = openSockets;
  },
  /** Responses wait until they are released, so that a payment can be examined while its outcome is open. */
  'POST /hold': (_request, response) => {
    held = [];
    answer(response, 200, '');
  },
  'POST /release': (_request, response) => {
    for (const approve of held ?? []) approve();
    held = undefined;
    answer(response, 200, '');
  },
};

const server = http.createServer({ keepAliveTimeout: 60_000 }, (request, response) => {
  const route = routes[`${request.method} ${request.url}`];
  if (route) route(request, response);
  else answer(response, 404, '');
});
server.on('connection', (socket) => {
  openSockets += 1;
  peakSockets = Math.max(peakSockets, openSockets);
  socket.on('close', () => {
    openSockets -= 1;
  });
});
server.listen(0, '127.0.0.1', () => ready((server.address() as AddressInfo).port));

type ChargeRequest = {
  readonly amount: number;
  readonly currency: string;
  readonly capture: boolean;
  readonly installments: number;
  readonly reference?: string;
  readonly description?: string;
  readonly card: { readonly number: string };
};

function charge(request: IncomingMessage, body: ChargeRequest): object {
  const idempotencyKey = String(request.headers['idempotency-key']);
  ledger.push(`${idempotencyKey} ${body.amount}`);
  return {
    object: 'charge',
    id: `ch_${randomUUID()}`,
    idempotency_key: idempotencyKey,
    account: 'acct_bench',
    acquirer: 'ONE',
    status: 'approved',
    response_code: '00',
    response_message: 'Approved',
    authorization_code: 'A1B2C3',
    retrieval_reference_number: '012345678901',
    amount: body.amount,
    currency: body.currency,
    captured: body.capture,
    installments: body.installments,
    card_iin: body.card.number.slice(0, 8),
    card_last_four: body.card.number.slice(-4),
    reference: body.reference ?? null,
    description: body.description ?? null,
    three_d_secure_setup_id: null,
    order_item_count: 2,
    airline_leg_count: 0,
    created_at: new Date().toISOString(),
  };
}

function readBody(request: IncomingMessage, done: (body: string) => void): void {
  let body = '';
  request.setEncoding('utf8');
  request.on('data', (chunk: string) => {
    body += chunk;
  });
  request.on('end', () => done(body));
}

function answer(response: ServerResponse, status: number, body: string): void {
  response.writeHead(status, {
    'content-type': 'application/json',
    'content-length': Buffer.byteLength(body),
  });
  response.end(body);
}
