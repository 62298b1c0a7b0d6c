import type { Run } from '../engine/database.ts';

/** Thrown if keys differ from those that the database has seen before. */
export class InstallationKeysError extends Error {
  override readonly name = 'InstallationKeysError';
}

/**
 * Stores the check values of keys that are not yet known.
 *
 * @returns the check values of all keys that the installation knows, by name; values stored earlier win.
 */
export async function storeKeyChecks(
  run: Run,
  checks: ReadonlyMap<string, Uint8Array>,
): Promise<Map<string, Uint8Array>> {
  await run(
    `INSERT INTO installation_key (name, check_value) SELECT * FROM unnest($1::text[], $2::bytea[])
     ON CONFLICT (name) DO NOTHING`,
    [[...checks.keys()], [...checks.values()]],
  );
  return readKeyChecks(run);
}

/** Reads the check values of all keys that the installation knows, by name. */
export async function readKeyChecks(run: Run): Promise<Map<string, Uint8Array>> {
  const { rows } = await run<{ name: string; check_value: Buffer }>(
    'SELECT name, check_value FROM installation_key ORDER BY name',
  );
  return new Map(rows.map(({ name, check_value }) => [name, check_value]));
}

/** Deletes the check value of a key that is no longer needed. */
export async function forgetKey(run: Run, name: string): Promise<void> {
  await run('DELETE FROM installation_key WHERE name = $1', [name]);
}

/**
 * Counts the stored cards, one-time tokens, webhook secrets and connections' secrets whose ciphertext begins with a
 * prefix. Expired tokens do not count: they no longer need their key, and are swept once the service runs. Reads the tables in full.
 */
export async function countSealed(run: Run, prefix: string): Promise<bigint> {
  const { rows } = await run<{ sealed: bigint }>(
    `SELECT (SELECT count(*) FROM vaulted_token WHERE starts_with(card_number, $1))
       + (SELECT count(*) FROM one_time_token WHERE starts_with(sealed, $1) AND expires_at > now())
       + (SELECT count(*) FROM webhook WHERE starts_with(secret, $1))
       + (SELECT count(*) FROM webhook WHERE starts_with(previous_secret, $1))
       + (SELECT count(*) FROM webhook WHERE starts_with(credentials, $1))
       + (SELECT count(*) FROM connection_secret WHERE starts_with(sealed, $1)) AS sealed`,
    [prefix],
  );
  return rows[0]?.sealed ?? 0n;
}
