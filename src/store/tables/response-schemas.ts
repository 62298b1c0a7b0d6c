import { createHash } from 'node:crypto';
import type { Database } from '../engine/database.ts';

/** Bytes of a digest; enough to distinguish the few schemas ever stored. */
const DIGEST_BYTES = 8;

const ADD = {
  name: 'add_response_schema',
  text: 'INSERT INTO response_schema (digest, descriptors) VALUES ($1, $2) ON CONFLICT (digest) DO NOTHING',
};
const READ = {
  name: 'read_response_schema',
  text: 'SELECT descriptors FROM response_schema WHERE digest = $1',
};

/**
 * Stores the schema used to render responses, unless it is already stored.
 *
 * @param descriptors an encoded google.protobuf.FileDescriptorSet.
 * @returns the schema's digest.
 */
export async function storeResponseSchema(database: Database, descriptors: Uint8Array): Promise<Uint8Array> {
  const digest = createHash('sha256').update(descriptors).digest().subarray(0, DIGEST_BYTES);
  await database.query(ADD, [digest, descriptors]);
  return digest;
}

/** Reads a stored schema by its digest; undefined if there is none. */
export async function readResponseSchema(
  database: Database,
  digest: Uint8Array,
): Promise<Uint8Array | undefined> {
  const { rows } = await database.query<{ descriptors: Buffer }>(READ, [digest]);
  return rows[0]?.descriptors;
}
