import { randomUUID } from 'node:crypto';
import { afterAll, beforeAll, expect, test } from 'vitest';
import { claimOperation } from '#src/store/engine/claim-operation.ts';
import { claimPayment } from '#src/store/engine/claim-payment.ts';
import { claimGrouped, writeChange } from '#src/store/engine/grouped-writes.ts';
import type { WrittenDispute } from '#src/store/engine/write-change.ts';
import { relayEvents } from '#src/store/tables/outbox.ts';
import { attemptToClaim, changeOf, operationClaimOf } from '../support/claimed-rows.ts';
import { openShowing, type ShowingDatabase, scansOf } from '../support/nested-plans.ts';
import { databaseUrl, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { wantEveryEvent } from '../support/tables.ts';

// Reads the plans within functions, which a distributed engine runs on its nodes.
const it = test.skipIf(process.env.CITUS_URL);

// The plan of a call does not show which rows a function reads, so each statement within a function logs its own plan.

onOwnDatabase({});

let showing: ShowingDatabase;
beforeAll(async () => {
  showing = await openShowing(databaseUrl());
});
afterAll(() => showing?.close());

/** Runs every statement of the functions. */
async function runAll(): Promise<void> {
  const { database } = showing;
  await wantEveryEvent(tables);
  const [session, token, customerId] = [randomUUID(), randomUUID(), randomUUID()];
  const soon = "now() + interval '1 hour'";
  await tables.query(`INSERT INTO customer (account_id, id, payer) VALUES ($1, $2, '')`, [
    ...[ACCOUNT_ONE, customerId],
  ]);
  await tables.query(`INSERT INTO checkout_session (account_id, id, expires_at) VALUES ($1, $2, ${soon})`, [
    ...[ACCOUNT_ONE, session],
  ]);
  await tables.query(
    `INSERT INTO one_time_token (account_id, id, card, fingerprint, sealed, expires_at) VALUES ($1, $2, '', $2, '', ${soon})`,
    [ACCOUNT_ONE, token],
  );
  const { claim, attempt } = attemptToClaim({ vault: true });
  const using = { session: { id: session, version: 0 }, oneTimeToken: token };
  await claimPayment(database, { ...claim, ...using, customerId });

  const card = attempt.vaultedToken ?? '';
  const kept = { token: card, fate: 'keep', at: '2026-01-31T09:08:07Z', record: Buffer.alloc(0) } as const;
  const { connectionId, connectionIdentity, minorUnits, currency, capture, type } = claim;
  const status = 'PENDING';
  const columns = { connectionId, connectionIdentity, minorUnits, currency, capture, type, status };
  const unset = {
    parentId: undefined,
    reference: undefined,
    providerPaymentId: undefined,
    vaultedToken: undefined,
    checkInS: undefined,
  };
  const added = { ...columns, ...unset, id: randomUUID(), isFinal: false };
  const other = { id: attempt.transactionId, checkInS: 1 };
  const all = { added, other, method: kept, reopens: session, retakes: session, isFenced: true };
  const correction = {
    ...({ id: randomUUID(), transactionId: attempt.transactionId, number: 1, kind: 'UNDONE' } as const),
    ...{ minorUnits: -575n, currency: 'USD' },
  };
  const dispute: WrittenDispute = {
    row: {
      ...{ id: attempt.transactionId, connectionId, connectionIdentity, reference: 'dp_1', sequence: 1 },
      ...({ stage: 'CHARGEBACK', status: 'NEEDS_RESPONSE', reason: 'OTHER' } as const),
      ...{ rawReason: undefined, networkCode: undefined, minorUnits: 575n, currency: 'USD' },
      ...{ feeMinorUnits: undefined, feeCurrency: undefined, respondBy: undefined, link: undefined },
      reportedAt: undefined,
    },
    ...{ event: 'dispute.opened', at: '2026-01-31T09:08:07Z', eventId: randomUUID() },
    eventRecord: Buffer.alloc(0),
  };
  const written = [
    await writeChange(database, changeOf(attempt, 'PLAIN')),
    await writeChange(database, changeOf(attempt, 'ALL', { ...all, version: 1, fence: 1 })),
    // Takes the session a second time, when it is already in use.
    await writeChange(database, changeOf(attempt, 'AGAIN', { version: 2, retakes: session })),
    await writeChange(
      database,
      changeOf(attempt, 'DROPS', { version: 3, method: { token: card, fate: 'drop' } }),
    ),
    await writeChange(
      database,
      changeOf(attempt, 'CORRECTS', { version: 4, corrections: [correction], dispute }),
    ),
    await writeChange(database, changeOf(attempt, 'OUTDATED')),
  ];
  const kinds = ['written', 'written', 'written', 'written', 'written', 'outdated'];
  expect(written.map(({ kind }) => kind)).toEqual(kinds);

  // The first change is written alone and the others as a group.
  const together = [5, 6, 6].map((version) => changeOf(attempt, `TOGETHER ${version}`, { version }));
  await Promise.all(together.map((change) => writeChange(database, change)));

  const beside = [1, 2, 3].map(() => attemptToClaim());
  await Promise.all(beside.map(({ claim }) => claimGrouped(database, claim)));

  // As on a distributed database.
  const distributed = { ...database, isDistributed: true };
  const more = [1, 2, 3].map(() => attemptToClaim());
  await Promise.all(more.map(({ claim }) => claimGrouped(distributed, claim)));
  await Promise.all(more.map((one) => writeChange(distributed, changeOf(one.attempt, 'SUCCEEDED'))));
  const { relayed, webhooks } = await relayEvents(database, 100);
  expect([relayed > 3, webhooks.length]).toEqual([true, 1]);
  const [base] = more.map((one) => one.attempt);
  if (!base) throw new Error('nothing was claimed');
  await tables.query("UPDATE transaction SET status = 'SUCCEEDED', capture = false WHERE id = $1", [
    base.transactionId,
  ]);
  expect(await claimOperation(database, operationClaimOf(base))).toBe(true);
}

/** Returns a statement without comments, line breaks and INTO variables, because PostgreSQL logs none of them. */
const oneLine = (text: string) =>
  text
    .replaceAll(/--.*/g, '')
    .replaceAll(/\s+/g, ' ')
    .replaceAll(/(?<!INSERT) INTO [a-z_]+(, [a-z_]+)*/g, '')
    .trim();

it('every statement within a function reads and writes only rows of the given account', async () => {
  await runAll();
  const named = await tables.query(
    "SELECT c.relname FROM pg_class c JOIN pg_attribute a ON a.attrelid = c.oid WHERE a.attname = 'account_id' AND c.relkind = 'r'",
  );
  const byAccount = new Set(named.map(({ relname }) => String(relname)));
  for (const { text, plan } of showing.nested) {
    for (const scan of scansOf(plan)) {
      const table = scan['Relation Name'] ?? '';
      if (!byAccount.has(table)) continue;
      const conditions = [scan['Index Cond'], scan['Recheck Cond'], scan.Filter].join(' ');
      expect(conditions, `${text} reads ${table}`).toContain('account_id');
    }
    for (const [, table = '', columns = ''] of text.matchAll(/INSERT INTO (\w+)[^(]*\(([^)]*)\)/g)) {
      if (byAccount.has(table)) expect(columns, `${text} inserts into ${table}`).toContain('account_id');
    }
  }

  // Every statement of every function was seen.
  const functions = await tables.query(
    `SELECT proname AS name, prosrc AS source FROM pg_proc
     WHERE pronamespace = 'public'::regnamespace ORDER BY proname`,
  );
  expect(functions.map(({ name }) => name)).toEqual(FUNCTIONS);
  const seen = showing.nested.map(({ text }) => oneLine(text));
  const unseen = functions.flatMap(({ name, source }) => {
    // Matches from the name of a table to the end of its statement or condition.
    const places = oneLine(String(source)).matchAll(
      /(?<=\b(?:FROM|JOIN|UPDATE|INTO) )(?=(\w+)(.*?)(?:;| ?\)+ THEN| LOOP))/g,
    );
    return [...places]
      .filter(([, table = '']) => byAccount.has(table))
      .map(([, table = '', rest = '']) => table + rest)
      .filter((place) => !seen.some((text) => text.includes(place)))
      .map((place) => `${name}: ${place}`);
  });
  expect(unseen).toEqual([]);
});

const FUNCTIONS = [
  ...[
    'claim_operation_1',
    'claim_payment_1',
    'claim_payments_1',
    'claim_payments_of_account_1',
    'raise_lost_1',
    'relay_events_1',
    'uuid_v7_1',
  ],
  ...['write_change_1', 'write_change_2', 'write_outcomes_1', 'write_outcomes_of_account_1'],
];
