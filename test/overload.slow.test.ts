import { randomUUID } from 'node:crypto';
import { afterAll, afterEach, beforeAll, describe, expect, it } from 'vitest';
import { apiClients, PROTOCOLS, RPC_PROTOCOLS } from './support/api-clients.ts';
import { HELD, held } from './support/held-provider.ts';
import {
  clients,
  close,
  inFlight,
  isAccepted,
  open,
  provider,
  QUICK,
  refusedBy,
  sendEndless,
  sendMany,
  server,
  tables,
  untilAnswered,
  untilInFlight,
  untilReceiving,
} from './support/overloaded-service.ts';
import { ACCOUNT_TWO, headersOne, headersTwo, walletPayment, withField } from './support/payment-requests.ts';

describe('a limit of four calls in flight', () => {
  beforeAll(() => open({ config: { maxInFlight: 4, accountSharePercent: 100 } }));
  afterAll(close);
  afterEach(() => untilInFlight(0));

  it('four of forty concurrent calls are accepted, and the rest get 503 with nothing sent or stored', async () => {
    const before = await tables.counts();
    const giveAnswers = provider.hold();
    const sent = sendMany(40, HELD);
    await untilAnswered(sent, 36);
    giveAnswers();
    const answers = await Promise.all(sent.map(async (one) => ({ ...one, reply: await one.reply })));

    const refused = answers.filter(({ reply }) => !isAccepted(reply));
    expect(refused).toHaveLength(36);
    for (const { protocol, reply } of refused) {
      expect(reply).toMatchObject({
        reason: 'SERVICE_UNAVAILABLE',
        retryAfterS: expect.toBeOneOf([1, 2, 3]),
      });
      expect(reply.headers.get('retry-after')).toBe(String(reply.retryAfterS));
      expect(reply.headers.get('x-request-id')).toMatch(/^[0-9a-f]{24}$/);
      if (protocol === 'rest') expect(reply.headers.get('content-type')).toBe('application/problem+json');
      else expect(reply.code).toBe('Unavailable');
      expect(reply.status).toBe(protocol.startsWith('grpc') ? 200 : 503);
    }
    expect(new Set(refused.map(({ protocol }) => protocol))).toEqual(new Set(PROTOCOLS));
    const after = await tables.counts();
    expect(after.payments - before.payments).toBe(4);
    expect(after.charges - before.charges).toBe(4);

    // The keys of the refused calls are still unused.
    await untilInFlight(0);
    for (const protocol of PROTOCOLS) {
      const key = refused.find((one) => one.protocol === protocol)?.key;
      const reply = await clients.create(protocol, QUICK, headersOne(key));
      expect(isAccepted(reply)).toBe(true);
      expect(reply.headers.get('idempotent-replayed')).toBeNull();
    }
  });

  it('health checks are answered at the limit of calls in flight', async () => {
    const giveAnswers = provider.hold();
    const sent = sendMany(4, HELD);
    await untilInFlight(4);
    expect((await fetch(`${server.url}/healthz`)).status).toBe(200);
    expect((await fetch(`${server.url}/readyz`)).status).toBe(200);
    const grpcHealth = await fetch(`${server.url}/grpc.health.v1.Health/Check`, {
      method: 'POST',
      headers: { 'content-type': 'application/json' },
      body: '{}',
    });
    expect(await grpcHealth.json()).toEqual({ status: 'SERVING' });
    giveAnswers();
    for (const { reply } of sent) expect(isAccepted(await reply)).toBe(true);
  });

  it('a disconnected caller’s work counts toward the limit until it ends, and a repeated call gets the outcome', async () => {
    const giveAnswers = provider.hold();
    const leaving = apiClients(server.url);
    const keys = [randomUUID(), randomUUID(), randomUUID(), randomUUID()];
    const abort = new AbortController();
    const [first, second, ...rest] = keys;
    for (const key of rest) leaving.create('grpc', HELD, headersOne(key)).catch(() => {});
    for (const key of [first, second]) {
      fetch(`${server.url}/v1/payments`, {
        method: 'POST',
        headers: { 'content-type': 'application/json', ...headersOne(key) },
        body: JSON.stringify(HELD),
        signal: abort.signal,
      }).catch(() => {});
    }
    await untilInFlight(4);
    await expect
      .poll(async () => (await tables.counts()).payments, { interval: 20 })
      .toBeGreaterThanOrEqual(4);
    leaving.close();
    abort.abort();
    const refused = await clients.create('rest', QUICK, headersOne());
    expect(refused).toMatchObject({ status: 503, reason: 'SERVICE_UNAVAILABLE' });
    giveAnswers();
    await untilInFlight(0);
    for (const key of keys) {
      const reply = await clients.create('rest', HELD, headersOne(key));
      expect(JSON.parse(reply.record)).toMatchObject({ status: 'SUCCEEDED' });
      expect(reply.headers.get('idempotent-replayed')).toBe('true');
    }
  });

  it('calls with incomplete bodies and refused calls do not count toward the limit once they end', async () => {
    const endless = sendEndless(4);
    await untilReceiving(4);
    expect(await inFlight()).toBe(0);
    expect(await clients.create('grpc', QUICK, headersOne())).toMatchObject({ code: 'Unavailable' });
    endless.leave();
    await untilReceiving(0);

    for (const protocol of PROTOCOLS) {
      const noKeys = await clients.create(protocol, QUICK, {});
      expect(noKeys.reason).toBe('INVALID_CREDENTIALS');
      const unreadable = await clients.send(protocol, Buffer.from([0xff]), headersOne());
      expect(unreadable.reason).toBe('INVALID_REQUEST');
      const invalid = await clients.create(protocol, withField(QUICK, 'country', 'XX'), headersOne());
      expect(invalid.reason).toBe('INVALID_PARAMETERS');
    }
    await untilInFlight(0);
  });

  it('an rpc ends at its deadline, its work continues, and a repeated call gets the outcome', async () => {
    const giveAnswers = provider.hold();
    const keys = await Promise.all(
      RPC_PROTOCOLS.map(async (protocol) => {
        const key = randomUUID();
        const timeout = protocol.startsWith('grpc')
          ? { 'grpc-timeout': '3S' }
          : { 'connect-timeout-ms': '3000' };
        const reply = await clients.create(protocol, HELD, { ...headersOne(key), ...timeout });
        expect(reply).toMatchObject({
          code: 'DeadlineExceeded',
          reason: 'REQUEST_IN_PROGRESS',
          retryAfterS: 1,
        });
        return key;
      }),
    );
    expect(await inFlight()).toBe(RPC_PROTOCOLS.length);
    giveAnswers();
    await untilInFlight(0);
    for (const [i, protocol] of RPC_PROTOCOLS.entries()) {
      const repeat = await clients.create(protocol, HELD, headersOne(keys[i]));
      expect(JSON.parse(repeat.record)).toMatchObject({ status: 'SUCCEEDED' });
      expect(repeat.headers.get('idempotent-replayed')).toBe('true');
    }
  });
});

