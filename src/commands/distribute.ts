import { readDataConfig } from '#src/config.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type DistributionPlan, distribute, planDistribution } from '#src/store/engine/distribution.ts';
import { INSTALLATION, recordAction } from '#src/store/tables/audit-log.ts';
import { actorOf } from './actor.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { table } from './table.ts';

const USAGE = `Usage: npm run distribute -- [--dry-run]

Distributes the database over the nodes of Citus, each account on one node. DATABASE_URL names the coordinator, to which
the workers have been added (docs/operating.md#scaling-out).

  --dry-run   only lists the tables and functions that are yet to be distributed; creates nothing

Stop the service first: the tables are locked while their rows are copied. Everything happens in one transaction, so an
interrupted run changes nothing. A repeated run distributes the rest, if any.`;

const OPTIONS = { 'dry-run': { type: 'boolean', default: false } } as const;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const dryRun = parseArguments(argv, { options: OPTIONS }, io.environment).values['dry-run'];
  const config = readDataConfig(io.environment);
  const plan = dryRun
    ? await withDatabase(config, io, ({ database }) => database.transaction(planDistribution), false)
    : await withDatabase(config, io, ({ database }) => distributeAndRecord(database, actorOf(config)));
  if (countOf(plan) === 0) io.stdout.write('Everything is distributed.\n');
  else io.stdout.write(`${table(linesOf(plan))}\n`);
  return 0;
}

async function distributeAndRecord(database: Database, actor: string): Promise<DistributionPlan> {
  const done = await distribute(database);
  const detail = `${countOf(done)} tables and functions`;
  await recordAction(database, { accountId: INSTALLATION, actor, action: 'distribute', detail });
  return done;
}

function countOf({ copied, byAccount, functions }: DistributionPlan): number {
  return copied.length + byAccount.length + functions.length;
}

function linesOf({ copied, byAccount, functions }: DistributionPlan): string[][] {
  const names = functions.map((signature) => signature.replace(/\(.*/, ''));
  return [
    ...copied.map((name) => ['table', name, 'copied to every node']),
    ...byAccount.map((name) => ['table', name, 'by account']),
    ...names.map((name) => ['function', name, "on the account's node"]),
  ];
}

/** Runs the command. */
export const run = createCommand(USAGE, main, explainFailure);

if (import.meta.main) await runAsProcess(run);
