import { type ParseArgsConfig, parseArgs } from 'node:util';
import { keptByNpm } from '#src/config.ts';
import type { Environment } from '#src/variables.ts';
import type { ProgressStream } from './progress.ts';

/** A command's streams and environment, from its process or from a test. */
export type CommandIo = {
  readonly stdout: Pick<ProgressStream, 'write'>;
  readonly stderr: ProgressStream;
  /** Empty if absent. */
  readonly stdin?: AsyncIterable<Uint8Array | string>;
  /** Defaults to the process's. */
  readonly environment?: Environment | undefined;
};

/**
 * Runs a command to completion.
 *
 * @param argv the arguments, without node and script.
 * @returns the exit code: 2 for a wrong command line, 1 for any other failure.
 */
export type Command = (argv: readonly string[], io: CommandIo) => Promise<number>;

/** Error for a command line that does not match the usage text. */
export class UsageError extends Error {}

/** Thrown to end a command that was called with `--help`. */
class HelpRequest extends Error {}

/**
 * Creates a command that prints its usage for `--help` and for a wrong command line.
 *
 * @param main does the work, and returns the exit code.
 * @param explain returns the text to print about the failure of a call with these arguments.
 */
export function createCommand(
  usage: string,
  main: (argv: readonly string[], io: CommandIo) => number | Promise<number>,
  explain: (error: unknown, argv: readonly string[]) => string,
): Command {
  return async (argv, io) => {
    try {
      return await main(argv, io);
    } catch (error) {
      if (error instanceof HelpRequest) {
        io.stdout.write(`${usage}\n`);
        return 0;
      }
      const isUsage = error instanceof UsageError;
      io.stderr.write(isUsage ? `${error.message}\n\n${usage}\n` : `${explain(error, argv)}\n`);
      return isUsage ? 2 : 1;
    }
  };
}

/** Runs a command as the main program of this process. The process exits at once if the command fails. */
export async function runAsProcess(command: Command): Promise<void> {
  const code = await command(process.argv.slice(2), process);
  if (code !== 0) process.exit(code);
}

/**
 * Parses a command's arguments.
 *
 * @param config.args the part of `argv` to parse; by default all of it.
 * @throws UsageError if the arguments do not match, or if npm kept options for itself; HelpRequest for `--help`.
 */
export function parseArguments<Config extends ParseArgsConfig>(
  argv: readonly string[],
  config: Config,
  environment?: Environment,
) {
  const options = { ...config.options, help: { type: 'boolean', short: 'h' } };
  const read = usageErrors(() => parseArgs({ args: argv, ...config, options } as unknown as Config));
  if ('help' in read.values) throw new HelpRequest();
  refuseKeptOptions(argv, config, environment);
  return read;
}

/**
 * Parses the command line of a program that does not use `createCommand`. `--help` prints the usage and exits. A wrong
 * command line prints the error and the usage, and exits with code 2.
 */
export function readArguments<Config extends ParseArgsConfig>(usage: string, config: Config) {
  try {
    return parseArguments(process.argv.slice(2), config);
  } catch (error) {
    if (error instanceof HelpRequest) {
      console.log(usage);
      process.exit(0);
    }
    console.error(`${(error as Error).message}\n\n${usage}`);
    process.exit(2);
  }
}

function usageErrors<T>(parse: () => T): T {
  try {
    return parse();
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
}

/**
 * Refuses options before `--`: npm takes them as its own settings and passes on only the rest, so the command would not
 * do what was requested.
 */
function refuseKeptOptions(
  argv: readonly string[],
  { options = {} }: ParseArgsConfig,
  environment?: Environment,
): void {
  const isGiven = (name: string) => argv.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`));
  const kept = keptByNpm(
    Object.keys(options).filter((name) => !isGiven(name)),
    environment,
  );
  if (!kept) return;
  // Omits the values: one may be a secret.
  const again = kept.options.map((name) => (options[name]?.type === 'boolean' ? `--${name}` : `--${name} …`));
  const names = kept.options.map((name) => `--${name}`).join(' and ');
  const firstOption = argv.findIndex((arg) => arg.startsWith('-'));
  const operands = firstOption < 0 ? argv : argv.slice(0, firstOption);
  const line = ['npm run', kept.script, '--', ...operands, ...again].join(' ');
  throw new UsageError(
    `npm kept ${names} for itself, so nothing was done. Put -- before the options: ${line}`,
  );
}
