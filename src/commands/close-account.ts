import type { Database } from '#src/store/engine/database.ts';
import { type AccountRemains, countRemains } from '#src/store/tables/account-remains.ts';
import { type Account, listKeys, revokeKey } from '#src/store/tables/accounts.ts';
import type { AuditedAction } from '#src/store/tables/audit-log.ts';
import { endSessions } from '#src/store/tables/checkout-sessions.ts';
import { deleteWebhook, listWebhooks } from '#src/store/tables/webhooks.ts';
import { table } from './table.ts';

/** Options of a closure. */
export type CloseOptions = {
  /** false only tells what is open. */
  readonly confirm: boolean;
  readonly audit: (entry: Pick<AuditedAction, 'accountId' | 'subject' | 'detail'>) => Promise<void>;
};

/**
 * Closes an account whose merchant leaves: revokes its keys, then ends its checkout sessions and deletes its webhooks.
 * Payments, and whatever is open at providers, stay, and are followed to their end. Each step is a commit of its own; a
 * repetition completes an interrupted closure.
 *
 * @returns the text to print.
 */
export async function closeAccount(
  database: Database,
  { id: accountId, name }: Account,
  { confirm, audit }: CloseOptions,
): Promise<string> {
  const open = await countRemains(database, accountId);
  if (!confirm) {
    await audit({ accountId, detail: `dry run: ${counts(open)}` });
    return `Open in the account ${name}:\n${rows(open)}\n\n${WOULD}\n${remaining(open)}`;
  }
  // Nothing new begins once no key is valid.
  await revokeKeys(database, accountId, audit);
  const sessions = await endSessions(database, accountId);
  const webhooks = await listWebhooks(database, accountId);
  for (const { id } of webhooks) {
    await deleteWebhook(database, accountId, id);
    await audit({ accountId, subject: id, detail: 'webhook deleted' });
  }
  const left = await countRemains(database, accountId);
  await audit({ accountId, detail: `closed: sessions ended ${sessions}; left: ${counts(left)}` });
  return `Closed the account ${name}: keys revoked ${open.keys}, sessions ended ${sessions}, webhooks deleted ${webhooks.length}\n${rows(left)}\n\n${remaining(left)}`;
}

async function revokeKeys(database: Database, accountId: string, audit: CloseOptions['audit']) {
  const { publicKeys, secrets } = await listKeys(database, accountId);
  const keys = [
    ...publicKeys.map(({ id }) => ['public', id] as const),
    ...secrets.map(({ id }) => ['secret', id] as const),
  ];
  for (const [kind, subject] of keys) {
    if ((await revokeKey(database, kind, subject)) === undefined) continue;
    await audit({ accountId, subject, detail: 'revoked' });
  }
}

const NAMES: Readonly<Record<Exclude<keyof AccountRemains, 'lastCheckAt'>, string>> = {
  unfinished: 'payments to be checked, or awaiting their payer',
  authorizations: 'authorizations held',
  disputes: 'disputes open',
  wallets: 'enrolled wallets',
  cards: 'stored cards',
  undelivered: 'events to be delivered',
  sessions: 'checkout sessions that accept payments',
  webhooks: 'webhooks',
  keys: 'valid keys',
};

function rows(open: AccountRemains): string {
  return table(Object.entries(NAMES).map(([key, name]) => [name, String(open[key as keyof typeof NAMES])]));
}

function counts(open: AccountRemains): string {
  return Object.keys(NAMES)
    .map((key) => `${key} ${open[key as keyof typeof NAMES]}`)
    .join(', ');
}

const WOULD =
  'With --confirm, the keys are revoked, the sessions end, and the webhooks are deleted with the events that they still owe: nobody can be told what happens later. Nothing was changed.';

/** Says what stays, and until when. */
function remaining({
  unfinished,
  authorizations,
  lastCheckAt,
  disputes,
  wallets,
  cards,
}: AccountRemains): string {
  const lines = [
    ...(unfinished > 0 ? ['Payments that are open still get their outcome from their providers.'] : []),
    ...(authorizations > 0
      ? ['Authorizations that are held lapse at the end of their term, and their money is released.']
      : []),
    ...(lastCheckAt ? [`The last planned check of these is at ${lastCheckAt.toISOString()}.`] : []),
    ...(disputes > 0
      ? ['Disputes stay open at their providers, which decide them; their reports still change the payments.']
      : []),
    ...(wallets + cards > 0
      ? [
          'Stored cards and wallets cannot be charged without a key; npm run retention -- --methods <days> erases them.',
        ]
      : []),
    'Payments stay for exports and disputes. npm run retention -- --payments <days> erases the personal data in them.',
  ];
  return lines.join('\n');
}
