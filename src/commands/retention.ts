import { readDataConfig } from '#src/config.ts';
import { endUnused } from '#src/customers/end-unused-methods.ts';
import { eraseOldPayments } from '#src/payments/erase-payments.ts';
import { openStoredResponses } from '#src/payments/keys/stored-response.ts';
import { type AgedRows, deleteAged, estimateRows } from '#src/store/engine/aged-rows.ts';
import type { Database } from '#src/store/engine/database.ts';
import { type Step, sweep } from '#src/store/engine/sweep.ts';
import { INSTALLATION, recordAction } from '#src/store/tables/audit-log.ts';
import { actorOf } from './actor.ts';
import { withDatabase } from './command-database.ts';
import { type CommandIo, createCommand, parseArguments, runAsProcess, UsageError } from './command-line.ts';
import { explainFailure } from './explain-failure.ts';
import { createProgress, howFar, type Progress } from './progress.ts';
import { table } from './table.ts';

/** Minimum number of days for each kind, and why. */
const KINDS = {
  // Most schemes allow disputes for 120 days; the minimum is only 30 because some operators have other rules.
  payments: 30,
  // Some providers repeat notifications for 30 days, and a repeat of a deleted notification would be looked up again.
  notifications: 31,
  // Deliveries are retried for up to 8 days.
  deliveries: 9,
  calls: 1,
  // Long enough for a payer to return to the checkout page, and for a lost redirect to be paid late.
  sessions: 30,
  // A card that is charged once a month must survive until its next charge.
  methods: 32,
} as const;

type Kind = keyof typeof KINDS;
type Rules = { readonly [K in Kind]?: number };

const USAGE = `Usage: npm run retention -- [--dry-run] <rules>

  --payments <days>        erases the payer's personal data from payments that have not changed for this long (minimum ${KINDS.payments})
  --notifications <days>   deletes the original notifications of providers (minimum ${KINDS.notifications})
  --deliveries <days>      deletes webhooks' deliveries and, a day later, events (minimum ${KINDS.deliveries}; the service itself deletes them after 30)
  --calls <days>           deletes the responses stored for retries of calls that create customers and the like (minimum ${KINDS.calls}; the service itself deletes them after 30)
  --sessions <days>        deletes checkout sessions that expired this long ago, unless their payment is still open (minimum ${KINDS.sessions})
  --methods <days>         unenrolls stored methods that no payment has used for this long, and deletes what is left of unenrolled methods (minimum ${KINDS.methods})
  --dry-run                only counts the due rows

A kind without a rule is left alone, and so is every payment with open work. Run the command as often as you like, beside
the service: it commits in small steps, and the next run completes an interrupted one.`;

const OPTIONS = {
  payments: { type: 'string' },
  notifications: { type: 'string' },
  deliveries: { type: 'string' },
  calls: { type: 'string' },
  sessions: { type: 'string' },
  methods: { type: 'string' },
  'dry-run': { type: 'boolean', default: false },
} as const;

async function main(argv: readonly string[], io: CommandIo): Promise<number> {
  const options = parseArguments(argv, { options: OPTIONS }, io.environment).values;
  const rules = readRules(options);
  const dryRun = options['dry-run'];
  const config = readDataConfig(io.environment);
  const counts = await withDatabase(config, io, async ({ database }) => {
    const by = Object.entries(rules).map(([kind, days]) => `${kind} ${days}`);
    const action = { accountId: INSTALLATION, actor: actorOf(config), action: 'retention' };
    const subject = `${by.join(', ')}${dryRun ? ', dry run' : ''}`;
    await recordAction(database, { ...action, subject, detail: 'begun' });
    const counts = await ageOut(database, rules, dryRun, createProgress(io.stderr));
    await recordAction(database, { ...action, subject, detail: counts.flat().join(' ') });
    return counts;
  });
  const lines = counts.map(([what, count]) => [dryRun ? `${what} due` : what, String(count)]);
  io.stdout.write(`${table(lines)}\n`);
  return 0;
}

type Counts = (readonly [what: string, count: number])[];

async function ageOut(
  database: Database,
  rules: Rules,
  dryRun: boolean,
  progress: Progress,
): Promise<Counts> {
  const counts: Counts = [];
  if (rules.payments !== undefined) {
    counts.push(['payments', await erase(database, rules.payments, dryRun, progress)]);
  }
  const { methods } = rules;
  if (methods !== undefined) {
    let lookedAt = 0;
    const onStep = (step: Step) => {
      lookedAt += step.lookedAt;
      progress.state(`methods: ${lookedAt} examined`);
    };
    counts.push(['methods', await endUnused(database, { days: methods, dryRun, onStep })]);
  }
  const deletions: [AgedRows, number | undefined][] = [
    ['notifications', rules.notifications],
    // A delivery is deleted before its event, because it cannot be resent without the event.
    ['deliveries', rules.deliveries],
    ['events', rules.deliveries],
    ['calls', rules.calls],
    ['checkout_sessions', rules.sessions],
    ['ended_methods', rules.methods],
  ];
  for (const [what, days] of deletions) {
    if (days !== undefined) counts.push([what, await deleteOld(database, what, days, { dryRun, progress })]);
  }
  progress.end();
  return counts;
}

async function erase(database: Database, days: number, dryRun: boolean, progress: Progress): Promise<number> {
  let lookedAt = 0;
  return eraseOldPayments(database, {
    days,
    response: dryRun ? undefined : (await openStoredResponses(database)).own,
    onStep: (step, account, accounts) => {
      lookedAt += step.lookedAt;
      progress.state(`payments: ${lookedAt} examined, account ${account} of ${accounts}`);
    },
  });
}

async function deleteOld(
  database: Database,
  what: AgedRows,
  days: number,
  { dryRun, progress }: { readonly dryRun: boolean; readonly progress: Progress },
): Promise<number> {
  const estimate = await estimateRows(database, what);
  const startedMs = performance.now();
  let lookedAt = 0;
  const onStep = (step: Step) => {
    lookedAt += step.lookedAt;
    const total = Math.max(estimate, lookedAt);
    progress.state(`${what}: ${howFar(lookedAt, total, performance.now() - startedMs)}`);
  };
  return sweep((after) => deleteAged(database, what, days, { dryRun, after }), { dryRun, onStep });
}

const MAX_DAYS = 36_500;

function readRules(options: Readonly<Partial<Record<Kind, string>>>): Rules {
  const rules: { -readonly [K in Kind]?: number } = {};
  for (const [name, fewest] of Object.entries(KINDS)) {
    const kind = name as Kind;
    const text = options[kind];
    if (text === undefined) continue;
    const days = /^\d{1,5}$/.test(text) ? Number(text) : Number.NaN;
    if (!(days >= fewest && days <= MAX_DAYS)) {
      throw new UsageError(`--${kind} must be a number of days from ${fewest} to ${MAX_DAYS}.`);
    }
    rules[kind] = days;
  }
  if (Object.keys(rules).length === 0) throw new UsageError('At least one rule is required.');
  return rules;
}

/** Runs the command. */
export const run = createCommand(
  USAGE,
  main,
  (error) =>
    `Interrupted: ${explainFailure(error)}\nDeleted data stays deleted. Run the command again to finish.`,
);

if (import.meta.main) await runAsProcess(run);
