import { writeFileSync } from 'node:fs';
import { readArguments } from '#src/commands/command-line.ts';
import { createProgress } from '#src/commands/progress.ts';
import type { Plan } from './closed-loop.ts';
import { curveSvg } from './curve-svg.ts';
import { machineName } from './proc.ts';
import { type Measure, medianOf } from './report.ts';
import { startStage } from './stage.ts';
import { cleanUpAfter, type Ending } from './surroundings.ts';

const USAGE = `Usage: node test/bench/workers.ts [--workers 1,2,4 --seconds 4 --rounds 3 --concurrency 64 --svg workers.svg]

Compares the service with several worker processes on one port with a single process, by REST, for each number of
processes. The two take turns, and the database and the provider's ledger must agree after each run.`;

const { values } = readArguments(USAGE, {
  options: {
    workers: { type: 'string', default: '1,2,4' },
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '64' },
    svg: { type: 'string' },
  },
});
const numbers = values.workers.split(',').map(Number);
const plan: Plan = {
  concurrency: Number(values.concurrency),
  leadInMs: 300,
  measuredMs: 1_000 * Number(values.seconds),
};
const WARM_UP: Plan = { ...plan, measuredMs: 5_000 };

type Row = Readonly<Record<string, number>>;

await cleanUpAfter(compareNumbers);

async function compareNumbers(ending: Ending): Promise<void> {
  const progress = createProgress(process.stderr);
  const rows = new Map<number, Row>();
  for (const workers of numbers) {
    progress.state(`${workers} workers`);
    const begun = ending.length;
    rows.set(workers, await measureNumber(workers, ending));
    for (const undo of ending.splice(begun).reverse()) await undo();
  }
  progress.end();
  console.log(`${machineName()}, ${plan.concurrency} at a time`);
  console.table(Object.fromEntries(rows));
  if (values.svg === undefined) return;
  const line = (name: string) => [...rows.values()].map((row) => row[name] ?? Number.NaN);
  const panels = [
    {
      title: 'payments per second, by number of worker processes',
      lines: { workers: line('payments/s'), 'one process': line('one process') },
    },
    {
      title: 'CPU ms per payment',
      lines: { service: line('server CPU ms'), PostgreSQL: line('PG CPU ms') },
    },
  ];
  writeFileSync(values.svg, curveSvg(numbers, panels));
}

async function measureNumber(workers: number, ending: Ending): Promise<Row> {
  const stage = await startStage(
    { nodeOptions: [], against: undefined, stored: 0, webhook: false, workers },
    ending,
  );
  const subject = (letter: string) => {
    const found = stage.subjects.find((each) => each.letter === letter);
    if (!found) throw new Error(`the stage has no subject ${letter}`);
    return found;
  };
  const one = subject('a');
  const many = workers > 1 ? subject('p') : one;
  await one.measure(WARM_UP);
  await many.measure(WARM_UP);
  const measures: { readonly one: Measure; readonly many: Measure }[] = [];
  for (let round = 1; round <= Number(values.rounds); round++) {
    measures.push({ one: await one.measure(plan), many: await many.measure(plan) });
  }
  const median = (of: (measure: (typeof measures)[number]) => number) =>
    Math.round(100 * medianOf(measures.map(of))) / 100;
  return {
    'payments/s': median(({ many }) => many.perSecond),
    'one process': median(({ one }) => one.perSecond),
    ratio: median(({ one, many }) => many.perSecond / one.perSecond),
    'p99 ms': median(({ many }) => many.p99Ms),
    'server CPU ms': median(({ many }) => many.serverCpuMs),
    'PG CPU ms': median(({ many }) => many.postgresCpuMs),
    'others %': median(({ many }) => many.othersPercent),
  };
}
