import { beforeEach, expect } from 'vitest';
import { run } from '#src/commands/retention.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment, headersOne, type RequestJson, withField } from '../support/payment-requests.ts';
import { outputOf } from '../support/run-command.ts';
import { earlier } from '../support/tables.ts';

/** Starts a service for a file's tests. Its tables are empty when a test begins. */
export function onAgedPayments(): void {
  onService();
  beforeEach(async () => {
    await tables.query('TRUNCATE payment, transaction, notification, event, delivery, webhook');
  });
}

/** Runs the command while the service runs. */
export function retention(...args: string[]): Promise<string> {
  return outputOf(run, { DATABASE_URL: server.databaseUrl, ACTOR: 'the night run' }, ...args);
}

type Answer = {
  readonly status: number;
  readonly text: string;
  readonly payment: Record<string, never> & { id: string; status: string };
};

/** Calls the service as a merchant. */
export async function post(path: string, body: RequestJson, key?: string): Promise<Answer> {
  const response = await fetch(`${server.url}${path}`, {
    method: 'POST',
    headers: { ...headersOne(key), 'content-type': 'application/json' },
    body: JSON.stringify(body),
  });
  const text = await response.text();
  return { status: response.status, text, payment: JSON.parse(text) };
}

/** Makes a payment. */
export const pay = (body: RequestJson, key?: string) => post('/v1/payments', body, key);

// The provider's notification of a success prompts one more check, during which a payment is not due for retention.
const AWAITING_NOTIFICATION = `
  SELECT id FROM transaction t
  WHERE t.status = 'SUCCEEDED' AND (t.capture OR t.type = 'REFUND') AND t.created_at > now() - interval '1 minute'
    AND (t.check_at IS NOT NULL OR NOT EXISTS (
      SELECT 1 FROM notification n
      WHERE n.account_id = t.account_id AND n.transaction_id = t.id AND n.settled_at IS NOT NULL
    ))`;

/** Makes everything stored older by a number of days, once the provider's notifications have been processed. */
export async function age(days: number): Promise<void> {
  await expect.poll(() => tables.query(AWAITING_NOTIFICATION)).toEqual([]);
  for (const [table, columns] of [
    ['payment', ['created_at', 'updated_at', 'personal_data_erased_at']],
    ['transaction', ['created_at', 'updated_at']],
    ['notification', ['received_at']],
    ['event', ['created_at']],
    ['delivery', ['created_at']],
  ] as const) {
    const set = columns.map((column) => `${column} = ${earlier(column, `${days} days`)}`).join(', ');
    await tables.query(`UPDATE ${table} SET ${set}`);
  }
}

/** The name of the person in `personal`. */
export const PERSON = 'Perpetua';
/** A payment request that names a person in every field that can. */
export function personal(): RequestJson {
  const named = {
    customer_payer: {
      first_name: PERSON,
      last_name: PERSON,
      email: `${PERSON}@example.com`,
      document: { document_type: 'CC', document_number: PERSON },
      device_fingerprint: PERSON,
    },
    description: `Flowers for ${PERSON}`,
    callback_url: `https://shop.example/${PERSON}`,
    metadata: [{ key: 'who', value: PERSON }],
    additional_data: { order: { items: [{ id: '1', name: PERSON }] } },
  };
  return withField(
    { ...cardPayment(), ...named },
    'payment_method.detail.card.card_data.holder_name',
    PERSON,
  );
}

/** Returns the columns that contain the person's name, or its hash, in any row. */
export async function namings(): Promise<string[]> {
  const rows = await tables.query(`
    SELECT 'payment.record' AS at, record AS bytes FROM payment UNION ALL SELECT 'payment.response', response FROM payment
    UNION ALL SELECT 'payment.response_record', response_record FROM payment
    UNION ALL SELECT 'payment.email_hash', convert_to('${PERSON}', 'UTF8') FROM payment WHERE payer_email_hash IS NOT NULL
    UNION ALL SELECT 'payment.document_hash', convert_to('${PERSON}', 'UTF8') FROM payment
      WHERE payer_document_hash IS NOT NULL
    UNION ALL SELECT 'transaction.response', response FROM transaction
    UNION ALL SELECT 'transaction.response_record', response_record FROM transaction`);
  return rows
    .filter(({ bytes }) => (bytes as Buffer | null)?.includes(PERSON))
    .map(({ at }) => String(at))
    .sort();
}
