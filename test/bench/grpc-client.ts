import net from 'node:net';
import {
  KEY_PLACEHOLDER,
  PUBLIC_KEY,
  patch,
  protobufRequest,
  SECRET_KEY,
  type Template,
  template,
} from './request.ts';
import type { Client } from './rest-client.ts';

/**
 * A gRPC client with one HTTP/2 connection and prebuilt frames (RFC 9113, RFC 7541). grpc-js and node:http2 need
 * several times the CPU time of the REST client, which would make the comparison unfair.
 */
export async function openGrpcClient(port: number, slots: number, runId: string): Promise<Client> {
  const socket = net.connect({ port, host: '127.0.0.1', noDelay: true });
  await new Promise((resolve, reject) => socket.once('connect', resolve).once('error', reject));
  const calls = new Map<number, { answerBytes: number; readonly done: (ok: boolean) => void }>();
  const templates = Array.from({ length: slots }, () => callTemplate(indexedHeaders()));
  const waiting: CallTemplate[] = [];
  let lastStream = -1;
  let sendWindow = INITIAL_WINDOW_BYTES;
  let unacknowledged = 0;

  /** Sends as much as the server's window allows, in the order of the streams. */
  function flush(): void {
    for (let next = waiting[0]; next && next.dataBytes <= sendWindow; next = waiting[0]) {
      sendWindow -= next.dataBytes;
      socket.write(next.bytes);
      waiting.shift();
    }
  }

  function finish(stream: number, ok: boolean): void {
    const call = calls.get(stream);
    calls.delete(stream);
    // An error has no message; the comparison with the database checks the content of messages.
    call?.done(ok && call.answerBytes > MIN_ANSWER_BYTES);
  }

  readFrames(socket, (type, flags, stream, payload) => {
    if (type === DATA) {
      const call = calls.get(stream);
      if (call) call.answerBytes += payload.length;
      unacknowledged += payload.length;
      if (unacknowledged > RECEIVE_WINDOW_BYTES / 2) {
        socket.write(frame(WINDOW_UPDATE, 0, 0, uint32(unacknowledged)));
        unacknowledged = 0;
      }
    } else if (type === RST_STREAM) finish(stream, false);
    else if (type === SETTINGS && !(flags & ACK)) socket.write(frame(SETTINGS, ACK, 0));
    else if (type === PING && !(flags & ACK)) socket.write(frame(PING, ACK, 0, payload));
    else if (type === WINDOW_UPDATE && stream === 0) {
      sendWindow += payload.readUInt32BE();
      flush();
    }
    if ((type === HEADERS || type === DATA) && flags & END_STREAM) finish(stream, true);
  });
  socket.on('error', () => {});
  socket.on('close', () => {
    for (const stream of [...calls.keys()]) finish(stream, false);
  });
  socket.write(PREFACE);

  return {
    send(slot, sequence, done) {
      if (!socket.writable) {
        setImmediate(done, false);
        return;
      }
      const isFirst = lastStream === -1;
      lastStream += 2;
      const call = isFirst ? callTemplate(literalHeaders(port)) : (templates[slot] as CallTemplate);
      call.bytes.writeUInt32BE(lastStream, 5);
      call.bytes.writeUInt32BE(lastStream, call.dataAt + 5);
      patch(call, runId, sequence);
      calls.set(lastStream, { answerBytes: 0, done });
      waiting.push(call);
      flush();
    },
    close: () => socket.destroy(),
  };
}

const [DATA, HEADERS, RST_STREAM, SETTINGS, PING, WINDOW_UPDATE] = [0, 1, 3, 4, 6, 8];
const [ACK, END_STREAM, END_HEADERS] = [1, 1, 4];
const INITIAL_WINDOW_BYTES = 65_535;
const RECEIVE_WINDOW_BYTES = 2 ** 31 - 1;
const MIN_ANSWER_BYTES = 500;
const SETTINGS_INITIAL_WINDOW_SIZE = 4;

