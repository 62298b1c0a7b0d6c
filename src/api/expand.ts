import { promisify } from 'node:util';
import { brotliDecompress, gunzip } from 'node:zlib';
import { compressionBrotli, compressionGzip } from '@connectrpc/connect-node';
import { fieldRefusal, ServiceError } from '#src/service-error.ts';

/** Largest size of a body, expanded. */
export const BODY_LIMIT_BYTES = 256 * 1024;

/** Largest ratio to which a compressed body may expand. JSON with many similar elements reaches about 50. */
const MAX_RATIO = 100;
/** Size to which every body may expand: small ones compress far better than their content warrants. */
const ALWAYS_EXPANDED_BYTES = 16 * 1024;

/** Returns the size to which a compressed body may expand: sending it must not cost much less than reading it. */
function expandedLimit(compressedBytes: number): number {
  return Math.min(BODY_LIMIT_BYTES, Math.max(ALWAYS_EXPANDED_BYTES, MAX_RATIO * compressedBytes));
}

const EXPANDERS = { gzip: promisify(gunzip), br: promisify(brotliDecompress) };

/**
 * Expands a body by its `content-encoding`.
 *
 * @throws ServiceError UNSUPPORTED_MEDIA_TYPE, REQUEST_TOO_LARGE or INVALID_REQUEST.
 */
export async function expand(body: Buffer, encoding = 'identity'): Promise<Uint8Array> {
  const name = encoding.trim().toLowerCase();
  if (name === 'identity') return body;
  if (name !== 'gzip' && name !== 'br') throw unknownEncoding('content-encoding');
  const maxOutputLength = expandedLimit(body.length);
  try {
    return await EXPANDERS[name](body, { maxOutputLength });
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ERR_BUFFER_TOO_LARGE') {
      throw new ServiceError(
        'REQUEST_TOO_LARGE',
        `the body expands to more than ${maxOutputLength} bytes, the most that a compressed body of its size may`,
      );
    }
    throw new ServiceError('INVALID_REQUEST', 'the body cannot be decompressed');
  }
}

/** Makes the refusal of a body or message in an unknown compression. @param header the header that names it. */
export function unknownEncoding(header: string): ServiceError {
  const message = 'must be gzip, br or identity';
  return fieldRefusal('UNSUPPORTED_MEDIA_TYPE', header, 'NOT_ALLOWED', message);
}

/** The same compressions, with the same limit, for the rpc protocols. */
export const RPC_COMPRESSIONS = [compressionGzip, compressionBrotli].map((compression) => ({
  ...compression,
  decompress: (bytes: Uint8Array, readMaxBytes: number) =>
    compression.decompress(bytes, Math.min(readMaxBytes, expandedLimit(bytes.length))),
}));
