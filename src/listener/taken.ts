import type { ServerResponse } from 'node:http';
import type { Http2ServerResponse, ServerHttp2Stream } from 'node:http2';

/** The number of pieces that the peer has taken of each long response. */
const pieces = new WeakMap<object, number>();

/**
 * Notes that the peer has taken a piece of a long response, of at most 64 KiB. The limit on the time to take a response
 * then starts again: a long response may take as long as it likes, if it goes on.
 */
export function pieceTaken(response: ServerResponse): void {
  const { stream } = response as unknown as Partial<Http2ServerResponse>;
  const key = stream ?? response;
  pieces.set(key, piecesTaken(key) + 1);
}

/** Returns the number of pieces of a response that the peer has taken; 0 for a response that is sent as a whole. */
export function piecesTaken(response: ServerResponse | ServerHttp2Stream | object): number {
  return pieces.get(response) ?? 0;
}
