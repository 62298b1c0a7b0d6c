import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';
import { BODY_LIMIT_BYTES, tooLarge } from './body-limit.ts';

const EXPANDERS = { gzip: promisify(gunzip), br: promisify(brotliDecompress) };

/**
 * Decompresses a body according to its `content-encoding`.
 *
 * @param limitBytes maximum size after decompression.
 * @throws ServiceError UNSUPPORTED_MEDIA_TYPE, REQUEST_TOO_LARGE or INVALID_REQUEST.
 */
export async function expand(
  body: Buffer,
  encoding = 'identity',
  limitBytes = BODY_LIMIT_BYTES,
): Promise<Uint8Array> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (name !== 'gzip' && name !== 'br') throw unknownEncoding('content-encoding');
  try {
    return await EXPANDERS[name](body, { maxOutputLength: limitBytes });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw tooLarge('the body expands to more');
    }
    throw new ServiceError('INVALID_REQUEST', 'the body cannot be decompressed');
  }
}

/** Returns the refusal for an unknown compression. @param header the header that names it. */
export function unknownEncoding(header: string): ServiceError {
  const message = 'must be gzip, br or identity';
  return fieldRefusal('UNSUPPORTED_MEDIA_TYPE', header, 'NOT_ALLOWED', message);
}

/** The compressions that the rpc protocols accept, the same as REST's. */
export const RPC_COMPRESSIONS = [compressionGzip, compressionBrotli];
