import { setTimeout } from 'node:timers/promises';
import { expect, it } from 'vitest';
import { createPace } from '#src/exports/pace.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'transaction' });

const READ_MS = 10;

/** Reads ten times at the pace of an export. @returns how many times as long as the reads it took. */
async function slowness(): Promise<number> {
  const pace = createPace(database);
  // The first read counts the transactions.
  await pace(() => setTimeout(READ_MS));
  const begunMs = performance.now();
  let readMs = 0;
  for (let i = 0; i < 10; i++) {
    await pace(async () => {
      const startedMs = performance.now();
      await setTimeout(READ_MS);
      readMs += performance.now() - startedMs;
    });
  }
  return (performance.now() - begunMs) / readMs;
}

/** Stores transactions that began some seconds ago. */
async function begin(transactions: number, secondsAgo: number): Promise<void> {
  const begun = (Date.now() - secondsAgo * 1_000).toString(16).padStart(12, '0');
  const ids = Array.from(
    { length: transactions },
    (_, i) => `${begun.slice(0, 8)}-${begun.slice(8)}-7000-8000-${String(i).padStart(12, '0')}`,
  );
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture)
     SELECT id, id, $1, 'one', 'a', 'SUCCEEDED', 100, 'USD', true FROM unnest($2::uuid[]) id`,
    [ACCOUNT_ONE, ids],
  );
}

it('an export reads at full speed while there are hardly any payments, even if there were many a minute ago', async () => {
  await begin(39, 0);
  await begin(1_000, 60);
  expect(await slowness()).toBeLessThan(4);
});

it('an export rests most of the time beside payments', async () => {
  await begin(40, 0);
  expect(await slowness()).toBeGreaterThan(8);
});
