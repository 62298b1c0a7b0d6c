import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError, errorBody } from './api-error.ts';
import type { Behaviour, BehaviourAfter } from './behaviour.ts';
import type { LedgerEntry } from './ledger-entry.ts';

/** Responds to calls as no provider should, and tracks the calls that it leaves waiting. */
export type Misbehaviour = {
  /**
   * Misbehaves before anything is recorded, if the behaviour requires it.
   *
   * @returns true if the call has been handled.
   */
  before(behaviour: Behaviour, call: Exchange): boolean;
  /** Misbehaves in the response to a recorded call, if the behaviour requires it. @returns true if it did. */
  after(behaviour: Behaviour, call: Exchange, entry: LedgerEntry): boolean;
  /**
   * Waits, even if the client disconnects.
   *
   * @throws ApiError 503 if `release` is called first.
   */
  delay(delayMs: number): Promise<void>;
  /** Releases every waiting call, so that the application can close. */
  release(): void;
};

/** A call and its response. */
export type Exchange = { readonly request: FastifyRequest; readonly reply: FastifyReply };

const HANG_MS = 120_000;
const MAX_WAITING = 1_000;
const DRIP_MS = 100;
const HUGE_BYTES = 10 * 1024 * 1024;

/** Creates an application's misbehaviour. */
export function createMisbehaviour(): Misbehaviour {
  const { hang, delay, release } = createWaitingRoom();

  function before(behaviour: Behaviour, call: Exchange): boolean {
    if (behaviour.kind === 'hang_before') hang(call);
    else if (behaviour.kind === 'reset_before') reset(call);
    else if (behaviour.kind === 'error_before') fail(call);
    else if (behaviour.kind === 'refuse_before') refuse(call);
    else return false;
    return true;
  }

  function after(behaviour: Behaviour, call: Exchange, entry: LedgerEntry): boolean {
    if (!Object.hasOwn(AFTER, behaviour.kind)) return false;
    AFTER[behaviour.kind as BehaviourAfter](call, entry, hang);
    return true;
  }

  return { before, after, delay, release };
}

/** Responds to a call whose entry is recorded. */
type Answer = (call: Exchange, entry: LedgerEntry, hang: (call: Exchange) => void) => void;

const AFTER: Readonly<Record<BehaviourAfter, Answer>> = {
  hang_after: (call, _entry, hang) => hang(call),
  reset_after: reset,
  error_after: fail,
  html: ({ reply }) => {
    reply.code(200).type('text/html').send('<!doctype html><title>Welcome</title><h1>It works!</h1>');
  },
  truncated: (call, entry) => writeRaw(call, messageOf(entry).slice(0, -Math.ceil(entry.answer.length / 2))),
  huge: ({ reply }, entry) => {
    const padded = { ...JSON.parse(entry.answer), padding: 'x'.repeat(HUGE_BYTES) };
    reply.code(entry.answerStatus).send(padded);
  },
  slow_drip: (call, entry, hang) => {
    hang(call);
    drip(call, entry);
  },
  wrong_amount: ({ reply }, entry) => {
    reply.code(entry.answerStatus).send({ ...JSON.parse(entry.answer), amount: entry.amount + 1 });
  },
  wrong_currency: ({ reply }, entry) => {
    reply.code(entry.answerStatus).send({ ...JSON.parse(entry.answer), currency: 'XTS' });
  },
  duplicate_approval: (call, entry) => writeRaw(call, messageOf(entry).repeat(2)),
};

/** Tracks the waiting calls, up to a limit, until `release`. */
function createWaitingRoom() {
  const waiting = new Set<() => void>();
  let released = false;

  /** Keeps the socket open until the client disconnects, for two minutes, or until `release`. */
  function hang({ request, reply }: Exchange): void {
    reply.hijack();
    const { socket } = request.raw;
    if (released || waiting.size >= MAX_WAITING) {
      socket.destroy();
      return;
    }
    const letGo = () => socket.destroy();
    const timer = setTimeout(letGo, HANG_MS);
    waiting.add(letGo);
    reply.raw.once('close', () => {
      clearTimeout(timer);
      waiting.delete(letGo);
    });
  }

  function delay(delayMs: number): Promise<void> {
    return new Promise((resolve, reject) => {
      const interrupt = () => {
        clearTimeout(timer);
        waiting.delete(interrupt);
        reject(new ApiError(503, 'unavailable', 'shutting down; nothing was done'));
      };
      const timer = setTimeout(() => {
        waiting.delete(interrupt);
        resolve();
      }, delayMs);
      if (released || waiting.size >= MAX_WAITING) interrupt();
      else waiting.add(interrupt);
    });
  }

  function release(): void {
    released = true;
    for (const letGo of [...waiting]) letGo();
  }

  return { hang, delay, release };
}

function reset({ request, reply }: Exchange): void {
  reply.hijack();
  const { socket } = request.raw;
  // TLS and HTTP/2 sockets cannot be reset; destroying them comes closest.
  if (request.raw.httpVersionMajor === 1 && !('encrypted' in socket)) socket.resetAndDestroy();
  else socket.destroy();
}

/** Writes the response a byte at a time. */
function drip({ reply: { raw } }: Exchange, entry: LedgerEntry): void {
  raw.writeHead(entry.answerStatus, headersOf(entry));
  const bytes = Buffer.from(entry.answer);
  let sent = 0;
  const timer = setInterval(() => {
    if (sent < bytes.length) raw.write(bytes.subarray(sent, ++sent));
    else raw.end();
  }, DRIP_MS);
  raw.once('close', () => clearInterval(timer));
}

function fail({ reply }: Exchange): void {
  reply.code(500).send(errorBody('internal', 'something went wrong'));
}

function refuse({ reply }: Exchange): void {
  reply.code(429).send(errorBody('unavailable', 'calls are refused for now; nothing was done'));
}

function headersOf(entry: LedgerEntry): Record<string, string> {
  return {
    'content-type': 'application/json',
    'content-length': String(Buffer.byteLength(entry.answer)),
  };
}

/** Returns a response as an HTTP/1.1 message. */
function messageOf(entry: LedgerEntry): string {
  const headers = Object.entries(headersOf(entry)).map(([name, value]) => `${name}: ${value}\r\n`);
  return `HTTP/1.1 ${entry.answerStatus} Answer\r\n${headers.join('')}\r\n${entry.answer}`;
}

/** Writes a raw response that no HTTP library would produce. HTTP/2 cannot carry it, so the connection is destroyed. */
function writeRaw({ request, reply }: Exchange, message: string): void {
  reply.hijack();
  if (request.raw.httpVersionMajor === 1) request.raw.socket.end(message);
  else request.raw.socket.destroy();
}
