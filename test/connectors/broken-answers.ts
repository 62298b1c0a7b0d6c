import type { JsonObject } from '@bufbuild/protobuf';
import { httpAnswer, type Script } from './scripted-server.ts';

/** Names of the responses that only the caller's deadline ends. */
export const ENDLESS_ANSWERS = new Set(['no response at all', 'a body that drips beyond the deadline']);

/** Every kind of broken response to a call with the given approval. */
export function brokenAnswers(approval: { status: number; body: JsonObject }): Record<string, Script> {
  const head = (length: number) =>
    `HTTP/1.1 201 Created\r\ncontent-type: application/json\r\ncontent-length: ${length}\r\n\r\n`;
  const html = '<!doctype html><h1>It works!</h1>';
  const rows: Record<string, Script> = {
    'no response at all': () => {},
    'a connection closed before the response': (socket) => socket.end(),
    'a connection reset before the response': (socket) => socket.resetAndDestroy(),
    "a connection reset after the response's head": (socket) =>
      socket.write(head(500), () => socket.resetAndDestroy()),
    'a body cut off': (socket) => socket.end(`${head(500)}{"id":`),
    'a body of unknown length cut off': (socket) => socket.end('HTTP/1.1 201 Created\r\n\r\n{"id":'),
    'a body that drips beyond the deadline': (socket) => {
      socket.write(head(500));
      const drip = setInterval(() => socket.write(' '), 20);
      socket.once('close', () => clearInterval(drip));
    },
    'a body of 10 MB': (socket) => socket.write(httpAnswer(201, ' '.repeat(10_000_000))),
    'an HTML page': (socket) => socket.write(httpAnswer(200, html, { 'content-type': 'text/html' })),
    'an HTML page with 403': (socket) => socket.write(httpAnswer(403, html, { 'content-type': 'text/html' })),
    'a response that is not HTTP': (socket) => socket.end('220 mail.example ESMTP\r\n\r\n'),
    'an empty body': (socket) => socket.write(httpAnswer(201, '')),
    'a JSON list': (socket) => socket.write(httpAnswer(201, '[]')),
    'JSON nested 30,000 deep': (socket) =>
      socket.write(httpAnswer(201, `{"a":${'['.repeat(30_000)}${']'.repeat(30_000)}}`)),
    'a body that is not UTF-8': (socket) => {
      socket.write(head(9));
      socket.write(Buffer.from([0x7b, 0x22, 0x61, 0x22, 0x3a, 0x22, 0xff, 0x22, 0x7d]));
    },
    'a redirect': (socket) => socket.write(httpAnswer(307, '', { location: '/elsewhere' })),
  };
  for (const status of [500, 502, 503]) {
    rows[`an approval with status ${status}`] = (socket) => {
      socket.write(httpAnswer(status, JSON.stringify(approval.body)));
    };
  }
  return rows;
}
