import { Readable } from 'node:stream';
import { expect } from 'vitest';
import type { Command } from '#src/commands/command-line.ts';

/** The result of a command, with its complete output. */
export type Ran = { readonly code: number; readonly stdout: string; readonly stderr: string };

/** Runs a command from src/commands in this process, with only these environment variables. */
export async function runCommand(
  command: Command,
  environment: Readonly<Record<string, string>>,
  ...args: string[]
): Promise<Ran> {
  return runCommandWithInput(command, environment, '', ...args);
}

/** Runs a command with a standard input. */
export async function runCommandWithInput(
  command: Command,
  environment: Readonly<Record<string, string>>,
  input: string,
  ...args: string[]
): Promise<Ran> {
  const printed = { stdout: '', stderr: '' };
  const to = (stream: 'stdout' | 'stderr') => ({
    write(text: string | Uint8Array) {
      printed[stream] += text;
      return true;
    },
  });
  const code = await command(args, {
    ...{ stdout: to('stdout'), stderr: to('stderr'), environment },
    stdin: Readable.from([input]),
  });
  return { code, ...printed };
}

/** Runs a command that must succeed. @returns its output. */
export async function outputOf(...command: Parameters<typeof runCommand>): Promise<string> {
  const { code, stdout, stderr } = await runCommand(...command);
  expect(code, stderr).toBe(0);
  return stdout;
}
