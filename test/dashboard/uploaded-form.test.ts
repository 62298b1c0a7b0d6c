import fc from 'fast-check';
import { expect, it } from 'vitest';
import { readUploadedForm } from '#src/dashboard/uploaded-form.ts';
import { ServiceError } from '#src/service-error.ts';

const TYPE = 'multipart/form-data; boundary=x';
const part = (disposition: string, content: string) =>
  `--x\r\ncontent-disposition: form-data; ${disposition}\r\n\r\n${content}\r\n`;
const FORM = `${part('name="connection"', 'añadida')}${part('name="report"; filename="C:\\reports\\set.csv"', 'a,b\r\n1,2\r\n')}--x--\r\n`;

/** Reads a form. @returns its content, or 'refused'; anything else fails. */
async function read(body: Uint8Array | string, type = TYPE) {
  try {
    const { fields, file } = await readUploadedForm(Buffer.from(body as string), type);
    return {
      fields: Object.fromEntries(fields),
      file: file && { ...file, pieces: Buffer.concat(file.pieces) },
    };
  } catch (error) {
    expect(error).toBeInstanceOf(ServiceError);
    return 'refused';
  }
}

it('a form’s fields and its file are read, with the file’s name alone', async () => {
  expect(await read(FORM)).toEqual({
    fields: { connection: 'añadida' },
    file: { name: 'set.csv', pieces: Buffer.from('a,b\r\n1,2\r\n') },
  });
});

it('a form that is cut off anywhere, or has anything in it, is read or refused, and never waits', async () => {
  const whole = Buffer.from(FORM);
  // Its last line end may be missing.
  for (let length = 0; length < whole.length - 2; length++) {
    expect([length, await read(whole.subarray(0, length))]).toEqual([length, 'refused']);
  }
  await fc.assert(
    fc.asyncProperty(
      fc.array(fc.tuple(fc.nat(whole.length - 1), fc.nat(255)), { maxLength: 6 }),
      async (changes) => {
        const body = Buffer.from(whole);
        for (const [at, byte] of changes) body[at] = byte;
        await read(body);
      },
    ),
  );
});

it.each([
  ['two files', part('name="a"; filename="a"', 'x') + part('name="b"; filename="b"', 'x')],
  ['eleven fields', part('name="a"', 'x').repeat(11)],
  ['a field of more than 4 KiB', part('name="a"', 'x'.repeat(4_097))],
])('a form with %s is refused', async (_name, parts) => {
  expect(await read(`${parts}--x--\r\n`)).toBe('refused');
});

it.each(['multipart/form-data', 'multipart/form-data; boundary=', 'multipart/form-data; boundary="'])(
  'the type %s, which names no boundary, is refused',
  async (type) => {
    expect(await read(FORM, type)).toBe('refused');
  },
);
