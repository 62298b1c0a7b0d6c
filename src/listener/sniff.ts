import type { Socket } from 'node:net';

/** No HTTP/1.1 method begins with these letters, so that servers without HTTP/2 refuse the preface. */
const HTTP2_PREFACE_START = Buffer.from('PRI');

/**
 * Waits for a connection's first bytes, which distinguish HTTP/2 with prior knowledge (RFC 9113, section 3.3) from
 * HTTP/1.1, and puts them back. Closes the connection if they do not arrive within `timeoutMs`.
 */
export function sniff(socket: Socket, timeoutMs: number, decided: (isHttp2: boolean) => void): void {
  let seen: Buffer = Buffer.alloc(0);
  const giveUp = () => socket.destroy();
  const deadline = setTimeout(giveUp, timeoutMs).unref();
  const forget = () => clearTimeout(deadline);
  const onData = (chunk: Buffer) => {
    seen = seen.length === 0 ? chunk : Buffer.concat([seen, chunk]);
    const start = seen.subarray(0, HTTP2_PREFACE_START.length);
    const mayBeHttp2 = HTTP2_PREFACE_START.subarray(0, start.length).equals(start);
    if (mayBeHttp2 && start.length < HTTP2_PREFACE_START.length) return;
    forget();
    socket.off('data', onData).off('end', giveUp).off('close', forget);
    socket.pause();
    socket.unshift(seen);
    decided(mayBeHttp2);
    // The HTTP/1.1 listener needs a flowing socket to receive the bytes; an HTTP/2 session reads them itself.
    if (!mayBeHttp2) socket.resume();
  };
  socket.on('data', onData).once('end', giveUp).once('close', forget);
}
