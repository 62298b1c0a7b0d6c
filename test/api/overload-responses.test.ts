import http2 from 'node:http2';
import net from 'node:net';
import { text } from 'node:stream/consumers';
import { afterAll, beforeAll, expect, it } from 'vitest';
import { PROTOCOLS } from '../support/api-clients.ts';
import {
  clients,
  close,
  open,
  QUICK,
  sendEndless,
  server,
  untilInFlight,
  untilReceiving,
} from '../support/overloaded-service.ts';
import { headersOne } from '../support/payment-requests.ts';

beforeAll(() => open({ config: { maxInFlight: 1, accountSharePercent: 100 } }));
afterAll(close);

const PAYMENTS = '/v1/payments';
const CREATE_PAYMENT = '/payments.v1.PaymentService/CreatePayment';
const RPCS = PROTOCOLS.length - 1;

/** Each brings the service to a limit: `in_flight` refuses calls on arrival, `receiving` after their keys are read. */
const LIMITS = {
  in_flight: async () => {
    // A client that does not read its response.
    const session = http2.connect(server.url, { settings: { initialWindowSize: 0 } });
    session.on('error', () => {});
    session
      .request(headers())
      .on('error', () => {})
      .end(JSON.stringify(QUICK));
    await untilInFlight(1);
    return async () => {
      session.destroy();
      await untilInFlight(0);
    };
  },
  receiving: async () => {
    const endless = sendEndless(1);
    await untilReceiving(1);
    return async () => {
      endless.leave();
      await untilReceiving(0);
    };
  },
} as const;

it.each(['in_flight', 'receiving'] as const)(
  'calls refused because of the limit %s are logged as a total and counted individually',
  async (limit) => {
    const before = await metrics();
    const from = server.logLines.length;
    const leave = await LIMITS[limit]();
    for (const protocol of PROTOCOLS) {
      expect((await clients.create(protocol, QUICK, headersOne())).reason).toBe('SERVICE_UNAVAILABLE');
    }
    const logged = () => server.logLines.slice(from).map((line) => JSON.parse(line));
    const sum = (route: string) =>
      logged()
        .filter((line) => line.msg === 'calls refused' && line.limit === limit && line.route === route)
        .reduce((calls, line) => calls + line.calls, 0);
    await expect.poll(() => sum(PAYMENTS)).toBe(1);
    await expect.poll(() => sum(CREATE_PAYMENT)).toBe(RPCS);
    const ofTheirOwn = ({ msg, route, status }: Record<string, unknown>) =>
      msg === 'request' && (status === 503 || route === CREATE_PAYMENT);
    expect(logged().filter(ofTheirOwn)).toEqual([]);

    const after = await metrics();
    const more = (sample: string) => after(sample) - before(sample);
    expect(more(`calls_refused_total{limit="${limit}"}`)).toBe(PROTOCOLS.length);
    expect(more(`request_seconds_count{route="${PAYMENTS}",status="503"}`)).toBe(1);
    await leave();
  },
);

it.each(['in_flight', 'receiving'] as const)(
  'a call refused because of the limit %s gets the complete error over HTTP/1.1 and HTTP/2 before its body arrives',
  async (limit) => {
    const leave = await LIMITS[limit]();
    const session = http2.connect(server.url);
    for (const refused of [await overHttp1(), await overHttp2(session)]) {
      const { 'x-request-id': id, 'retry-after': retryAfter, ...others } = refused.headers;
      expect(refused.status).toBe(503);
      expect(retryAfter).toMatch(/^[123]$/);
      expect(id).toMatch(/^[0-9a-f]{24}$/);
      expect(others).toMatchObject({
        'content-type': 'application/problem+json',
        'content-length': String(refused.body.length),
        'cache-control': 'no-store',
        'x-content-type-options': 'nosniff',
      });
      const detail = 'the service is overloaded; nothing was sent; retry later';
      expect(JSON.parse(refused.body)).toEqual({
        type: 'about:blank',
        title: 'Service unavailable',
        status: 503,
        detail,
        code: 'SERVICE_UNAVAILABLE',
        messages: [detail],
        errors: [],
        request_id: id,
      });
    }
    session.destroy();
    await leave();
  },
);

function headers() {
  return { ':method': 'POST', ':path': PAYMENTS, 'content-type': 'application/json', ...headersOne() };
}

type Refused = { status: unknown; headers: Record<string, unknown>; body: string };

/** Sends the head, and the body after the response. The connection must then serve another request. */
async function overHttp1(): Promise<Refused> {
  const { hostname, port } = new URL(server.url);
  const socket = net.connect(Number(port), hostname).setEncoding('latin1');
  let received = '';
  socket.on('data', (chunk) => {
    received += chunk;
  });
  const lines = Object.entries(headersOne()).map(([name, value]) => `${name}: ${value}\r\n`);
  const head = `host: a\r\ncontent-type: application/json\r\ncontent-length: 2\r\n${lines.join('')}`;
  socket.write(`POST ${PAYMENTS} HTTP/1.1\r\n${head}\r\n`);
  await expect.poll(() => received).toMatch(/\}$/);
  const [top = '', body = ''] = received.split('\r\n\r\n');
  received = '';
  socket.write('{}GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n');
  await expect.poll(() => received).toMatch(/^HTTP\/1\.1 200 /);
  socket.destroy();
  const [statusLine = '', ...fields] = top.split('\r\n');
  return {
    status: Number(statusLine.split(' ')[1]),
    headers: Object.fromEntries(fields.map((field) => field.split(': '))),
    body,
  };
}

async function overHttp2(session: http2.ClientHttp2Session): Promise<Refused> {
  const stream = session.request(headers());
  const response = new Promise<http2.IncomingHttpHeaders>((resolve) => stream.once('response', resolve));
  const body = await text(stream);
  stream.end('{}');
  const { ':status': status, ...rest } = await response;
  return { status, headers: rest, body };
}

/** Reads the service's metrics. @returns a function that returns the value of a sample. */
async function metrics(): Promise<(sample: string) => number> {
  const lines = (await (await fetch(`${server.url}/metrics`)).text()).split('\n');
  return (sample) => Number(lines.find((line) => line.startsWith(`${sample} `))?.split(' ')[1] ?? 0);
}
