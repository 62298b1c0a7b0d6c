import { readConfig } from '#src/config.ts';
import { type ErasedPayer, erasePayer, type Payer } from '#src/customers/erase-payer.ts';
import { openStoredResponses } from '#src/payments/keys/stored-response.ts';
import { findKeyProblems } from '#src/server/check-keys.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Step } from '#src/store/engine/sweep.ts';
import { findAccount } from '#src/store/tables/accounts.ts';
import { recordAction } from '#src/store/tables/audit-log.ts';
import { InstallationKeysError } from '#src/store/tables/installation-keys.ts';
import { isUuid } from '#src/store/tables/stored-objects.ts';
import { hashKeys, installationKeys } from '#src/vault/key-file.ts';
import { actorOf } from './actor.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { createProgress } from './progress.ts';
import { readInput } from './read-input.ts';

const USAGE = `Usage: npm run erase-payer -- <account id> [--customer <customer id>] [--confirm]

Erases a payer who asks to be forgotten from one account: the customer with its stored cards, and the payer's data in every
payment, with its sessions, notifications, events and responses. What was paid, and the ids of it, stay.

  --customer <customer id>   the payer is this customer (even if it was deleted before)
                             without it, the payer's e-mail address is read from standard input
  --confirm                  erases; without it, the command only says what it would erase

A payment with anything open keeps its data until it ends: the command names it, and exits with code 3. Run it again then.
The page docs/personal-data.md says what is erased, and what remains until when.`;

/** The exit code of an erasure that left payments out. */
const LEFT_OPEN = 3;

/** Maximum number of open payments that are named. */
const MAX_NAMED = 100;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const { positionals, values } = parseArguments(argv, CONFIG, io.environment);
  const [accountId = '', ...more] = positionals;
  // What follows may be an e-mail address, so it is not repeated.
  if (!isUuid(accountId) || more.length > 0) {
    throw new UsageError(
      'The only operand is an account id, a UUID. An e-mail address is read from standard input.',
    );
  }
  const { customer, confirm } = values;
  if (customer !== undefined && !isUuid(customer)) throw new UsageError('--customer must be a UUID.');
  const payer: Payer =
    customer === undefined
      ? { email: await readInput(io.stdin, 'an e-mail address', MAX_EMAIL) }
      : { customerId: customer };
  const config = readConfig(io.environment);
  return withDatabase(config, io, async ({ database, dataDir }) => {
    if (!(await findAccount(database, accountId))) throw new UsageError('There is no such account.');
    const installed = installationKeys(config, dataDir);
    const problems = await findKeyProblems(database, installed);
    if (problems.length > 0) throw new InstallationKeysError(problems.join('; '));
    const subject = customer === undefined ? 'by e-mail address' : `customer ${customer}`;
    const audit = (detail: string) =>
      recordAction(database, { accountId, actor: actorOf(config), action: 'erase-payer', subject, detail });
    await audit(confirm ? 'begun' : 'begun, dry run');
    const progress = createProgress(io.stderr);
    let lookedAt = 0;
    const erased = await erasePayer(database, accountId, payer, {
      keys: hashKeys(installed.hashKey),
      response: confirm ? (await openStoredResponses(database)).own : undefined,
      onStep: (step: Step) => {
        lookedAt += step.lookedAt;
        progress.state(`${lookedAt} payments examined`);
      },
    }).finally(() => progress.end());
    await audit(summary(erased, confirm));
    io.stdout.write(described(erased, confirm));
    return erased.open.length > 0 ? LEFT_OPEN : 0;
  });
}

/** An address has at most 254 characters (RFC 5321). */
const MAX_EMAIL = 1_000;

const CONFIG = {
  allowPositionals: true,
  options: { customer: { type: 'string' }, confirm: { type: 'boolean', default: false } },
} as const;

function summary({ customerIds, payments, open }: ErasedPayer, confirm: boolean): string {
  const counts = `customers ${customerIds.length}, payments ${payments}, still open ${open.length}`;
  return confirm ? counts : `dry run: ${counts}`;
}

function described(erased: ErasedPayer, confirm: boolean): string {
  const { customerIds, payments, open } = erased;
  const lines = [
    `${confirm ? 'erased' : 'to erase'}: customers ${customerIds.length}, payments ${payments}`,
    ...customerIds.map((id) => `  customer ${id}`),
  ];
  if (open.length > 0) {
    lines.push(`These payments are still open, and keep their data until they end: ${open.length}`);
    for (const { id, status, checkAt } of open.slice(0, MAX_NAMED)) {
      lines.push(`  payment ${id}  ${status}${checkAt ? `, next check ${checkAt.toISOString()}` : ''}`);
    }
    if (confirm) {
      const also = customerIds.map((id) => ` --customer ${id}`);
      lines.push(
        `Run the command again once they have ended${also.length > 0 ? `, also with${also.join(', with')}` : ''}.`,
      );
    }
  }
  if (!confirm) lines.push('Nothing was erased: add --confirm.');
  return `${lines.join('\n')}\n`;
}

/** Runs the command. */
export const run = createCommand(USAGE, main, (error) =>
  error instanceof ServiceError
    ? `Not done: ${error.message}`
    : `Interrupted: ${explainFailure(error)}\nErased data stays erased. Run the command again to finish.`,
);

if (import.meta.main) await runAsProcess(run);