describe('a limit of two calls being processed', () => {
  beforeAll(() => open({ config: { maxAtWork: 2, accountSharePercent: 100 } }));
  afterAll(close);

  it('ten calls that wait for their provider are accepted although only two calls may be processed at once', async () => {
    const giveAnswers = provider.hold();
    const sent: ReturnType<typeof sendMany> = [];
    // One after another, so that no two are processed simultaneously.
    for (let i = 0; i < 10; i++) {
      sent.push(...sendMany(1, HELD));
      await untilInFlight(i + 1);
      await expect.poll(async () => (await tables.counts()).payments, { interval: 20 }).toBe(i + 1);
    }
    giveAnswers();
    const replies = await Promise.all(sent.map(({ reply }) => reply));
    expect(replies.filter(isAccepted)).toHaveLength(10);
  });

  it('calls are accepted while many others have incomplete bodies', async () => {
    const endless: ReturnType<typeof sendEndless>[] = [];
    for (let i = 1; i <= 6; i++) {
      endless.push(sendEndless(1));
      await untilReceiving(i);
    }
    for (const protocol of PROTOCOLS) {
      expect(isAccepted(await clients.create(protocol, QUICK, headersOne()))).toBe(true);
    }
    for (const one of endless) one.leave();
    await untilReceiving(0);
    await untilInFlight(0);
  });

  it('every call of a burst is either accepted or refused, and only accepted ones are stored', async () => {
    const before = await tables.counts();
    const replies = await Promise.all(sendMany(60, QUICK).map(({ reply }) => reply));
    const made = replies.filter(isAccepted).length;
    const refused = replies.filter(({ reason }) => reason === 'SERVICE_UNAVAILABLE').length;
    expect(made).toBeGreaterThanOrEqual(1);
    expect(refused).toBeGreaterThanOrEqual(1);
    expect(made + refused).toBe(60);
    const after = await tables.counts();
    expect(after.payments - before.payments).toBe(made);
    await untilInFlight(0);
  });
});

