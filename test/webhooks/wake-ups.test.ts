import { setTimeout as sleep } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { SHORTEST_PAUSE_MS } from '#src/repeat.ts';
import { startWakeUps } from '#src/webhooks/wake-ups.ts';

const WEBHOOK = { accountId: 'a', webhookId: 'w' };

it('a webhook whose drain always asks for another at once, or is woken all the time, rests between its drains', async () => {
  let drains = 0;
  const wakeUps = startWakeUps({
    concurrency: 4,
    async drain() {
      drains += 1;
      return 0;
    },
  });
  const startedMs = performance.now();
  wakeUps.wake([WEBHOOK]);
  for (let i = 0; i < 10; i++) {
    await sleep(SHORTEST_PAUSE_MS);
    wakeUps.wake([WEBHOOK]);
  }
  await wakeUps.stop();
  expect(drains).toBeGreaterThan(1);
  expect(drains).toBeLessThanOrEqual(Math.ceil((performance.now() - startedMs) / (SHORTEST_PAUSE_MS - 1)));
});
