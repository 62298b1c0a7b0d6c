import { randomUUID } from 'node:crypto';
import { expect, it } from 'vitest';
import type { Database, Run } from '#src/store/engine/database.ts';
import { erasePayments } from '#src/store/engine/erased-payments.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

onOwnDatabase({});

const OPERATIONS = 250;
const ERASED = Buffer.from('erased');

it('all responses to the operations of an old payment are erased, and read at most 100 at a time', async () => {
  const paymentId = randomUUID();
  await tables.query(
    `INSERT INTO payment (id, account_id, idempotency_key, request_hash, request_shape, status, record, response, created_at, updated_at)
     VALUES ($1, $2, 'old', '', '', 'SUCCEEDED', 'record', 'response', now() - interval '90 days', now() - interval '90 days')`,
    [paymentId, ACCOUNT_ONE],
  );
  await tables.query(
    `INSERT INTO transaction (id, payment_id, account_id, connection_id, connection_identity, status, amount_minor_units,
       currency, capture, type, method, response, response_record)
     SELECT gen_random_uuid(), $1, $2, 'one', 'one', 'SUCCEEDED', 1, 'USD', false, 'REFUND', 'REFUND', 'response', 'record'
     FROM generate_series(1, $3)`,
    [paymentId, ACCOUNT_ONE, OPERATIONS],
  );
  const read: number[] = [];
  const watched: Database = {
    ...database,
    transaction: (work, timeoutMs) =>
      database.transaction((run) => {
        const noted = async (text: string, values?: readonly unknown[]) => {
          const result = await run(text, values);
          read.push(result.rows.length);
          return result;
        };
        return work(noted as Run);
      }, timeoutMs),
  };
  const erase = {
    payment: () => ({ record: ERASED, response: ERASED, responseRecord: null }),
    operation: () => ({ response: ERASED, responseRecord: ERASED }),
  };
  expect(await erasePayments(watched, ACCOUNT_ONE, { days: 30, erase })).toMatchObject({ due: 1 });
  const left = await tables.query(
    "SELECT count(*)::integer AS n FROM transaction WHERE response = 'erased' AND response_record = 'erased'",
  );
  expect(left).toEqual([{ n: OPERATIONS }]);
  expect(Math.max(...read)).toBe(100);
});
