import type { Queries } from '../engine/database.ts';
import { onlyRow } from '../engine/rows.ts';

/** Counts of an account's open work. */
export type AccountRemains = {
  /** Payments whose outcome the service still asks their providers for, or that wait for their payer. */
  readonly unfinished: number;
  /** Authorizations that are neither captured, canceled nor lapsed. */
  readonly authorizations: number;
  /** When the last of both is asked about; null without any. */
  readonly lastCheckAt: Date | null;
  readonly disputes: number;
  /** Wallets that can be charged, and stored cards. */
  readonly wallets: number;
  readonly cards: number;
  /** Events that are still to be delivered, each counted once for every webhook. */
  readonly undelivered: number;
  readonly sessions: number;
  readonly webhooks: number;
  readonly keys: number;
};

// Each count has an index on open rows, or on the account's.
const COUNT = {
  name: 'count_account_remains',
  text: `
    SELECT o.unfinished, o.authorizations, o.last_check_at AS "lastCheckAt",
      (SELECT count(*)::integer FROM dispute WHERE account_id = $1 AND closed_at IS NULL) AS disputes,
      (SELECT count(*)::integer FROM vaulted_token WHERE account_id = $1 AND connection_id IS NOT NULL
        AND status IN ('ENROLLED', 'READY_TO_ENROLL')) AS wallets,
      (SELECT count(*)::integer FROM vaulted_token WHERE account_id = $1 AND card_number IS NOT NULL) AS cards,
      ((SELECT count(*) FROM delivery WHERE account_id = $1 AND due_at IS NOT NULL)
        + (SELECT count(*) FROM event WHERE account_id = $1 AND relayed_at IS NULL))::integer AS undelivered,
      (SELECT count(*)::integer FROM checkout_session
        WHERE account_id = $1 AND (expires_at IS NULL OR expires_at > now())) AS sessions,
      (SELECT count(*)::integer FROM webhook WHERE account_id = $1) AS webhooks,
      ((SELECT count(*) FROM public_key WHERE account_id = $1 AND revoked_at IS NULL)
        + (SELECT count(*) FROM secret_key WHERE account_id = $1 AND revoked_at IS NULL))::integer AS keys
    FROM (
      SELECT (count(*) FILTER (WHERE t.status IN ('CREATED', 'PENDING')))::integer AS unfinished,
        (count(*) FILTER (WHERE t.status = 'SUCCEEDED' AND t.parent_id IS NULL AND NOT t.capture AND NOT p.released))::integer
          AS authorizations,
        max(t.check_at) FILTER (WHERE NOT p.released) AS last_check_at
      FROM transaction t JOIN payment p ON p.account_id = $1 AND p.id = t.payment_id
      WHERE t.account_id = $1 AND t.check_at IS NOT NULL
    ) o`,
};

/** Counts an account's open work. @param accountId a UUID. */
export async function countRemains(queries: Queries, accountId: string): Promise<AccountRemains> {
  return onlyRow(await queries.query<AccountRemains>(COUNT, [accountId]));
}
