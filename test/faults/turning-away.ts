import { createServer, request as httpRequest, type IncomingMessage, type ServerResponse } from 'node:http';
import type { AddressInfo } from 'node:net';
import type { Provider } from './providers/provider.ts';

/** A provider that turns away every new payment, and answers every other call. */
export type TurningAway = { readonly port: number; close(): Promise<void> };

/** The refusal in the form of every provider. */
const REFUSAL = {
  ...{ status: 429, errorCode: '000', errorType: 'security', message: 'too many requests' },
  error: { type: 'rate_limit_error', code: 'unavailable', message: 'too many requests' },
};

/** Starts a proxy in front of a provider that refuses payments with 429 and passes everything else on. */
export async function startTurningAway(targetPort: number, callOf: Provider['callOf']): Promise<TurningAway> {
  const server = createServer(async (incoming, response) => {
    const { method, url, rawHeaders } = incoming;
    const chunks: Buffer[] = [];
    for await (const chunk of incoming) chunks.push(chunk as Buffer);
    const body = Buffer.concat(chunks);
    if (callOf(`${method} ${url} ${rawHeaders.join(' ')}\n${body}`) !== 'charge') {
      return passOn(targetPort, incoming, body, response);
    }
    response.writeHead(429, { 'content-type': 'application/json' }).end(JSON.stringify(REFUSAL));
  });
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve));
  return {
    port: (server.address() as AddressInfo).port,
    close: () =>
      new Promise((resolve) => {
        server.close(() => resolve());
        server.closeAllConnections();
      }),
  };
}

function passOn(port: number, incoming: IncomingMessage, body: Buffer, response: ServerResponse): void {
  const { method, url, headers } = incoming;
  const passed = httpRequest({ host: '127.0.0.1', port, method, path: url, headers, agent: false });
  passed.once('response', (answer) => {
    response.writeHead(answer.statusCode ?? 0, answer.headers);
    answer.pipe(response);
  });
  passed.once('error', () => response.destroy());
  passed.end(body);
}
