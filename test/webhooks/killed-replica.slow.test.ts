import { spawn } from 'node:child_process';
import { join } from 'node:path';
import { expect, it } from 'vitest';
import { NO_ANSWER, status } from './receiver.ts';
import { account, countDeliveries, hasDelivered, onWebhookWorld, shop, world } from './webhook-world.ts';

onWebhookWorld();

it('a delivery that a killed replica had taken is delivered by another replica', async () => {
  shop.answer(NO_ANSWER);
  const child = spawn(
    process.execPath,
    [
      join(import.meta.dirname, 'replica.ts'),
      world.databaseUrl,
      Buffer.from(world.vaultKey).toString('base64'),
    ],
    { stdio: 'inherit' },
  );
  const ended = new Promise((resolve) => child.once('exit', resolve));
  await world.change(account);
  await shop.has(1);
  child.kill('SIGKILL');
  await ended;
  shop.answer(status(200));
  await world.start();
  await hasDelivered(1);
  expect(shop.received.map(({ json }) => json.id)).toEqual([
    shop.received[0]?.json.id,
    shop.received[0]?.json.id,
  ]);
  expect(await countDeliveries('attempts = 2')).toBe(1);
});
