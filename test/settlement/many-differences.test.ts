import { expect, it } from 'vitest';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { storeDifferences } from '#src/store/tables/settlement-differences.ts';
import { LINES_AT_ONCE } from '#src/store/tables/settlement-matches.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

// One connection, whose prepared statements PostgreSQL plans for any values after the fifth time.
onOwnDatabase({ maxConnections: 1 });

it('the differences of a report with tens of thousands of unknown lines are stored lot by lot, and end', async () => {
  const lotOf = (lot: number) => Array.from({ length: LINES_AT_ONCE }, (_, n) => `line ${lot} ${n}`);
  const detail = 'a payment with an id that nobody knows';
  for (let lot = 1; lot <= 8; lot++) {
    const subjects = lotOf(lot);
    const found = subjects.map((subject) => ({
      ...{ kind: 'unknown_line' as const, subject, connectionId: 's', paymentId: undefined, detail },
    }));
    // A statement that takes five seconds is canceled.
    await storeDifferences(database, NIL_UUID, 'stripe 1', { subjects, found });
  }
  await storeDifferences(database, NIL_UUID, 'stripe 1', { subjects: lotOf(8), found: [] });
  const open = await tables.query(
    'SELECT count(*)::integer AS open FROM settlement_difference WHERE ended_at IS NULL',
  );
  expect(open).toEqual([{ open: 7 * LINES_AT_ONCE }]);
});
