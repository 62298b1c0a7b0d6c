import type { FastifyReply, FastifyRequest } from 'fastify';
import { ApiError } from './api-error.ts';

/** The calls that the simulated provider leaves waiting. */
export type Misbehaviour = {
  /** Never answers. The socket is let go when the client leaves, after two minutes, or at `release`. */
  hang(request: FastifyRequest, reply: FastifyReply): void;
  /** Resets the connection instead of answering. */
  reset(request: FastifyRequest, reply: FastifyReply): void;
  /**
   * Waits, whether the client stays or leaves.
   *
   * @throws ApiError 503 when `release` comes first.
   */
  delay(delayMs: number): Promise<void>;
  /** Lets go of everything, so that the application can close. */
  release(): void;
};

const HANG_MS = 120_000;
const MAX_WAITING = 1_000;

export function createMisbehaviour(): Misbehaviour {
  const waiting = new Set<() => void>();
  let released = false;

  function hang(request: FastifyRequest, reply: FastifyReply): void {
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

  function reset(request: FastifyRequest, reply: FastifyReply): void {
    reply.hijack();
    const { socket } = request.raw;
    // TLS and HTTP/2 sockets know no reset; breaking off is what comes closest.
    if (request.raw.httpVersionMajor === 1 && !('encrypted' in socket)) socket.resetAndDestroy();
    else socket.destroy();
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

  return { hang, reset, delay, release };
}
