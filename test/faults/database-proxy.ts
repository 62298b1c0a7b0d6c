import type { Gate } from './gate.ts';
import { type Link, startTcpProxy, type TcpProxy } from './tcp-proxy.ts';

/**
 * Starts a proxy in front of PostgreSQL that understands enough of its protocol (PostgreSQL, "Message Formats") to find
 * the named statement of a request and the end of its response. It consults the gate at `<statement>:request` and
 * `<statement>:response`. A held request has not run yet; a held, cut or refused response has run and committed.
 */
export function startDatabaseProxy(targetPort: number, gate: Gate): Promise<TcpProxy> {
  return startTcpProxy(targetPort, () => {
    const asked: string[] = [];
    return {
      requests: (link) => carryRequests(link, gate, asked),
      responses: (link) => carryResponses(link, gate, asked),
    };
  });
}

const SYNC_OR_QUERY = /[SQXp]/;

async function carryRequests({ client, server, wait }: Link, gate: Gate, asked: string[]): Promise<void> {
  let rest = Buffer.alloc(0);
  let started = false;
  let batch: Buffer[] = [];
  let statement = '';
  for await (const chunk of client) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      // The first message has no type before its length.
      const length = rest.length < 5 ? undefined : rest.readUInt32BE(started ? 1 : 0) + (started ? 1 : 0);
      if (length === undefined || rest.length < length) break;
      const message = rest.subarray(0, length);
      rest = rest.subarray(length);
      batch.push(message);
      if (started) statement ||= statementOf(message);
      const ends = !started || SYNC_OR_QUERY.test(String.fromCharCode(message[0] ?? 0));
      started = true;
      if (!ends) continue;
      await wait();
      const verdict = statement ? await gate.pass(`${statement}:request`) : 'pass';
      if (verdict === 'cut') return void client.resetAndDestroy();
      if (verdict === 'pass') {
        if (statement) asked.push(statement);
        server.write(Buffer.concat(batch));
      } else {
        client.write(Buffer.concat([errorResponse('ERROR', verdict.refuse), READY_FOR_QUERY]));
      }
      batch = [];
      statement = '';
    }
  }
}

/** Returns the statement's name, which is first in Parse and second in Bind. Variants of a statement share a name. */
function statementOf(message: Buffer): string {
  const type = String.fromCharCode(message[0] ?? 0);
  if (type !== 'P' && type !== 'B') return '';
  const [first = '', second = ''] = message.toString('latin1', 5).split('\0', 2);
  const name = (type === 'P' ? first : second).replace(/_(with_card|of_account)$/, '');
  return name === 'write_outcome' || name === 'write_moved_change' ? 'write_change' : name;
}

async function carryResponses({ client, server, wait }: Link, gate: Gate, asked: string[]): Promise<void> {
  let rest = Buffer.alloc(0);
  let response: Buffer[] = [];
  for await (const chunk of server) {
    rest = Buffer.concat([rest, chunk]);
    for (;;) {
      if (rest.length < 5 || rest.length < rest.readUInt32BE(1) + 1) break;
      const length = rest.readUInt32BE(1) + 1;
      response.push(rest.subarray(0, length));
      const isReady = String.fromCharCode(rest[0] ?? 0) === 'Z';
      rest = rest.subarray(length);
      // Messages outside a named statement (the handshake, a shutdown notice) pass unchanged.
      if (asked.length > 0 && !isReady) continue;
      await wait();
      const statement = isReady ? asked.shift() : undefined;
      const verdict = statement ? await gate.pass(`${statement}:response`) : 'pass';
      if (verdict === 'cut') return void client.resetAndDestroy();
      if (verdict !== 'pass') return void client.end(errorResponse('FATAL', verdict.refuse));
      client.write(Buffer.concat(response));
      response = [];
    }
  }
  if (response.length > 0) client.write(Buffer.concat(response));
}

function errorResponse(severity: 'ERROR' | 'FATAL', sqlstate: string): Buffer {
  const fields = `S${severity}\0V${severity}\0C${sqlstate}\0Mrefused by a test\0\0`;
  const error = Buffer.alloc(5 + fields.length);
  error.write('E');
  error.writeUInt32BE(4 + fields.length, 1);
  error.write(fields, 5, 'latin1');
  return error;
}

const READY_FOR_QUERY = Buffer.from('Z\0\0\0\x05I', 'latin1');
