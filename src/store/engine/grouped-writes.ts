import {
  byKey,
  CLAIM_MANY,
  CLAIM_PARAMETERS,
  type Claim,
  claimPayment,
  isPlainClaim,
} from './claim-payment.ts';
import type { Database, Nullable } from './database.ts';
import { arraysOf, arrayValues, queryMany } from './function-call.ts';
import { groupCommits } from './group-commit.ts';
import {
  byPayment,
  isPlainChange,
  OUTCOME_PARAMETERS,
  type OutcomeRow,
  type StoredChange,
  toWritten,
  WRITE_OUTCOMES,
  type WrittenChange,
  writeSingleChange,
} from './write-change.ts';

/** One of the two writes of a payment: its claim, before a provider is called, or a change, such as its outcome. */
type Write =
  | { readonly accountId: string; readonly claim: Claim; readonly change?: never }
  | { readonly accountId: string; readonly claim?: never; readonly change: StoredChange };

const write = groupCommits<Write, boolean | WrittenChange>({
  kindOf: ({ claim }) => (claim ? 'claim' : 'change'),
  one: (database, { claim, change }) =>
    claim ? claimPayment(database, claim) : writeSingleChange(database, change),
  many: writeMany,
});

/**
 * Claims like `claimPayment`, in one commit with other claims and changes that arrive at the same time.
 *
 * @param stepMs how long the provider's call takes that the claim precedes: beside a slow call, the claim waits a moment
 *   for other writes.
 */
export function claimGrouped(database: Database, claim: Claim, stepMs?: number): Promise<boolean> {
  return write(database, { accountId: claim.accountId, claim }, stepMs) as Promise<boolean>;
}

/**
 * Writes the whole effect of a report on a payment, in one call, and in one commit with other changes and claims that
 * arrive at the same time.
 *
 * @param stepMs how long the provider's call takes that the change follows, as for a claim.
 */
export function writeChange(
  database: Database,
  change: StoredChange,
  stepMs?: number,
): Promise<WrittenChange> {
  return write(database, { accountId: change.accountId, change }, stepMs) as Promise<WrittenChange>;
}

/** Writes the plain claims and changes. All others, and changes that could not be written, are left to be written alone. */
async function writeMany(
  database: Database,
  writes: readonly Write[],
): Promise<(boolean | WrittenChange | undefined)[]> {
  const claims = writes.flatMap(({ claim }) => (claim && isPlainClaim(claim) ? [claim] : [])).sort(byKey);
  const changes = writes
    .flatMap(({ change }) => (change && isPlainChange(change) ? [change] : []))
    .sort(byPayment);
  const rows = await writeRows(database, claims, changes);
  const ids = new Set(rows.claimed);
  const claimed = new Map(claims.map((claim) => [claim, ids.has(claim.paymentId)]));
  const written = new Map(rows.written.map((row) => [changes[Number(row.place) - 1], toWritten(row)]));
  return writes.map(({ claim, change }) => (claim ? claimed.get(claim) : written.get(change)));
}

/** The payments that were claimed, and the changes that were written. */
type WrittenRows = { readonly claimed: readonly string[]; readonly written: readonly OutcomeRow[] };

// The claims are written first, whatever the group, so that no two groups can deadlock.
const BOTH = {
  name: 'claim_and_write_many',
  text: `
    SELECT id, NULL::bigint AS place, NULL::integer AS fence, NULL::boolean AS has_event, NULL::bytea AS earlier_response,
      NULL::bytea AS earlier_record
    FROM claim_payments_1(${arraysOf(CLAIM_PARAMETERS)}) AS id
    UNION ALL
    SELECT NULL::uuid, place, fence, has_event, earlier_response, earlier_record
    FROM write_outcomes_1(${arraysOf(OUTCOME_PARAMETERS, CLAIM_PARAMETERS.length)})`,
};

/** @param claims only claims, or only changes, if the database is distributed. */
async function writeRows(
  database: Database,
  claims: readonly Claim[],
  changes: readonly StoredChange[],
): Promise<WrittenRows> {
  if (claims.length > 0 && changes.length > 0) {
    type Row = Nullable<OutcomeRow & { readonly id: string }>;
    const values = [...arrayValues(CLAIM_PARAMETERS, claims), ...arrayValues(OUTCOME_PARAMETERS, changes)];
    const { rows } = await database.query<Row>(BOTH, values);
    const written = rows.flatMap((row) => (isOutcome(row) ? [row] : []));
    return { claimed: rows.flatMap(({ id }) => id ?? []), written };
  }
  if (claims.length > 0) {
    const { rows } = await queryMany<{ id: string }, Claim>(database, CLAIM_MANY, CLAIM_PARAMETERS, claims);
    return { claimed: rows.map(({ id }) => id), written: [] };
  }
  if (changes.length === 0) return { claimed: [], written: [] };
  const outcomes = [database, WRITE_OUTCOMES, OUTCOME_PARAMETERS, changes] as const;
  return { claimed: [], written: (await queryMany<OutcomeRow, StoredChange>(...outcomes)).rows };
}

function isOutcome(row: Nullable<OutcomeRow>): row is OutcomeRow {
  return row.place !== null;
}
