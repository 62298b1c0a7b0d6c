import type { Capabilities } from '#src/connectors/capabilities.ts';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { DueFollowUp } from '#src/store/engine/follow-ups.ts';
import type { TransactionInState } from '../model/state.ts';
import { readLeased } from './finish-operation.ts';

/** A transaction as it stands, with its payment and the terms of its provider. */
export type FollowedUp = TransactionInState & { readonly terms: Capabilities };

/** Reads a leased transaction with its payment. */
export async function readFollowedUp(
  { database }: { readonly database: Database },
  { capabilities: terms }: ProviderConnection,
  due: Omit<DueFollowUp, 'connectionId' | 'fence'>,
): Promise<FollowedUp> {
  return { ...(await readLeased(database, due)), terms };
}
