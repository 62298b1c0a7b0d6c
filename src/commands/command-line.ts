import { type ParseArgsConfig, parseArgs } from 'node:util';

/** Error for a command line that does not match the usage. */
export class UsageError extends Error {}

/** Reads a command line. @throws UsageError. */
export function readArguments<Config extends ParseArgsConfig>(config: Config) {
  try {
    return parseArgs(config);
  } catch (error) {
    throw new UsageError((error as Error).message);
  }
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
    const isUsage = error instanceof UsageError;
    console.error(isUsage ? `${error.message}\n\n${usage}` : explain(error));
    process.exit(isUsage ? 2 : 1);
  }
}