describe('a rate limit', () => {
  beforeAll(() => open({ config: { rateLimitPerS: 0.001, rateLimitBurst: PROTOCOLS.length } }));
  afterAll(close);

  it('an account above its rate is refused with 429 over every protocol, and other accounts are not', async () => {
    for (const protocol of PROTOCOLS) {
      expect(isAccepted(await clients.create(protocol, QUICK, headersOne()))).toBe(true);
    }
    const before = await tables.counts();
    for (const protocol of PROTOCOLS) {
      const reply = await clients.create(protocol, QUICK, headersOne());
      expect(reply).toMatchObject({ reason: 'RATE_LIMITED', record: '' });
      expect(reply.retryAfterS).toBeGreaterThan(900);
      expect(reply.retryAfterS).toBeLessThanOrEqual(1_000);
      expect(reply.headers.get('retry-after')).toBe(String(reply.retryAfterS));
      if (protocol === 'rest') expect(reply.status).toBe(429);
      else expect(reply.code).toBe('ResourceExhausted');
    }
    expect(await tables.counts()).toEqual(before);
    const all = { counted: PROTOCOLS.length, logged: PROTOCOLS.length };
    await expect.poll(() => refusedBy('rate')).toEqual(all);
    const other = withField(QUICK, 'account_id', ACCOUNT_TWO);
    for (const protocol of PROTOCOLS) {
      expect(isAccepted(await clients.create(protocol, other, headersTwo()))).toBe(true);
    }
  });
});

describe('a provider that does not respond', () => {
  const PAYMENTS = 56;
  beforeAll(() => open({ config: { accountSharePercent: 100 } }, { maxInFlight: 64 }));
  afterAll(close);

  it('payments above the limit of their connection get 503 over every protocol, and are counted', async () => {
    const giveAnswers = provider.hold();
    const sent = sendMany(PAYMENTS, held(walletPayment()));
    await expect.poll(async () => (await tables.counts()).payments).toBe(PAYMENTS);
    for (const protocol of PROTOCOLS) {
      const reply = await clients.create(protocol, walletPayment(), headersOne());
      expect(reply).toMatchObject({ reason: 'SERVICE_UNAVAILABLE', record: '' });
      expect(reply.headers.get('retry-after')).toMatch(/^[123]$/);
    }
    const all = { counted: PROTOCOLS.length, logged: PROTOCOLS.length };
    await expect.poll(() => refusedBy('on_their_way')).toEqual(all);
    expect(server.logLines.filter((line) => / failed"/.test(line))).toEqual([]);
    giveAnswers();
    const replies = await Promise.all(sent.map(({ reply }) => reply));
    expect(replies.filter(isAccepted)).toHaveLength(PAYMENTS);
    expect(isAccepted(await clients.create(PROTOCOLS[0], walletPayment(), headersOne()))).toBe(true);
  });
});
