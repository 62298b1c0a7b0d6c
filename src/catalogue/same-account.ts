import type { AccountReport } from '#src/connectors/port/account-report.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { countOwedAt } from '#src/store/tables/catalogue-versions.ts';
import type { ConnectionAccount } from '#src/store/tables/connection-secrets.ts';
import { isOfAccount } from './credentials.ts';
import { describeOwed } from './require-safe-change.ts';

/** A connection opened with another secret, and the account for which its id stands. */
export type AccountCheck = {
  readonly database: Database;
  readonly known: ConnectionAccount;
  readonly opened: Pick<ProviderConnection, 'identity' | 'accountNamedBy'>;
  /** The identity of the present secrets; undefined if the connection is not in force or cannot be opened with them. */
  readonly present: string | undefined;
  /** The provider's answer about the opened connection; undefined if it was not asked. */
  readonly report: AccountReport | undefined;
  /** Asks the provider for the account of the present secrets; undefined if it does not tell. */
  readonly askPresent: () => Promise<string | undefined>;
  /** The operator says that the account is the same. */
  readonly confirmSameAccount: boolean;
};

/**
 * Checks that a connection opened with another secret is the same account as before: its open payments can be looked up
 * nowhere else. Stripe and Mercado Pago may name an account by its key, so their account is asked for.
 *
 * @returns the account to store; undefined if it is stored as it is.
 * @throws ServiceError CONNECTION_REPOINTED.
 */
export async function requireSameAccount(check: AccountCheck): Promise<ConnectionAccount | undefined> {
  const { known, opened, report, askPresent } = check;
  const { connectionId, laterIdentities } = known;
  const account = report?.result === 'ACCEPTED' ? report.account : undefined;
  const isKnown = isOfAccount(known, opened.identity);
  if (check.present !== undefined && !isOfAccount(known, check.present)) await requireNothingOpen(check);
  if (!isKnown && !differsByCredential(known.identity, opened)) {
    throw repointed(connectionId, 'the secret belongs to another environment or address of the provider');
  }
  const before = known.providerAccount ?? (isKnown ? undefined : await askPresent());
  if (before !== undefined && account !== undefined && before !== account) {
    throw repointed(connectionId, `the secret belongs to the account ${account}, not to ${before}`);
  }
  if (!isKnown && (before === undefined || account === undefined)) await requireConfirmation(check);
  const providerAccount = before ?? account ?? null;
  if (isKnown) return providerAccount === known.providerAccount ? undefined : { ...known, providerAccount };
  return { ...known, laterIdentities: [...laterIdentities, opened.identity], providerAccount };
}

const DIGEST = / [0-9a-f]{16}$/;

/** Returns true if two identities differ at most by the digest of the credential that names the account. */
function differsByCredential(
  first: string,
  { identity, accountNamedBy }: Pick<ProviderConnection, 'identity' | 'accountNamedBy'>,
): boolean {
  return accountNamedBy !== undefined && first.replace(DIGEST, '') === identity.replace(DIGEST, '');
}

/** Requires the operator's word that the account is the same, which counts only if nothing is open there. */
async function requireConfirmation({ database, known, confirmSameAccount }: AccountCheck): Promise<void> {
  const { connectionId } = known;
  const unknown = 'the provider does not tell whether the secret belongs to the same account';
  const owed = describeOwed(await countOwedAt(database, connectionId));
  if (owed !== '') throw repointed(connectionId, `${unknown}, and the connection has ${owed}`);
  if (confirmSameAccount) return;
  throw new ServiceError(
    'CONNECTION_REPOINTED',
    `connection ${connectionId}: ${unknown}; nothing was stored; confirm it with confirm_same_account`,
  );
}

/** A start with another secret in the environment made payments that only that secret's identity can look up. */
async function requireNothingOpen({ database, known: { connectionId } }: AccountCheck): Promise<void> {
  const owed = describeOwed(await countOwedAt(database, connectionId));
  if (owed === '') return;
  throw repointed(connectionId, `it was last started with another account's secret, and has ${owed}`);
}

function repointed(connectionId: string, why: string): ServiceError {
  const message = `connection ${connectionId}: ${why}; nothing was stored; give another account another connection id`;
  return new ServiceError('CONNECTION_REPOINTED', message);
}
