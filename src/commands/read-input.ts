import { type CommandIo, UsageError } from './command-line.ts';

/**
 * Reads a value from standard input, without the line break that ends it.
 *
 * @param what names the value, such as `the value of the secret`.
 * @throws UsageError if there is none, or it is too long.
 */
export async function readInput(stdin: CommandIo['stdin'], what: string, maxBytes: number): Promise<string> {
  const parts: Buffer[] = [];
  let bytes = 0;
  for await (const part of stdin ?? []) {
    parts.push(Buffer.from(part));
    bytes += part.length;
    if (bytes > maxBytes) throw new UsageError('The value on standard input is too long.');
  }
  const value = Buffer.concat(parts)
    .toString('utf8')
    .replace(/\r?\n$/, '');
  if (value === '') throw new UsageError(`Standard input must have ${what}.`);
  return value;
}
