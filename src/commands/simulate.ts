import { writeFileSync } from 'node:fs';
import { join, relative } from 'node:path';
import { inspect } from 'node:util';
import type { SimulatedDay } from '#gen/payments/config/simulation_pb.js';
import { CatalogueError } from '#src/catalogue/catalogue-error.ts';
import { readCatalogue } from '#src/catalogue/read-catalogue.ts';
import { type Compared, comparisonTable, nameOf } from '#src/simulation/comparison.ts';
import { hourPlot } from '#src/simulation/hour-plot.ts';
import { hourSvg } from '#src/simulation/hour-svg.ts';
import { readDay, SimulationError } from '#src/simulation/read-day.ts';
import { runDay } from '#src/simulation/run-day.ts';
import { strategiesOf } from '#src/simulation/strategies.ts';
import { summaryOf } from '#src/simulation/summary.ts';
import { syntheticPayments } from '#src/simulation/synthetic-payments.ts';
import { readArguments, runCommand, UsageError } from './command-line.ts';
import { createProgress, howFar } from './progress.ts';

const DEFAULT_SCENARIO = join(import.meta.dirname, '../../config/simulation.yaml');
const MAX_PAYMENTS = 1_000_000;
const PAYMENTS_A_STATE = 100;

const USAGE = `Usage: npm run simulate -- [options]

  --scenario <file>    the payments of a day and the behaviour of the providers; config/simulation.yaml by default
  --catalogue <file>   the routes to compare; by default one route, to the scenario's connections in their order
  --seed <number>      of all luck, 1 by default: the same seed, the same result
  --payments <number>  how many payments the day has, 1 to ${MAX_PAYMENTS}; by default what the scenario says
  --svg <file>         writes the plot there as a picture as well

Plays a day of payments through the service's own routing, once for each strategy, in seconds. Nothing is sent.`;

const OPTIONS = {
  scenario: { type: 'string' },
  catalogue: { type: 'string' },
  seed: { type: 'string' },
  payments: { type: 'string' },
  svg: { type: 'string' },
} as const;

async function main(): Promise<void> {
  const options = readArguments(USAGE, { options: OPTIONS }).values;
  const file = options.scenario ?? relative(process.cwd(), DEFAULT_SCENARIO);
  const day = readDay(file);
  const seed = wholeNumber('seed', options.seed ?? '1', 0, Number.MAX_SAFE_INTEGER);
  const count = wholeNumber('payments', options.payments ?? String(day.payments), 1, MAX_PAYMENTS);
  const strategies = strategiesOf(
    day,
    options.catalogue === undefined ? undefined : readCatalogue(options.catalogue),
  );
  const payments = syntheticPayments(day, seed, count);
  console.log(headerOf(day, file, seed, count));
  const progress = createProgress(process.stderr);
  const startedMs = performance.now();
  const compared: Compared[] = [];
  for (const [i, strategy] of strategies.entries()) {
    const onPayment = (played: number) => {
      if (played % PAYMENTS_A_STATE !== 1) return;
      const done = howFar(i * count + played, strategies.length * count, performance.now() - startedMs);
      progress.state(`${nameOf(strategy)}: ${done}`);
    };
    const summary = summaryOf(await runDay(day, seed, payments, strategy.catalogue, onPayment));
    compared.push({ strategy, summary });
  }
  progress.end();
  console.log(`\n${comparisonTable(compared)}\n\n${hourPlot(day, compared)}`);
  if (options.svg !== undefined) writePicture(options.svg, hourSvg(day, compared));
}

function writePicture(file: string, svg: string): void {
  try {
    writeFileSync(file, svg);
  } catch (error) {
    throw new SimulationError(`${file} cannot be written (${(error as NodeJS.ErrnoException).code})`);
  }
}

function wholeNumber(name: string, text: string, from: number, to: number): number {
  const number = /^\d+$/.test(text) ? Number(text) : Number.NaN;
  if (!(number >= from && number <= to))
    throw new UsageError(`--${name} is a whole number, ${from} to ${to}.`);
  return number;
}

/** Describes the data behind the numbers. */
function headerOf(day: SimulatedDay, file: string, seed: number, count: number): string {
  const incidents = day.connections.flatMap(({ id, incidents }) =>
    incidents.map(({ name, fromHour, toHour }) => `${fromHour}-${toHour} h: ${id} ${name}`.trimEnd()),
  );
  return `A day of ${count} card payments, by ${file}, seed ${seed}
${incidents.length > 0 ? `Incidents: ${incidents.join('; ')}\n` : ''}
Real: routes, order of targets, failover, circuit breakers, and approval rates learned from nothing.
Assumed: payments come independently of each other; what a provider answers depends on the card, the
hour, and one draw for each payment at each provider, the same in every strategy; in ${day.alikePercent} of 100
payments it is the same at all providers. Pending is what a provider did not answer in time: some of
it may have been approved.
Before you trust a small difference, see whether it is there with another --seed.`;
}

await runCommand(USAGE, main, (error) => {
  const isExpected = [SimulationError, CatalogueError].some((kind) => error instanceof kind);
  return isExpected ? (error as Error).message : inspect(error);
});
