import type { EventEmitter } from 'node:events';
import { type DestinationStream, pino } from 'pino';

/** A destination of log lines, which writes several at once. */
export type LogWriter = DestinationStream & {
  /**
   * Writes what is left; nothing may be logged afterwards.
   *
   * @returns false when it was not taken within the time.
   */
  end(timeoutMs: number): Promise<boolean>;
};

/** A chunk that a pipe takes whole, so that lines of several workers do not mix (POSIX, PIPE_BUF). */
const CHUNK_BYTES = 4_096;
/** A line waits no longer than that for others. */
const FLUSH_MS = 20;
/** Lines that wait for a reader who is slow; what comes on top is dropped, and counted. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const WARN = 40;
/** pino tells such a stream the level of each line. */
const WITH_LEVEL = Symbol.for('pino.metadata');

/**
 * Writes log lines to a file descriptor, several at once and beside the main thread: a payment never waits for whoever
 * reads the log. SIGKILL loses the lines of the last 20 ms at most, if they are read as fast as they are written; warnings
 * and errors are not kept back at all.
 */
export function createLogWriter({ fd = 1, maxWaitingBytes = MAX_WAITING_BYTES } = {}): LogWriter {
  const destination = pino.destination({
    dest: fd,
    sync: false,
    minLength: CHUNK_BYTES - 1,
    maxWrite: CHUNK_BYTES,
    maxLength: maxWaitingBytes,
  });
  let dropped = 0;
  let isBroken = false;
  let waitingBytes = 0;
  let flushing: NodeJS.Timeout | undefined;
  // Its own timer would write nothing fifty times a second.
  const flushSoon = () => {
    if (flushing || isBroken) return;
    flushing = setTimeout(() => {
      flushing = undefined;
      destination.flush();
    }, FLUSH_MS).unref();
  };
  const write = (line: string) => {
    waitingBytes += Buffer.byteLength(line);
    destination.write(line);
    flushSoon();
  };
  destination.on('write', (bytes: number) => {
    waitingBytes -= bytes;
  });
  destination.on('drop', (line: string) => {
    waitingBytes -= Buffer.byteLength(line);
    dropped += 1;
  });
  destination.on('drain', () => {
    // What is less than a chunk, and came while one was written.
    if (waitingBytes > 0) flushSoon();
    if (dropped === 0) return;
    const line = {
      level: WARN,
      time: Date.now(),
      dropped,
      msg: 'log lines were dropped, as nobody read them',
    };
    dropped = 0;
    write(`${JSON.stringify(line)}\n`);
  });
  // Whoever read the log is gone: pino drops what comes.
  destination.on('error', () => {
    isBroken = true;
  });
  const writer = {
    [WITH_LEVEL]: true,
    lastLevel: 0,
    write(line: string) {
      write(line);
      if (writer.lastLevel >= WARN) destination.flush();
    },
    async end(timeoutMs: number) {
      if (isBroken) return true;
      // Told by then how much was dropped.
      if (dropped > 0 && !(await occursInTime(destination, 'drain', timeoutMs))) return false;
      const closed = occursInTime(destination, 'close', timeoutMs);
      clearTimeout(flushing);
      destination.end();
      return closed;
    },
  };
  return writer;
}

/** Waits for an event. @returns false if neither it nor an error came within the time. */
function occursInTime(source: EventEmitter, event: string, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const tooLate = setTimeout(resolve, timeoutMs, false);
  source.once(event, () => resolve(true)).once('error', () => resolve(true));
  return promise.finally(() => clearTimeout(tooLate));
}
