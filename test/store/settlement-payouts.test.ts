import { expect, it } from 'vitest';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { payoutsOfFile, sumPayouts } from '#src/store/tables/settlement-payouts.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';

onOwnDatabase({});

const FILE = '11111111-1111-4111-8111-111111111111';
/** The lines of a file are read in pages of a hundred thousand. */
const LINES = 100_001;

it('the payouts of a file of several pages are read, each once, whatever the order of its lines', async () => {
  await tables.query(
    `INSERT INTO settlement_line (account_id, connection_identity, line_key, connection_id, file_id, line_number, report,
       kind, raw_kind, gross, fee, tax, net, settlement_currency, payout_reference)
     SELECT $1, 'identity', n, 'one', $2, n, '', 'payment', 'payment', 100, 0, 0, 100, 'USD',
       CASE WHEN n = $3 THEN 'last' WHEN n % 150 > 0 THEN 'payout ' || n % 150 END
     FROM generate_series(1, $3::integer) AS n`,
    [NIL_UUID, FILE, LINES],
  );
  const expected = [...Array.from({ length: 149 }, (_, n) => `payout ${n + 1}`), 'last'];
  expect((await payoutsOfFile(database, FILE)).sort()).toEqual(expected.sort());
  expect(await sumPayouts(database, 'identity', ['last', 'payout 7'])).toEqual([
    { reference: 'last', currency: 'USD', remainder: 100n, hasPayout: false, hasLines: true },
    { reference: 'payout 7', currency: 'USD', remainder: 66_700n, hasPayout: false, hasLines: true },
  ]);
});
