import net from 'node:net';
import { afterRunning } from './running-time.ts';

/** The response to raw bytes over a socket. */
export type RawReply = {
  /** Everything received, one character per byte. */
  readonly received: string;
  /** True if the server closed the connection by itself or responded completely within its time. */
  readonly ended: boolean;
};

const QUIET_MS = 150;
const BOUND_MS = 4_000;

/**
 * Writes bytes to a new connection and reads until the server closes it. If the server waits for more, the client ends
 * its side after a pause.
 */
export function rawExchange(url: string, bytes: Uint8Array): Promise<RawReply> {
  const { hostname, port } = new URL(url);
  return new Promise((resolve) => {
    const socket = net.connect({ host: hostname, port: Number(port), allowHalfOpen: true });
    let received = '';
    let ended = true;
    let quiet: NodeJS.Timeout | undefined;
    const waitOn = () => {
      clearTimeout(quiet);
      quiet = setTimeout(() => socket.end(), QUIET_MS);
    };
    const callOff = afterRunning(BOUND_MS, () => {
      ended = false;
      socket.destroy();
    });
    socket.on('data', (chunk) => {
      received += chunk.toString('latin1');
      waitOn();
    });
    socket.on('end', () => socket.end());
    // The server may reset a connection whose bytes it rejects.
    socket.on('error', () => {});
    socket.on('close', () => {
      clearTimeout(quiet);
      callOff();
      resolve({ received, ended });
    });
    socket.write(bytes);
    waitOn();
  });
}

/** Returns the statuses of the received HTTP/1.1 responses. */
export function http1Statuses({ received }: RawReply): number[] {
  return [...received.matchAll(/^HTTP\/1\.1 (\d{3}) /gm)].map(([, status]) => Number(status));
}

/** A frame of RFC 9113, section 4.1. */
export function h2Frame(type: number, flags: number, streamId: number, payload: Uint8Array): Buffer {
  const head = Buffer.alloc(9);
  head.writeUIntBE(payload.length & 0xffffff, 0, 3);
  head.writeUInt8(type, 3);
  head.writeUInt8(flags, 4);
  head.writeUInt32BE(streamId, 5);
  return Buffer.concat([head, payload]);
}

const DATA = 0;
const HEADERS = 1;
const SETTINGS = 4;
const END_STREAM = 1;
const END_HEADERS = 4;

/** Returns the bytes that an HTTP/2 client with prior knowledge sends for one request, whatever its headers contain. */
export function h2Request(headers: readonly (readonly [string, string])[], body: Uint8Array): Buffer {
  return Buffer.concat([
    Buffer.from('PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n'),
    h2Frame(SETTINGS, 0, 0, Buffer.alloc(0)),
    h2Frame(HEADERS, END_HEADERS, 1, Buffer.concat(headers.map(literal))),
    ...chunks(body, 16_384).map((chunk) => h2Frame(DATA, 0, 1, chunk)),
    h2Frame(DATA, END_STREAM, 1, Buffer.alloc(0)),
  ]);
}

/** A header field according to RFC 7541, section 6.2.2: literal, without indexing, uncompressed. */
function literal([name, value]: readonly [string, string]): Buffer {
  return Buffer.concat([
    Buffer.of(0),
    prefixed(Buffer.from(name, 'latin1')),
    prefixed(Buffer.from(value, 'latin1')),
  ]);
}

/** A length as an RFC 7541 (section 5.1) integer with a 7-bit prefix, followed by the bytes. */
function prefixed(bytes: Buffer): Buffer {
  if (bytes.length < 127) return Buffer.concat([Buffer.of(bytes.length), bytes]);
  const length = [127];
  let rest = bytes.length - 127;
  for (; rest > 127; rest >>>= 7) length.push((rest & 127) | 128);
  return Buffer.concat([Buffer.of(...length, rest), bytes]);
}

function chunks(bytes: Uint8Array, size: number): Uint8Array[] {
  const parts: Uint8Array[] = [];
  for (let at = 0; at < bytes.length; at += size) parts.push(bytes.subarray(at, at + size));
  return parts;
}

/** Returns the statuses of the received HTTP/2 responses, but only those in HPACK's static table. */
export function h2Statuses({ received }: RawReply): number[] {
  const bytes = Buffer.from(received, 'latin1');
  const statuses: number[] = [];
  for (let at = 0; at + 9 <= bytes.length; ) {
    const length = bytes.readUIntBE(at, 3);
    const first = bytes[at + 9] ?? 0;
    if (bytes[at + 3] === HEADERS) statuses.push(STATIC_STATUSES.get(first) ?? 0);
    at += 9 + length;
  }
  return statuses;
}

const STATIC_STATUSES = new Map([
  [0x88, 200],
  [0x89, 204],
  [0x8a, 206],
  [0x8b, 304],
  [0x8c, 400],
  [0x8d, 404],
  [0x8e, 500],
]);
