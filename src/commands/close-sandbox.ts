import type { Queries } from '#src/store/engine/database.ts';
import { listAccounts, listKeys, revokeKey } from '#src/store/tables/accounts.ts';
import { type AuditedAction, INSTALLATION } from '#src/store/tables/audit-log.ts';

/** A command's database transaction, which commits the changes together with their audit log entries. */
export type Session = {
  readonly queries: Queries;
  readonly audit: (entry: Pick<AuditedAction, 'accountId' | 'subject' | 'detail'>) => Promise<void>;
};

/**
 * Revokes every key of the sandbox's accounts. A repetition revokes the keys that were added since.
 *
 * @returns the text to print.
 */
export async function closeSandbox({ queries, audit }: Session): Promise<string> {
  let revoked = 0;
  for (const { id: accountId } of (await listAccounts(queries)).filter(({ isSandbox }) => isSandbox)) {
    const { publicKeys, secrets } = await listKeys(queries, accountId);
    const keys = [
      ...publicKeys.map(({ id }) => ['public', id] as const),
      ...secrets.map(({ id }) => ['secret', id] as const),
    ];
    for (const [kind, subject] of keys) {
      if ((await revokeKey(queries, kind, subject)) === undefined) continue;
      await audit({ accountId, subject });
      revoked += 1;
    }
  }
  if (revoked === 0) await audit({ accountId: INSTALLATION });
  return `revoked ${revoked} keys of the sandbox`;
}
