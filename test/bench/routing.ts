import { readArguments } from '#src/commands/command-line.ts';
import { type Books, openBooks } from './books.ts';
import type { LoopResult } from './closed-loop.ts';
import type { LoadOrder } from './load.ts';
import { cpuMs, machineName } from './proc.ts';
import { newRunId } from './request.ts';
import { addAccount, type Service, startService } from './service.ts';
import { createDatabase, startSurroundings } from './surroundings.ts';
import { startWorker } from './worker.ts';

const USAGE = `Usage: node test/bench/routing.ts [--seconds 3 --rounds 7 --routes 100 --against <checkout>]

Measures the cost of routing: the service with one route and the service with a hundred take turns, one payment at a
time. The cost is the difference in processor time per payment and in median duration. --against adds the service of
another checkout with as many routes, such as the commit before a change.`;

const { values } = readArguments(USAGE, {
  options: {
    seconds: { type: 'string', default: '3' },
    rounds: { type: 'string', default: '7' },
    routes: { type: 'string', default: '100' },
    against: { type: 'string' },
  },
});
const measuredMs = Number(values.seconds) * 1000;
const routes = Number(values.routes);

/** Cleanup at the end, in reverse order. */
const ending: (() => unknown)[] = [];
try {
  await bench();
} finally {
  for (const undo of ending.reverse()) await undo();
}

type Measure = { readonly cpuUs: number; readonly p50Us: number; readonly perSecond: number };

type Subject = { readonly service: Service; readonly books: Books; readonly measures: Measure[] };

async function bench(): Promise<void> {
  const { home, databaseUrl, provider } = await startSurroundings('routing', ending);
  const start = async (name: string, routesBefore: number, url = databaseUrl, checkout?: string) => {
    const options = {
      name,
      home,
      databaseUrl: url,
      providerPort: provider.port,
      nodeOptions: [],
      routesBefore,
    };
    const service = await startService({ ...options, ...(checkout !== undefined && { checkout }) });
    ending.push(service.stop);
    const books = await openBooks(url, provider.port);
    ending.push(books.close);
    return { service, books, measures: [] };
  };
  const one: Subject = await start('one', 0);
  const many: Subject = await start('many', routes - 1);
  const other: Subject[] = [];
  if (values.against !== undefined) {
    // Another release needs a separate database, because a release refuses the schema of a newer one. The service
    // creates the schema when it starts.
    const url = await createDatabase(databaseUrl, 'other');
    other.push(await start('other', routes - 1, url, values.against));
    await addAccount(url);
  }
  const load = await startWorker<LoadOrder, LoopResult>('load.ts');
  ending.push(load.stop);

  for (let round = 0; round <= Number(values.rounds); round++) {
    for (const { service, books, measures } of [one, many, ...other]) {
      await books.open();
      const before = cpuMs(service.pid);
      const runId = newRunId();
      const plan = { concurrency: 1, leadInMs: 300, measuredMs };
      const { sent, failed, p50Ms, perSecond } = await load.ask({
        protocol: 'rest',
        port: service.port,
        runId,
        plan,
      });
      if (failed > 0) throw new Error(`${failed} of ${sent} failed`);
      await books.compare({ sent, runId, atProvider: true });
      // The first round warms up.
      const cpuUs = (1000 * (cpuMs(service.pid) - before)) / sent;
      if (round > 0) measures.push({ cpuUs, p50Us: 1000 * p50Ms, perSecond });
    }
  }
  console.log(machineName());
  console.table({
    'one route': median(one.measures),
    [`${routes} routes`]: median(many.measures),
    ratio: ratio(many.measures, one.measures),
    ...Object.fromEntries(
      other.flatMap(({ measures }) => [
        [`${routes} routes, ${values.against}`, median(measures)],
        ['ratio to that', ratio(many.measures, measures)],
      ]),
    ),
  });
}

function median(measures: readonly Measure[]): Measure {
  const of = (what: keyof Measure) => {
    const sorted = measures.map((each) => each[what]).sort((a, b) => a - b);
    return Math.round(sorted[Math.floor(sorted.length / 2)] ?? Number.NaN);
  };
  return { cpuUs: of('cpuUs'), p50Us: of('p50Us'), perSecond: of('perSecond') };
}

function ratio(measures: readonly Measure[], base: readonly Measure[]): Measure {
  const [a, b] = [median(measures), median(base)];
  const of = (what: keyof Measure) => Math.round((1000 * a[what]) / b[what]) / 1000;
  return { cpuUs: of('cpuUs'), p50Us: of('p50Us'), perSecond: of('perSecond') };
}
