import { beforeAll, expect, it } from 'vitest';
import { readExportRequest } from '#src/exports/export-request.ts';
import { openExport } from '#src/exports/open-export.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { readCsv } from '../support/read-csv.ts';

onOwnDatabase({});
beforeAll(async () => {
  // As many transactions as payments may have, with texts as long as they may be.
  await tables.query(
    `WITH p AS (
       INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, merchant_order_id,
         created_at)
       SELECT gen_random_uuid(), $1, 'key-' || n, '', '', 'SUCCEEDED', '', repeat('订', 255), '2026-09-15T12:00:00Z'
       FROM generate_series(1, 30) n RETURNING id)
     INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, succeeded_at, merchant_reference, provider_payment_id)
     SELECT gen_random_uuid(), id, $1, repeat('连', 255), 'a', 'SUCCEEDED', 100, 'USD', true, '2026-09-15T12:00:00Z',
       repeat('单', 255), repeat('号', 255) FROM p, generate_series(1, 200)`,
    [ACCOUNT_ONE],
  );
});

it.each([['movements'], ['transactions']] as const)(
  'a piece of %s has at most 64 KiB, however long the texts are and however many transactions a payment has',
  async (kind) => {
    const { pieces, tally } = await openExport(database, readExportRequest(kind, { month: '2026-09' }));
    const texts: string[] = [];
    for await (const piece of pieces()) texts.push(piece);
    expect(Math.max(...texts.map((text) => Buffer.byteLength(text)))).toBeLessThan(64 * 1024);
    expect(readCsv(texts.join(''))).toHaveLength(6_000);
    expect(tally).toEqual({ rows: 6_000, sums: new Map([['USD', 600_000n]]) });
  },
);
