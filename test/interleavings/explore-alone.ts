import { pino } from 'pino';
import { MIGRATIONS, migrate } from '#src/store/engine/migrate.ts';
import { openOperatedPayments } from '../payments/open-operated-payments.ts';
import { createTestDatabase, openTestDatabase } from '../support/database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { openTables } from '../support/tables.ts';
import { explore, wantEvents } from './explore.ts';
import { PLANTS } from './plants.ts';

/*
 * A program that plays the orders of a plant in the checkout that contains this file, on a database with its schema. It
 * prints what it found as JSON. Usage: node explore-alone.ts <name of the plant>
 */
const plant = PLANTS[process.argv[2] ?? ''];
if (!plant) throw new Error('there is no plant with this name');
const own = await createTestDatabase({ empty: true });
const database = openTestDatabase(own.url, 8, pino({ level: 'silent' }));
const tables = await openTables(own.url);
try {
  await migrate(database, MIGRATIONS);
  await tables.query("INSERT INTO account (id, name) VALUES ($1, 'Test')", [ACCOUNT_ONE]);
  const payments = await openOperatedPayments(database, tables);
  await wantEvents(payments);
  console.log(JSON.stringify(await explore(payments, plant.orders)));
} finally {
  await Promise.all([tables.close(), database.close()]);
  await own.drop();
}
