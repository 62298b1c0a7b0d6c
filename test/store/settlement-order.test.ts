import { expect, it } from 'vitest';
import { newId } from '#src/new-id.ts';
import { NIL_UUID } from '#src/store/engine/rows.ts';
import { extendCoverage } from '#src/store/tables/settlement-coverage.ts';
import {
  type FoundDifference,
  storeDifferences,
  takeAlarms,
} from '#src/store/tables/settlement-differences.ts';
import {
  type LineResult,
  linesByKey,
  storeMatches,
  storeResults,
} from '#src/store/tables/settlement-matches.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({ empties: 'settlement_difference, settlement_line, settlement_match, settlement_coverage' });

const IDENTITY = 'identity';
const SUBJECTS = Array.from({ length: 1_000 }, () => newId(ACCOUNT_ONE));
const OTHERS = SUBJECTS.toReversed();
const ROUNDS = 3;

function store(subjects: readonly string[], detail: string): Promise<void> {
  const found = subjects.map((subject): FoundDifference => {
    return { kind: 'status_differs', subject, connectionId: 'one', paymentId: subject, detail };
  });
  return storeDifferences(database, ACCOUNT_ONE, IDENTITY, { subjects, found });
}

it('processes that store, end and take the same differences in other orders do not deadlock', async () => {
  const take = (subjects: readonly string[]) =>
    takeAlarms(database, ACCOUNT_ONE, IDENTITY, { kind: 'status_differs', subjects });
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all([
      store(SUBJECTS, `first ${round}`),
      store(OTHERS, `second ${round}`),
      take(SUBJECTS),
      storeDifferences(database, ACCOUNT_ONE, IDENTITY, { subjects: OTHERS, found: [] }),
    ]);
  }
  await store(SUBJECTS, 'last');
  expect(await take(OTHERS)).toHaveLength(SUBJECTS.length);
  expect(await take(SUBJECTS)).toEqual([]);
});

it('processes that match the same lines in other orders do not deadlock', async () => {
  await tables.query(
    `INSERT INTO settlement_line (account_id, connection_identity, line_key, connection_id, file_id, line_number, report,
       kind, raw_kind, gross, fee, tax, net, settlement_currency)
     SELECT $1, $2, key, 'one', $1, n, 'report', 'payment', 'payment', 100, -3, 0, 97, 'USD'
     FROM unnest($3::text[]) WITH ORDINALITY AS l (key, n)`,
    [NIL_UUID, IDENTITY, SUBJECTS],
  );
  const transaction = {
    ...{ accountId: ACCOUNT_ONE, type: 'PURCHASE', capture: true, minorUnits: 100n, currency: 'USD' },
    ...{ providerPaymentId: undefined, connectionIdentity: IDENTITY },
  };
  const lines = await linesByKey(database, IDENTITY, SUBJECTS);
  const results = lines.map((line): LineResult => {
    return { line, transaction: { ...transaction, id: line.key, paymentId: line.key } };
  });
  const match = async (own: readonly LineResult[]) => {
    await storeMatches(database, IDENTITY, own);
    await storeResults(database, IDENTITY, own);
  };
  for (let round = 0; round < ROUNDS; round++) {
    await tables.query('TRUNCATE settlement_match');
    await Promise.all([match(results), match(results.toReversed()), match(results)]);
  }
  expect(await tables.query('SELECT count(*)::integer AS n FROM settlement_match')).toEqual([{ n: 1_000 }]);
  expect(await tables.query('SELECT DISTINCT result FROM settlement_line')).toEqual([{ result: 'matched' }]);
});

it('processes that extend the covered time of the same reports in other orders do not deadlock', async () => {
  const covered = SUBJECTS.map((report) => ({ report, from: new Date(1_000), until: new Date(2_000) }));
  for (let round = 0; round < ROUNDS; round++) {
    await Promise.all([
      extendCoverage(database, IDENTITY, covered),
      extendCoverage(database, IDENTITY, covered.toReversed()),
      extendCoverage(database, IDENTITY, covered),
    ]);
  }
  expect(await tables.query('SELECT count(*)::integer AS n FROM settlement_coverage')).toEqual([
    { n: 1_000 },
  ]);
});
