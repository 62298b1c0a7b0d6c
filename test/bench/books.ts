import pg from 'pg';
import type { Sample } from './bare-payment.ts';
import { ACCOUNT_ID, amountOf, idempotencyKey, PUBLIC_KEY, restTemplate, SECRET_KEY } from './request.ts';
import { responseColumnOf } from './stored-payments.ts';

/** The two books that must agree: our database and the provider's ledger. */
export type Books = {
  /** Empties both, so that every run starts alike, but not the database if it must keep stored payments. */
  open(): Promise<void>;
  /**
   * Compares both books with the sent payments.
   *
   * @param atProvider false if the run did not use the provider.
   * @returns the bytes that the run wrote.
   * @throws Error that names the difference.
   */
  compare(run: {
    readonly sent: number;
    readonly runId: string;
    readonly atProvider: boolean;
  }): Promise<Written>;
  /** Makes one payment and reads what it wrote before and after its outcome. */
  samplePayment(servicePort: number): Promise<Sample>;
  close(): Promise<void>;
};

/** Bytes that the database wrote during a run. */
export type Written = {
  readonly walBytes: number;
  /** Growth of the tables and their indexes, including dead row versions. */
  readonly diskBytes: number;
};

/**
 * Opens the books.
 *
 * @param keepsStored if true, the initial payments and those of each run stay in the database between runs.
 */
export async function openBooks(
  databaseUrl: string,
  providerPort: number,
  keepsStored = false,
): Promise<Books> {
  const client = new pg.Client(databaseUrl);
  await client.connect();
  const provider = async (method: string, path: string) => {
    const response = await fetch(`http://127.0.0.1:${providerPort}${path}`, { method });
    return response.text();
  };

  const readWritten = async (): Promise<Written> => {
    const { rows } = await client.query<{ wal: number; disk: number }>(WRITTEN);
    return { walBytes: rows[0]?.wal ?? Number.NaN, diskBytes: rows[0]?.disk ?? Number.NaN };
  };
  const sql = rowsBy(await responseColumnOf(client));
  let before: Written = { walBytes: 0, diskBytes: 0 };

  return {
    async open() {
      // In this order, because recovery, which constantly looks for work, locks the tables in the same order.
      if (!keepsStored) await client.query('TRUNCATE transaction, payment');
      await client.query('CHECKPOINT');
      await provider('DELETE', '/ledger');
      before = await readWritten();
    },
    async compare({ sent, runId, atProvider }) {
      const after = await readWritten();
      const written = {
        walBytes: after.walBytes - before.walBytes,
        diskBytes: after.diskBytes - before.diskBytes,
      };
      const { rows } = await client.query<Row>(sql, [
        ACCOUNT_ID,
        idempotencyKey(runId, 0),
        idempotencyKey(runId, sent),
      ]);
      const paid = new Map(rows.map((row) => [row.id, row.cents]));
      if (rows.length !== sent)
        throw new Error(`${sent} payments were sent, but ${rows.length} are in the database`);
      for (const [sequence, row] of rows.sort((a, b) => (a.key < b.key ? -1 : 1)).entries()) {
        const fault = faultOf(row, runId, sequence);
        if (fault) throw new Error(`payment ${sequence}: ${fault}`);
      }
      if (!atProvider) return written;
      const ledger = (await provider('GET', '/ledger')).split('\n').filter((line) => line !== '');
      for (const line of ledger) {
        const [id = '', cents] = line.split(' ');
        if (paid.get(id) !== cents) throw new Error(`the ledger's ${id} is not in the database, or differs`);
        // Payments left in the map at the end never reached the provider; a repeated charge is no longer in the map.
        paid.delete(id);
      }
      if (paid.size > 0) throw new Error(`${paid.size} payments are not in the provider's ledger`);
      return written;
    },
    async samplePayment(servicePort) {
      await provider('POST', '/hold');
      const paying = payOnce(servicePort);
      const draft = await waitFor(() => readSample(client, false));
      await provider('POST', '/release');
      await paying;
      const finished = await waitFor(() => readSample(client, true));
      return { ...finished, draft: draft.record };
    },
    close: () => client.end(),
  };
}

type Row = {
  key: string;
  id: string;
  cents: string;
  status: string;
  payment_status: string;
  responded: boolean;
};

const WRITTEN = `
  SELECT (pg_current_wal_insert_lsn() - '0/0')::float8 AS wal,
    (pg_total_relation_size('payment') + pg_total_relation_size('transaction'))::float8 AS disk`;

const rowsBy = (responseColumn: string) => `
  SELECT p.idempotency_key AS key, t.id, t.amount_minor_units AS cents, t.status, p.status AS payment_status,
    p.${responseColumn} IS NOT NULL AS responded
  FROM transaction t JOIN payment p ON p.id = t.payment_id
  WHERE p.account_id = $1 AND p.idempotency_key >= $2 AND p.idempotency_key <= $3`;

function faultOf(row: Row, runId: string, sequence: number): string | undefined {
  if (row.key !== idempotencyKey(runId, sequence)) return `has the key ${row.key}`;
  if (row.cents !== amountOf(sequence).replace('.', '')) return `has the amount ${row.cents}`;
  if (row.status !== 'SUCCEEDED' || row.payment_status !== 'SUCCEEDED') return `is ${row.payment_status}`;
  return row.responded ? undefined : 'has no response';
}

async function payOnce(servicePort: number): Promise<void> {
  const { bytes } = restTemplate('');
  const response = await fetch(`http://127.0.0.1:${servicePort}/v1/payments`, {
    method: 'POST',
    headers: {
      'content-type': 'application/json',
      'public-api-key': PUBLIC_KEY,
      'private-secret-key': SECRET_KEY,
      'x-idempotency-key': 'bench-sample',
    },
    body: new Uint8Array(bytes.subarray(bytes.indexOf('\r\n\r\n') + 4)),
  });
  const answer = await response.text();
  if (response.status !== 201) throw new Error(`the service responded ${response.status}: ${answer}`);
}

async function readSample(client: pg.Client, responded: boolean): Promise<Sample | undefined> {
  const { rows } = await client.query<{ record: Buffer; response: Buffer | null }>(
    'SELECT record, response FROM payment WHERE account_id = $1 AND (response IS NOT NULL) = $2',
    [ACCOUNT_ID, responded],
  );
  const [row] = rows;
  return (
    row && {
      draft: '',
      record: row.record.toString('base64'),
      response: row.response?.toString('base64') ?? '',
    }
  );
}

const TRIES = 500;

async function waitFor<T>(find: () => Promise<T | undefined>): Promise<T> {
  for (let i = 0; i < TRIES; i++) {
    const found = await find();
    if (found) return found;
    await new Promise((resolve) => setTimeout(resolve, 10));
  }
  throw new Error('the sample payment did not appear');
}
