import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Error for a command line that does not match the usage. */
export class UsageError extends Error {}

/**
 * Reads a command line. The process ends after `--help`, which prints the usage, and with exit code 2 and the usage after
 * a wrong command line.
 */
export function readArguments<Config extends ParseArgsConfig>(usage: string, config: Config) {
  try {
    const options = { ...config.options, help: { type: 'boolean', short: 'h' } };
    const read = parseArgs({ ...config, options } as Config);
    if (!('help' in read.values)) return read;
    console.log(usage);
    process.exit(0);
  } catch (error) {
    endWithUsage((error as Error).message, usage);
  }
}

function endWithUsage(message: string, usage: string): never {
  console.error(`${message}\n\n${usage}`);
  process.exit(2);
}

/**
 * Runs a command. If it fails, the process ends: with exit code 2 and the usage after a wrong command line, otherwise
 * with 1.
 *
 * @param explain returns the text to print about a failure.
 */
export async function runCommand(
  usage: string,
  main: () => void | Promise<void>,
  explain: (error: unknown) => string,
): Promise<void> {
  try {
    await main();
  } catch (error) {
    if (error instanceof UsageError) endWithUsage(error.message, usage);
    console.error(explain(error));
    process.exit(1);
  }
}
