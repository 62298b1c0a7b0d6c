import { createHash } from 'node:crypto';
import { promisify } from 'node:util';
import { gzip } from 'node:zlib';
import type { FastifyInstance, FastifyReply, FastifyRequest } from 'fastify';

/** A file in memory, ready to be served. */
export type StaticFile = {
  readonly type: string;
  readonly plain: Buffer;
  readonly gzipped: Buffer;
  readonly etag: string;
};

const compress = promisify(gzip);

/** Prepares a file for `mountFile`. */
export async function staticFile(type: string, content: Buffer | string): Promise<StaticFile> {
  const plain = Buffer.from(content);
  // Weak, because both encodings share it (RFC 9110, section 8.8.1).
  const etag = `W/"${createHash('sha256').update(plain).digest('base64url').slice(0, 22)}"`;
  return { type, plain, gzipped: await compress(plain), etag };
}

/** Mounts a file, which is loaded on the first request because most processes never need it. */
export function mountFile(app: FastifyInstance, path: string, load: () => Promise<StaticFile>): void {
  let file: Promise<StaticFile> | undefined;
  app.get(path, async (request, reply) => {
    file ??= load();
    return serveFile(request, reply, await file);
  });
}

/** Serves a file, compressed if the client accepts gzip, or responds with 304 if the client already has it. */
function serveFile(request: FastifyRequest, reply: FastifyReply, file: StaticFile): FastifyReply {
  reply.headers({ 'cache-control': 'no-cache', etag: file.etag, vary: 'accept-encoding' });
  if (request.headers['if-none-match']?.includes(file.etag)) return reply.code(304).send();
  reply.type(file.type);
  const takesGzip = /\bgzip\b(?!\s*;\s*q=0(?:\.0*)?(?:,|$))/.test(request.headers['accept-encoding'] ?? '');
  return takesGzip ? reply.header('content-encoding', 'gzip').send(file.gzipped) : reply.send(file.plain);
}
