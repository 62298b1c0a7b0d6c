import { writeFileSync } from 'node:fs';
import { readArguments } from '#src/commands/command-line.ts';
import { createProgress, howFar } from '#src/commands/progress.ts';
import { optionalPositive, positive } from './arguments.ts';
import type { Plan } from './closed-loop.ts';
import { curveSvg } from './curve-svg.ts';
import { machineName } from './proc.ts';
import { type Measure, medianAt, type Named, report } from './report.ts';
import { startStage } from './stage.ts';
import { cleanUpAfter, type Ending } from './surroundings.ts';

const USAGE = `Usage: npm run bench -- [--seconds 4 --rounds 3 --concurrency 1,16,64 --against <ref> --stored N --workers N --database-delay-ms N --svg FILE --node-options=…]

Compares the service, by REST and by gRPC, with a bare Fastify server that does the same disk and network work, and with
the two commits alone; and the service with a webhook for every payment, whose delivery is part of the cost, with the
service without one. --against compares it with the service of another commit instead of the bare server, in a separate
database, and with that commit's own dependencies if its lockfile differs. --stored fills the databases first. --workers adds the service with that
many processes. --database-delay-ms delays each direction between a subject and its database. --svg draws rate and CPU by
concurrency. Each subject has its own process. The runs take turns, so that a disturbance of the machine affects all
alike, and after every run the provider's ledger and the database must agree.`;

const { values } = readArguments(USAGE, {
  options: {
    seconds: { type: 'string', default: '4' },
    rounds: { type: 'string', default: '3' },
    concurrency: { type: 'string', default: '1,16,64' },
    against: { type: 'string' },
    stored: { type: 'string' },
    workers: { type: 'string' },
    'database-delay-ms': { type: 'string' },
    svg: { type: 'string' },
    // Only for the service's processes: --node-options=--cpu-prof shows where the time goes.
    'node-options': { type: 'string', default: '' },
  },
});
const measuredMs = positive('seconds', values.seconds) * 1000;
const rounds = positive('rounds', values.rounds);
const concurrencies = values.concurrency.split(',').map((text) => positive('concurrency', text));
const stored = optionalPositive('stored', values.stored) ?? 0;

const LEAD_IN_MS = 300;
/** The first 10,000 payments or so run partly uncompiled code, which costs up to twice the CPU time. */
const WARM_UP: Plan = { concurrency: 64, leadInMs: 0, measuredMs: 20_000 };

await cleanUpAfter(bench);

async function bench(ending: Ending): Promise<void> {
  const { subjects, ratios } = await startStage(
    {
      nodeOptions: values['node-options'].split(' ').filter(Boolean),
      against: values.against,
      stored,
      webhook: true,
      databaseDelayMs: optionalPositive('database-delay-ms', values['database-delay-ms']),
      workers: optionalPositive('workers', values.workers) ?? 1,
    },
    ending,
  );
  console.log(
    `${machineName()}. Each figure is the median of ${rounds} rounds of ${measuredMs / 1000} s${stored > 0 ? `, with ${stored} payments stored before` : ''}.`,
  );
  console.log(
    'CPU is user and system time per payment. "others" is the share of the machine that unrelated processes used.',
  );
  const progress = createProgress(process.stderr);
  for (const { label, measure } of subjects) {
    progress.state(`warming up: ${label}`);
    await measure(WARM_UP);
  }

  const byConcurrency = new Map<number, Map<string, Measure[]>>();
  for (const concurrency of concurrencies) {
    byConcurrency.set(concurrency, new Map(subjects.map(({ letter }) => [letter, []])));
  }
  const runs = rounds * concurrencies.length * subjects.length;
  const startedMs = performance.now();
  let done = 0;
  for (let round = 1; round <= rounds; round++) {
    // The first subject may be at a disadvantage, so the subjects also take turns at being first.
    const inTurn = round % 2 === 1 ? subjects : subjects.toReversed();
    for (const [concurrency, measures] of byConcurrency) {
      for (const { letter, label, measure } of inTurn) {
        const far = howFar(done, runs, performance.now() - startedMs);
        progress.state(`round ${round}, ${concurrency} at a time, ${label}: ${far}`);
        measures.get(letter)?.push(await measure({ concurrency, leadInMs: LEAD_IN_MS, measuredMs }));
        done += 1;
      }
    }
  }
  progress.end();
  const peaks = subjects.map(({ letter, label, peakMb }) => ({ letter, label, peakMb: peakMb() }));
  console.log(report(peaks, ratios, byConcurrency));
  if (values.svg === undefined) return;
  const panel = (title: string, name: keyof Measure) => {
    const lineOf = ({ letter }: Named) =>
      concurrencies.map((at) => medianAt(byConcurrency.get(at), letter, name));
    return { title, lines: Object.fromEntries(subjects.map((subject) => [subject.label, lineOf(subject)])) };
  };
  const panels = [
    panel('payments per second, by concurrency', 'perSecond'),
    panel('CPU ms per payment, server', 'serverCpuMs'),
    panel('CPU ms per payment, PostgreSQL', 'postgresCpuMs'),
  ];
  writeFileSync(values.svg, curveSvg(concurrencies, panels));
}