const PREFACE = Buffer.concat([
  Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
  frame(
    SETTINGS,
    0,
    0,
    Buffer.concat([Buffer.from([0, SETTINGS_INITIAL_WINDOW_SIZE]), uint32(RECEIVE_WINDOW_BYTES)]),
  ),
  frame(WINDOW_UPDATE, 0, 0, uint32(RECEIVE_WINDOW_BYTES - INITIAL_WINDOW_BYTES)),
]);

type CallTemplate = Template & { readonly dataAt: number; readonly dataBytes: number };

/** The HEADERS and DATA frames of a call. In DATA, the message follows gRPC's five-byte prefix. */
function callTemplate(headers: Buffer): CallTemplate {
  const message = protobufRequest();
  const data = Buffer.concat([Buffer.from([0]), uint32(message.length), message]);
  const head = frame(
    HEADERS,
    END_HEADERS,
    0,
    Buffer.concat([headers, literal('x-idempotency-key', KEY_PLACEHOLDER)]),
  );
  const bytes = Buffer.concat([head, frame(DATA, END_STREAM, 0, data)]);
  return { ...template(bytes), dataAt: head.length, dataBytes: data.length };
}

// RFC 7541, appendix A: ":method: POST" and ":scheme: http" of the static table.
const STATIC_HEADERS = Buffer.from([0x83, 0x86]);
const FIRST_DYNAMIC_INDEX = 62;

function constantHeaders(port: number): [string, string][] {
  return [
    [':path', '/payments.v1.PaymentService/CreatePayment'],
    [':authority', `127.0.0.1:${port}`],
    ['content-type', 'application/grpc+proto'],
    ['te', 'trailers'],
    ['user-agent', 'bench'],
    ['public-api-key', PUBLIC_KEY],
    ['private-secret-key', SECRET_KEY],
  ];
}

/** The headers of the first call, which the server adds to its table ("literal with incremental indexing"). */
function literalHeaders(port: number): Buffer {
  const literals = constantHeaders(port).map(([name, value]) => literal(name, value, 0x40));
  return Buffer.concat([STATIC_HEADERS, ...literals]);
}

/** The headers of every later call: one byte each. */
function indexedHeaders(): Buffer {
  const count = constantHeaders(0).length;
  const indexes = Array.from({ length: count }, (_, i) => 0x80 | (FIRST_DYNAMIC_INDEX + count - 1 - i));
  return Buffer.concat([STATIC_HEADERS, Buffer.from(indexes)]);
}

/** Names and values are shorter than 127 bytes, so a length is one byte. */
function literal(name: string, value: string, kind = 0): Buffer {
  return Buffer.concat([
    Buffer.from([kind, name.length]),
    Buffer.from(name),
    Buffer.from([value.length]),
    Buffer.from(value),
  ]);
}

function frame(type: number, flags: number, stream: number, payload: Buffer = Buffer.alloc(0)): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(stream, 5);
  return Buffer.concat([head, payload]);
}

function uint32(value: number): Buffer {
  const bytes = Buffer.alloc(4);
  bytes.writeUInt32BE(value);
  return bytes;
}

function readFrames(
  socket: net.Socket,
  onFrame: (type: number, flags: number, stream: number, payload: Buffer) => void,
): void {
  let received: Buffer = Buffer.alloc(0);
  socket.on('data', (chunk: Buffer) => {
    received = received.length === 0 ? chunk : Buffer.concat([received, chunk]);
    let at = 0;
    while (received.length - at >= 9) {
      const end = at + 9 + received.readUIntBE(at, 3);
      if (end > received.length) break;
      const stream = received.readUInt32BE(at + 5) & 0x7fffffff;
      onFrame(received[at + 3] as number, received[at + 4] as number, stream, received.subarray(at + 9, end));
      at = end;
    }
    received = received.subarray(at);
  });
}
