import type { EventEmitter } from 'node:events';
import { type DestinationStream, type Logger, type LoggerOptions, pino, stdTimeFunctions } from 'pino';

/** A destination for log lines that writes several lines at once. */
export type LogWriter = DestinationStream & {
  /**
   * Writes the remaining lines. Do not log anything afterwards.
   *
   * @returns false if the reader did not accept them in time.
   */
  end(timeoutMs: number): Promise<boolean>;
};

/**
 * Size up to which a pipe accepts a chunk as a whole, so that the lines of several workers do not mix (POSIX,
 * PIPE_BUF).
 */
const CHUNK_BYTES = 4_096;
/** Maximum time that a line waits for others. */
const FLUSH_MS = 20;
/** Maximum number of bytes that wait for a slow reader. Any further line is dropped and counted. */
const MAX_WAITING_BYTES = 8 * 1024 * 1024;
const WARN = 40;
/** Makes pino give a stream the level of each line. */
const WITH_LEVEL = Symbol.for('pino.metadata');

/**
 * Writes log lines to a file descriptor, in batches and outside the main thread, so that a payment never waits for the
 * reader of the log. SIGKILL loses at most the lines of the last 20 ms, if the reader keeps up; warnings and errors are
 * written at once.
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
  // pino's own timer would run fifty times a second with nothing to flush.
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
    // The lines that arrived during the write fill less than a chunk.
    if (waitingBytes > 0) flushSoon();
    if (dropped === 0) return;
    const line = {
      level: WARN,
      time: new Date().toISOString(),
      dropped,
      msg: 'log lines were dropped: the reader of the log is too slow',
    };
    dropped = 0;
    write(`${JSON.stringify(line)}\n`);
  });
  // The reader of the log has gone, and pino drops further lines.
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
      // After the drain, the log shows how many lines were dropped.
      if (dropped > 0 && !(await occursInTime(destination, 'drain', timeoutMs))) return false;
      const closed = occursInTime(destination, 'close', timeoutMs);
      clearTimeout(flushing);
      destination.end();
      return closed;
    },
  };
  return writer;
}

/** Creates a log, whose lines have ISO 8601 times in UTC. */
export function createLog(options: LoggerOptions, destination: DestinationStream): Logger {
  return pino({ ...options, timestamp: stdTimeFunctions.isoTime }, destination);
}

/** Waits for an event. @returns false if neither the event nor an error occurred in time. */
function occursInTime(source: EventEmitter, event: string, timeoutMs: number): Promise<boolean> {
  const { promise, resolve } = Promise.withResolvers<boolean>();
  const tooLate = setTimeout(resolve, timeoutMs, false);
  source.once(event, () => resolve(true)).once('error', () => resolve(true));
  return promise.finally(() => clearTimeout(tooLate));
}
