import { createHash } from 'node:crypto';
import type { Queries } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import { UUID_V7 } from './outbox.ts';

/** Stands for the account in actions that concern the whole installation. */
export const INSTALLATION = NIL_UUID;

/** An operator's action. No field may contain a secret, a card number or a payer's data. */
export type AuditedAction = {
  /** The account that the action concerns, or INSTALLATION. */
  readonly accountId: string;
  /** Name of the operator, such as `alice@host1` or `operator 1 from 192.0.2.7`; up to 600 characters. */
  readonly actor: string;
  /** A word such as `add-secret` or `refund`; up to 100 characters. */
  readonly action: string;
  /**
   * Id of the object acted on, such as a key, payment or webhook; up to 300 characters. Absent if the object is the
   * account.
   */
  readonly subject?: string;
  /** Details such as the setting, amount or result; up to 1000 characters. */
  readonly detail?: string;
};

/** A row of the audit log. */
export type AuditEntry = Required<AuditedAction> & { readonly id: string; readonly at: Date };

const INSERT = {
  name: 'insert_audit_entry',
  text: `
    INSERT INTO audit_log (account_id, id, actor, action, subject, detail)
    VALUES ($1, ${UUID_V7}, $2, $3, $4, $5)`,
};

/** Writes an action to the audit log. Pass `queriesOf(run)` to commit it together with the change. */
export async function recordAction(queries: Queries, action: AuditedAction): Promise<void> {
  const { accountId, actor, subject = '', detail = '' } = action;
  await queries.query(INSERT, [accountId, actor, action.action, subject, detail]);
}

// The id is made from the minute and a hash of the client, so that all replicas write the same row. The hash replaces
// the random bits of a UUIDv7.
const ADD_FAILED_SIGN_INS = {
  name: 'add_failed_sign_ins',
  text: `
    INSERT INTO audit_log (account_id, id, actor, action, subject, detail)
    VALUES ('${INSTALLATION}',
      (lpad(to_hex((extract(epoch FROM date_trunc('minute', now())) * 1000)::bigint), 12, '0') || $3)::uuid, $1,
      'failed-sign-in', '', 'tries: ' || $2::text)
    ON CONFLICT (account_id, id) DO UPDATE
    SET detail = 'tries: ' || (substr(audit_log.detail, length('tries: ') + 1)::bigint + $2::bigint)::text`,
};

/**
 * Adds failed sign-ins to the entry for their client and minute. No other entry changes after it is written.
 *
 * @param from the client's IP address, or a name for several addresses; up to 500 characters.
 */
export async function addFailedSignIns(queries: Queries, from: string, tries: number): Promise<void> {
  const actor = `unknown from ${from}`;
  const hash = createHash('sha256').update(actor).digest('hex');
  const lastDigits = `7${hash.slice(0, 3)}8${hash.slice(3, 18)}`;
  await queries.query(ADD_FAILED_SIGN_INS, [actor, tries, lastDigits]);
}

const LIST = {
  name: 'list_audit_entries',
  text: `
    SELECT account_id AS "accountId", id, actor, action, subject, detail, created_at AS at
    FROM audit_log WHERE account_id = $1 AND id < $2::uuid ORDER BY id DESC LIMIT $3`,
};

/** An id after all entries, where a newest-first list starts. */
export const AFTER_ALL_ENTRIES = 'ffffffff-ffff-ffff-ffff-ffffffffffff';

/** Lists up to `limit` entries of an account, or of INSTALLATION, that precede the entry `beforeId`, newest first. */
export async function listActions(
  queries: Queries,
  accountId: string,
  { beforeId = AFTER_ALL_ENTRIES, limit }: { readonly beforeId?: string; readonly limit: number },
): Promise<AuditEntry[]> {
  return (await queries.query<AuditEntry>(LIST, [accountId, beforeId, limit])).rows;
}
