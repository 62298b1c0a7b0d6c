import { monitorEventLoopDelay } from 'node:perf_hooks';
import { collectDefaultMetrics, Gauge, type Registry } from 'prom-client';

type Delays = ReturnType<typeof monitorEventLoopDelay>;

/** The figures of the delays, by the names that prom-client gives them. */
const FIGURES: readonly (readonly [name: string, read: (delays: Delays) => number])[] = [
  ['min', ({ min }) => min],
  ['max', ({ max }) => max],
  ['mean', ({ mean }) => mean],
  ['stddev', ({ stddev }) => stddev],
  ['p50', (delays) => delays.percentile(50)],
  ['p90', (delays) => delays.percentile(90)],
  ['p99', (delays) => delays.percentile(99)],
];
/** A period of prom-client's own sampler that never ends. */
const NEVER_MS = 2 ** 31 - 1;

/**
 * Adds prom-client's metrics of the process. The lag of the event loop is measured at each of its turns: prom-client's
 * timer would wake an idle process a hundred times a second.
 */
export function addProcessMetrics(registry: Registry): void {
  collectDefaultMetrics({ register: registry, eventLoopMonitoringPrecision: NEVER_MS });
  const delays = monitorEventLoopDelay({ samplePerIteration: true });
  delays.enable();
  const gauges = FIGURES.map(([figure, read]) => {
    const name = `nodejs_eventloop_lag_${figure}_seconds`;
    registry.removeSingleMetric(name);
    const aggregator = figure === 'min' || figure === 'max' ? figure : 'average';
    const help = `Length of the event loop's turns since the last collection: ${figure}.`;
    const collect = () => setAll(figure);
    return { gauge: new Gauge({ name, help, aggregator, registers: [registry], collect }), read };
  });
  /** Sets all figures when the first of them is collected, and counts anew. */
  function setAll(collected: string): void {
    if (collected !== FIGURES[0]?.[0] || delays.count === 0) return;
    for (const { gauge, read } of gauges) gauge.set(read(delays) / 1e9);
    delays.reset();
  }
}
