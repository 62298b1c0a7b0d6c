import { randomUUID } from 'node:crypto';
import http from 'node:http';
import http2 from 'node:http2';
import net from 'node:net';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { PROTOCOLS } from './support/api-clients.ts';
import { HELD } from './support/held-provider.ts';
import {
  clients,
  close,
  gauge,
  inFlight,
  isAccepted,
  open,
  provider,
  QUICK,
  sendMany,
  server,
  untilAnswered,
  untilInFlight,
  untilReceiving,
} from './support/overloaded-service.ts';
import {
  ACCOUNT_TWO,
  headersOne,
  headersTwo,
  type RequestJson,
  walletPayment,
  withField,
} from './support/payment-requests.ts';

describe('shares of accounts and addresses', () => {
  /**
   * Calls without the secret may hold 20 of these: at most 15 per account, 10 per IP address, and 7 for both
   * together.
   */
  beforeAll(() => open({ config: { maxInFlight: 40 } }));
  afterAll(close);
  afterEach(async () => {
    await untilReceiving(0);
    await untilInFlight(0);
  });

  const publicOne = () => ({ 'public-api-key': 'pk_sandbox_one', 'x-idempotency-key': randomUUID() });
  const publicTwo = () => ({ 'public-api-key': 'pk_sandbox_two', 'x-idempotency-key': randomUUID() });

  it('four connections with a public key and incomplete bodies do not block other callers', async () => {
    const sessions = Array.from({ length: 4 }, () => http2.connect(server.url).on('error', () => {}));
    let refused = 0;
    for (const session of sessions) {
      for (let i = 0; i < 100; i++) {
        const stream = session.request({
          ':method': 'POST',
          ':path': '/v1/payments',
          'content-type': 'application/json',
          ...publicOne(),
        });
        stream.on('error', () => {});
        stream.once('response', (head) => {
          if (head[':status'] === 503) refused++;
        });
      }
    }
    await untilReceiving(7);
    await expect.poll(() => refused).toBe(4 * 100 - 7);
    expect(await inFlight()).toBe(0);

    for (const protocol of PROTOCOLS) {
      expect(isAccepted(await clients.create(protocol, QUICK, headersOne()))).toBe(true);
      const ofTwo = withField(QUICK, 'account_id', ACCOUNT_TWO);
      expect(isAccepted(await clients.create(protocol, ofTwo, headersTwo()))).toBe(true);
    }
    const wallet = withField(walletPayment(), 'account_id', ACCOUNT_TWO);
    expect(isAccepted(await clients.create('rest', wallet, publicTwo()))).toBe(true);
    expect(await payFrom('127.0.0.2', walletPayment(), publicOne())).toBe(201);
    for (const session of sessions) session.destroy();
  });

  it('calls that wait for their provider leave room for another account', async () => {
    const giveAnswers = provider.hold();
    const sent = sendMany(40, HELD);
    await untilAnswered(sent, 10);
    expect(await inFlight()).toBe(30);
    const ofTwo = withField(QUICK, 'account_id', ACCOUNT_TWO);
    expect(isAccepted(await clients.create('rest', ofTwo, headersTwo()))).toBe(true);
    giveAnswers();
    const replies = await Promise.all(sent.map(({ reply }) => reply));
    expect(replies.filter(isAccepted)).toHaveLength(30);
  });
});

describe('responses that are not read', () => {
  beforeAll(() => open({ config: { maxInFlight: 10 } }));
  afterAll(close);

  it('a call whose response is not read stays in flight after its work has ended', async () => {
    // A window of zero bytes for responses.
    const session = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
    session.on('error', () => {});
    const streams = Array.from({ length: 3 }, () => {
      const stream = session.request({
        ':method': 'POST',
        ':path': '/v1/payments',
        'content-type': 'application/json',
        ...headersOne(),
      });
      stream.end(JSON.stringify(QUICK));
      return stream.on('error', () => {});
    });
    const statuses = await Promise.all(
      streams.map(
        (stream) => new Promise((resolve) => stream.once('response', (head) => resolve(head[':status']))),
      ),
    );
    expect(statuses).toEqual([201, 201, 201]);
    expect(await gauge('calls_at_work')).toBe(0);
    expect(await inFlight()).toBe(3);
    session.destroy();
    await untilInFlight(0);
  });

  it('pipelined calls whose client disconnected are no longer in flight once they end', async () => {
    const giveAnswers = provider.hold();
    const { hostname, port } = new URL(server.url);
    const socket = net.connect(Number(port), hostname);
    const lines = (headers: Record<string, string>) =>
      Object.entries(headers).map(([name, value]) => `${name}: ${value}\r\n`);
    const body = JSON.stringify(HELD);
    for (let i = 0; i < 3; i++) {
      const head = {
        ...headersOne(),
        'content-type': 'application/json',
        'content-length': `${body.length}`,
      };
      socket.write(`POST /v1/payments HTTP/1.1\r\nhost: a\r\n${lines(head).join('')}\r\n${body}`);
    }
    await untilInFlight(3);
    socket.destroy();
    giveAnswers();
    await untilInFlight(0);
  });
});

/** Pays over REST from one of this machine's IP addresses. @returns the status. */
function payFrom(localAddress: string, payment: RequestJson, headers: Record<string, string>) {
  return new Promise<number | undefined>((resolve, reject) => {
    const request = http.request(`${server.url}/v1/payments`, {
      localAddress,
      method: 'POST',
      headers: { 'content-type': 'application/json', ...headers },
    });
    request.on('response', (response) => resolve(response.resume().statusCode));
    request.on('error', reject).end(JSON.stringify(payment));
  });
}
