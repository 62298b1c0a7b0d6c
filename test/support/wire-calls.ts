import type { WireCall } from './hostile-calls.ts';
import { h2Request } from './raw-exchange.ts';

/** Returns the bytes of a call in HTTP/1.1 (RFC 9112), including its faults. */
export function h1Request({ method, path, headers, body, framing }: WireCall): Buffer {
  const lines = [`${method} ${path} HTTP/1.1`, ...headers.map(([name, value]) => `${name}: ${value}`)];
  if (framing === 'length' || framing === 'both') lines.push(`content-length: ${body.length}`);
  if (framing === 'short') lines.push(`content-length: ${body.length >> 1}`);
  if (framing === 'long') lines.push(`content-length: ${body.length + 10}`);
  const chunked = framing === 'chunked' || framing === 'both';
  if (chunked) lines.push('transfer-encoding: chunked');
  const framed = chunked ? [`${body.length.toString(16)}\r\n`, body, '\r\n0\r\n\r\n'] : [body];
  return Buffer.concat(
    [`${lines.join('\r\n')}\r\n\r\n`, ...framed].map((part) =>
      typeof part === 'string' ? Buffer.from(part, 'latin1') : part,
    ),
  );
}

const CONNECTION_HEADERS = new Set(['connection', 'transfer-encoding', 'upgrade', 'host']);

/** Returns the bytes of a call in HTTP/2 (RFC 9113). */
export function h2Call({ method, path, headers, body }: WireCall): Buffer {
  return h2Request(
    [
      [':method', method],
      [':path', path],
      [':scheme', 'http'],
      [':authority', 'localhost'],
      ...headers.filter(([name, value]) => !CONNECTION_HEADERS.has(name) || value === ' '),
    ],
    body,
  );
}
