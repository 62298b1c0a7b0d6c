import { setTimeout as sleep } from 'node:timers/promises';
import { Registry } from 'prom-client';
import { expect, it } from 'vitest';
import { addProcessMetrics } from '#src/observe/process-metrics.ts';

it('the lag of the event loop is the length of its turns since the last collection', async () => {
  const registry = new Registry();
  addProcessMetrics(registry);
  const lagS = async (figure: string) => {
    const text = await registry.metrics();
    return Number(new RegExp(`^nodejs_eventloop_lag_${figure}_seconds (\\S+)$`, 'm').exec(text)?.[1]);
  };
  await sleep(20);
  const untilMs = performance.now() + 150;
  while (performance.now() < untilMs);
  await sleep(20);
  expect(await lagS('max')).toBeGreaterThan(0.14);
  await sleep(100);
  expect(await lagS('p50')).toBeLessThan(0.1);
  expect(await lagS('max')).toBeLessThan(0.14);
});
