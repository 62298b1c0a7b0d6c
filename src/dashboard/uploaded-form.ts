import { Busboy } from '@fastify/busboy';
import { ServiceError } from '#src/service-error.ts';

/** A file that a form sends. */
export type UploadedFile = {
  /** The name without its folder, as the browser has it. */
  readonly name: string;
  /** Its content, in order. */
  readonly pieces: readonly Uint8Array[];
};

/** A form of the type multipart/form-data, with one file at most. */
export class UploadedForm {
  readonly fields = new URLSearchParams();
  file: UploadedFile | undefined;
}

const LIMITS = { files: 1, fields: 10, parts: 11, fieldSize: 4_096, headerPairs: 20, headerSize: 4_096 };

/**
 * Reads a form of the type multipart/form-data (RFC 7578) from its whole body.
 *
 * @throws ServiceError INVALID_REQUEST if it is cut off, or has more files or fields than a form of ours.
 */
export function readUploadedForm(body: Uint8Array, contentType: string): Promise<UploadedForm> {
  const form = new UploadedForm();
  const { promise, resolve, reject } = Promise.withResolvers<UploadedForm>();
  const refuse = () =>
    reject(new ServiceError('INVALID_REQUEST', 'the form cannot be read, or is cut off; nothing was done'));
  try {
    const reader = new Busboy({ headers: { 'content-type': contentType }, limits: LIMITS });
    reader.on('field', (name, value, _isNameCut, isCut) => {
      if (isCut) return refuse();
      form.fields.append(name, value);
    });
    reader.on('file', (_field, stream, name) => {
      const pieces: Uint8Array[] = [];
      stream.on('data', (piece: Buffer) => pieces.push(piece));
      // Browsers send a part without a name if nobody chose a file.
      stream.on('end', () => {
        if (pieces.length > 0) form.file = { name: (name ?? '').replaceAll('\0', ''), pieces };
      });
      stream.on('error', refuse);
    });
    for (const limit of ['filesLimit', 'fieldsLimit', 'partsLimit'] as const) reader.on(limit, refuse);
    reader.on('error', refuse);
    reader.on('finish', () => resolve(form));
    reader.end(body);
  } catch {
    // The type names no boundary.
    refuse();
  }
  return promise;
}
