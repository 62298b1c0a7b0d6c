import { openStoredResponses, readResponse } from '#src/payments/keys/stored-response.ts';
import type { Database, Statement } from '#src/store/engine/database.ts';
import { restBody } from '../support/stored-responses.ts';
import type { World } from './world.ts';

/** Returns the REST bodies of all stored responses, by payment. */
export async function storedBodies(world: World): Promise<Map<string, string>> {
  const query = async ({ text }: Statement, values?: readonly unknown[]) => ({
    rows: await world.query(text, [...(values ?? [])]),
  });
  const responses = await openStoredResponses({ query } as unknown as Database);
  const bodies = new Map<string, string>();
  const sql =
    'SELECT id, response, coalesce(response_record, record) AS shown FROM payment WHERE response IS NOT NULL';
  for (const { id, response, shown } of await world.query(sql)) {
    const stored = { record: shown as Buffer, response: response as Buffer };
    bodies.set(String(id), `${restBody(await readResponse(responses, stored))}`);
  }
  return bodies;
}
