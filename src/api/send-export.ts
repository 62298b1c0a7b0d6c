import type { Http2ServerResponse } from 'node:http2';
import type { FastifyReply, FastifyRequest } from 'fastify';
import { auditExport } from '#src/exports/audit-export.ts';
import type { ExportRequest } from '#src/exports/export-request.ts';
import { openExport } from '#src/exports/open-export.ts';
import { pieceTaken } from '#src/listener/taken.ts';
import { ServiceError } from '#src/service-error.ts';
import { createSlots } from '#src/slots.ts';
import type { Database } from '#src/store/engine/database.ts';
import { INSTALLATION } from '#src/store/tables/audit-log.ts';

/** Limit on the exports that one process writes at once, and on those of one account or of all accounts together. */
const MAX_AT_ONCE = 8;
const MAX_OF_ACCOUNT = 2;
/** Seconds after which a refused export is tried again. */
const RETRY_AFTER_S = 30;
/** Error code INTERNAL_ERROR (RFC 9113, section 7). */
const INTERNAL_ERROR = 2;

/** The caller who asks for a file. */
export type ExportCaller = {
  /** For the audit log. */
  readonly actor: string;
  /** true if the caller may have payers' personal data: not for a key that only reads. */
  readonly mayIncludePayer: boolean;
};

/**
 * Sends a file as it is read, as fast as the client takes it. The audit log has who asked for what, and the rows and sums
 * of a file that was sent to its end.
 *
 * A file that breaks off is never taken for a whole one: over HTTP/1.1 the connection ends without the final chunk, over
 * HTTP/2 the stream is reset.
 *
 * @throws ServiceError AUTHORIZATION_REQUIRED for personal data that the caller may not have; RATE_LIMITED while too many
 *   exports are written; INVALID_REQUEST over HTTP/1.0; those of openExport.
 */
export type SendExport = (
  request: FastifyRequest,
  reply: FastifyReply,
  asked: ExportRequest,
  caller: ExportCaller,
) => Promise<void>;

/** Thrown when the client disconnects. */
class ClientLeftError extends Error {}

/**
 * Creates the function that sends files.
 *
 * @param track delays a shutdown until the files being written have ended.
 */
export function createSendExport(database: Database, track: (work: Promise<unknown>) => unknown): SendExport {
  const slots = createSlots(MAX_AT_ONCE);
  return async (request, reply, asked, caller) => {
    requireMayExport(request, asked, caller);
    const group = asked.accountId ?? INSTALLATION;
    const release = slots.take([{ group, fraction: MAX_OF_ACCOUNT / MAX_AT_ONCE }]);
    if (!release) {
      const message = `${MAX_OF_ACCOUNT} exports of an account, or ${MAX_AT_ONCE} in all, are already being written; retry when one has ended`;
      throw new ServiceError('RATE_LIMITED', message, { retryAfterS: RETRY_AFTER_S });
    }
    const work = sendAll(database, reply, { asked, caller }).finally(release);
    track(work);
    await work.catch((error) => {
      // Before the first byte, the caller gets the error.
      if (!reply.raw.headersSent) throw error;
      if (!(error instanceof ClientLeftError)) request.log.error({ err: error }, 'an export broke off');
    });
  };
}

function requireMayExport({ raw }: FastifyRequest, asked: ExportRequest, caller: ExportCaller): void {
  if (asked.includesPayer && !caller.mayIncludePayer) {
    const message = 'include: a key that only reads gets no personal data; leave it out, or use another key';
    throw new ServiceError('AUTHORIZATION_REQUIRED', message);
  }
  if (raw.httpVersion === '1.0') {
    const message =
      'HTTP/1.0 cannot show that a file broke off: use HTTP/1.1 or HTTP/2, also between a proxy and the service';
    throw new ServiceError('INVALID_REQUEST', message);
  }
}

type Asked = { readonly asked: ExportRequest; readonly caller: ExportCaller };

async function sendAll(database: Database, reply: FastifyReply, { asked, caller }: Asked): Promise<void> {
  const file = await openExport(database, asked);
  const audit = auditExport(database, file, { asked, actor: caller.actor });
  await audit.begun();
  // Read before the headers are sent, so that a failure to read anything is an error of its own.
  const pieces = file.pieces();
  let next = await pieces.next();
  reply.hijack();
  const { raw } = reply;
  try {
    raw.writeHead(200, {
      ...(reply.getHeaders() as Record<string, string>),
      'content-type': 'text/csv; charset=utf-8; header=present',
      'content-disposition': `attachment; filename="${file.fileName}"`,
    });
    for (; !next.done; next = await pieces.next()) await sendPiece(raw, next.value);
    // A whole file has its entry.
    await audit.ended();
    raw.end();
  } catch (error) {
    await pieces.return();
    breakOff(raw);
    await audit.brokeOff(error instanceof ClientLeftError ? 'the client disconnected' : 'it failed');
    throw error;
  }
}

/** Sends a piece. @throws ClientLeftError if the client disconnects, or takes too long (taken.ts). */
function sendPiece(raw: FastifyReply['raw'], piece: string): Promise<void> {
  return new Promise((resolve, reject) => {
    const onClose = () => reject(new ClientLeftError('the client disconnected'));
    if (raw.destroyed || raw.closed) return onClose();
    raw.once('close', onClose);
    raw.write(piece, (error) => {
      raw.off('close', onClose);
      if (error) return onClose();
      pieceTaken(raw);
      resolve();
    });
  });
}

/** Ends a response so that its client sees that it is not whole. */
function breakOff(raw: FastifyReply['raw']): void {
  const { stream } = raw as unknown as Partial<Http2ServerResponse>;
  if (stream) stream.close(INTERNAL_ERROR);
  else raw.destroy();
}
