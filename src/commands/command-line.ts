import { type ParseArgsConfig, parseArgs } from 'node:util';
import { keptByNpm } from '#src/config.ts';

/** Error for a command line that does not match the usage. */
export class UsageError extends Error {}

/**
 * Reads a command line. The process ends after `--help`, which prints the usage, and with exit code 2 and the usage after
 * a wrong command line, or one whose options npm has kept for itself.
 */
export function readArguments<Config extends ParseArgsConfig>(usage: string, config: Config) {
  try {
    const options = { ...config.options, help: { type: 'boolean', short: 'h' } };
    const read = parseArgs({ ...config, options } as Config);
    if ('help' in read.values) {
      console.log(usage);
      process.exit(0);
    }
    refuseKeptOptions(config);
    return read;
  } catch (error) {
    endWithUsage((error as Error).message, usage);
  }
}

/**
 * Refuses a command whose options stand before `--`: npm takes them for settings of its own and passes on the rest, so the
 * command would do something else than it was told.
 */
function refuseKeptOptions({ options = {} }: ParseArgsConfig): void {
  const args = process.argv.slice(2);
  const isGiven = (name: string) => args.some((arg) => arg === `--${name}` || arg.startsWith(`--${name}=`));
  const kept = keptByNpm(Object.keys(options).filter((name) => !isGiven(name)));
  if (!kept) return;
  // Without the values: one may be a secret.
  const again = kept.options.map((name) => (options[name]?.type === 'boolean' ? `--${name}` : `--${name} …`));
  const names = kept.options.map((name) => `--${name}`).join(' and ');
  const firstOption = args.findIndex((arg) => arg.startsWith('-'));
  const operands = firstOption < 0 ? args : args.slice(0, firstOption);
  const line = ['npm run', kept.script, '--', ...operands, ...again].join(' ');
  throw new Error(`npm kept ${names} for itself, so nothing was done. Put -- before the options: ${line}`);
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
