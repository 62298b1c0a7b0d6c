import { IS_OPEN_ATTEMPT } from '../engine/checks.ts';
import type { Database, Statement } from '../engine/database.ts';
import { NIL_UUID } from '../engine/rows.ts';
import type { ListedPayment, PagePosition } from './list-payments.ts';
import { IS_APPROVAL, outcomeOf } from './outcome-of-payment.ts';

/** Conditions on an account's payments; undefined for any. Times are strings such as 2026-01-31T09:08:07.000001Z. */
export type PaymentConditions = {
  readonly [name in keyof typeof TESTS]?: string | undefined;
} & {
  readonly accountId: string;
  /** Start of the period of creation, inclusive. */
  readonly from: string | undefined;
  /** End of the period of creation, exclusive. */
  readonly before: string | undefined;
};

/** The part of the payments that a search covers. */
export type Reach = {
  /** The payment after which the page begins; undefined for the first page. */
  readonly after: PagePosition | undefined;
  /** The number of payments wanted. */
  readonly wanted: number;
  /** Tests a record for what is not in columns; undefined for no such test. */
  readonly matches: ((record: Uint8Array) => boolean) | undefined;
};

/** The result of a search. */
export type LookedThrough = {
  /** Newest first; no more than wanted. */
  readonly found: readonly ListedPayment[];
  /** The last payment that was looked at, if the search ended at MAX_LOOKED_AT before it found all that were wanted. */
  readonly stoppedAt: PagePosition | undefined;
};

/** Maximum number of payments that one search looks at. */
export const MAX_LOOKED_AT = 10_000;
const LOOKED_AT_ONCE = 1_000;
/** Maximum number of records that are read at once for the test of a record. */
const RECORDS_AT_ONCE = 200;

// Scalar and with OFFSET 0, so that a payment's transactions are always found by the payment: an index on open or succeeded
// transactions would read those of other payments too.
const ofTransaction = (where: string) => `(
  SELECT true FROM (SELECT * FROM transaction WHERE account_id = $1 AND payment_id = p.id OFFSET 0) t
  WHERE ${where} LIMIT 1
)`;

/** The test of each condition on a payment `p` that an index has found. */
const TESTS = {
  payerEmailHash: (value: string) => `p.payer_email_hash = ${value}::uuid`,
  payerDocumentHash: (value: string) => `p.payer_document_hash = ${value}::uuid`,
  customerId: (value: string) => `p.customer_id = ${value}::uuid`,
  merchantOrderId: (value: string) => `p.merchant_order_id = ${value}::text`,
  cardLastFour: (value: string) => `p.card_last_four = ${value}::text`,
  orderPrefix: (value: string) => `starts_with(p.merchant_order_id, ${value}::text)`,
  status: (value: string) => `p.status = ${value}::text`,
  methodType: (value: string) => `p.method_type = ${value}::text`,
  category: (value: string) => `p.category = ${value}::text`,
  cardBrand: (value: string) => `p.card_brand = ${value}::text`,
  country: (value: string) => `p.country = ${value}::text`,
  currency: (value: string) => `p.currency = ${value}::text`,
  leastMinorUnits: (value: string) => `p.amount_minor_units >= ${value}::bigint`,
  mostMinorUnits: (value: string) => `p.amount_minor_units <= ${value}::bigint`,
  connectionId: (value: string) => ofTransaction(`t.connection_id = ${value}::text`),
  unknownOutcome: (value: string) => ofTransaction(`${value}::boolean AND ${IS_OPEN_ATTEMPT}`),
  // Disputes of earlier releases have no row of their own.
  disputed: (value: string) => `${value}::boolean AND (
    p.status IN ('IN_DISPUTE', 'CHARGEBACK')
    OR (SELECT true FROM dispute d WHERE d.account_id = $1 AND d.payment_id = p.id LIMIT 1)
  )`,
  outcome: (value: string) =>
    `${outcomeOf(ofTransaction(IS_APPROVAL), ofTransaction(IS_OPEN_ATTEMPT), 'p.status')} = ${value}::text`,
  refunded: (value: string) => `${value}::boolean AND p.refunded_minor_units > 0`,
  /** A text that the record has somewhere, since messages contain texts as they are; what it means is for the test of a record. */
  recordText: (value: string) => `position(convert_to(${value}::text, 'UTF8') IN p.record) > 0`,
  /** Both bounds of the period of a transaction's success, with a blank between them; either may be infinite. */
  succeeded: (value: string) =>
    ofTransaction(`t.succeeded_at >= split_part(${value}::text, ' ', 1)::timestamptz
      AND t.succeeded_at < split_part(${value}::text, ' ', 2)::timestamptz`),
} as const;

type Condition = keyof typeof TESTS;
const CONDITIONS = Object.keys(TESTS) as Condition[];

/**
 * Indexes in page order, the most selective first: the condition of each, worded like the index. The search reads the
 * first that the conditions have, and tests the payments for all other conditions, so that a statement has one plan.
 */
const INDEXES: readonly (readonly [Condition, name: string, where: string])[] = [
  ['payerEmailHash', 'payer_email', 'p.payer_email_hash = $5::uuid AND p.payer_email_hash IS NOT NULL'],
  [
    'payerDocumentHash',
    'payer_document',
    'p.payer_document_hash = $5::uuid AND p.payer_document_hash IS NOT NULL',
  ],
  ['customerId', 'customer', 'p.customer_id = $5::uuid AND p.customer_id IS NOT NULL'],
  ['merchantOrderId', 'order', 'p.merchant_order_id = $5::text'],
  ['cardLastFour', 'last_four', "p.card_last_four = $5::text AND p.card_last_four <> ''"],
];
/** The indexes that are read if there is neither one of INDEXES nor a narrow list of payments. */
const WIDE_INDEXES: typeof INDEXES = [
  ['methodType', 'method', "p.method_type = $5::text AND p.method_type <> 'CARD'"],
  ['status', 'status', 'p.status = $5::text'],
];

const CREATED_AT = `to_char(p.created_at AT TIME ZONE 'UTC', 'YYYY-MM-DD"T"HH24:MI:SS.US"Z"') AS "createdAt"`;

/** The parameters before the conditions' values: account, period, position, and the value of the index. */
const FIRST_VALUE = 6;

function lookStatement(name: string, payments: string, where: string): Statement {
  const tests = CONDITIONS.map((condition, i) => {
    const value = `$${FIRST_VALUE + i}`;
    return `(${value}::text IS NULL OR coalesce(${TESTS[condition](value)}, false))`;
  });
  const text = `
    SELECT p.id, ${CREATED_AT}, ${tests.join(' AND ')} AS matches
    FROM (
      SELECT p.* FROM ${payments} p
      WHERE p.account_id = $1 AND p.created_at >= $2::timestamptz
        AND (p.created_at, p.id) < ($3::timestamptz, $4::uuid) AND ${where}
      ORDER BY p.created_at DESC, p.id DESC LIMIT ${LOOKED_AT_ONCE}
    ) p
    ORDER BY p.created_at DESC, p.id DESC`;
  // Planned for its values, as an account, payer or order may have one payment or a million: a plan for any value would
  // sort the million.
  return { name: `look_through_payments_by_${name}`, text, isPrepared: false };
}

const BY_INDEX = new Map(
  [...INDEXES, ...WIDE_INDEXES].map(([condition, name, where]) => [
    condition,
    lookStatement(name, 'payment', where),
  ]),
);
const BY_TIME = lookStatement('time', 'payment', '$5::text IS NULL');
const BY_LIST = lookStatement(
  'list',
  '(SELECT * FROM payment WHERE account_id = $1 AND id = ANY ($5::uuid[]) OFFSET 0)',
  'true',
);

/**
 * Lists of payments, from indexes in another order than pages have, the shortest first. A list of up to MAX_LOOKED_AT payments is complete;
 * otherwise the condition is a test like any other.
 */
const LISTS: readonly (readonly [Condition, Statement])[] = [
  [
    'unknownOutcome',
    {
      name: 'list_payments_of_unknown_outcome',
      text: `
        SELECT DISTINCT payment_id AS id FROM (
          SELECT payment_id FROM transaction
          WHERE account_id = $1 AND $2::boolean AND ${IS_OPEN_ATTEMPT}
          ORDER BY type, awaits_payer, created_at LIMIT ${MAX_LOOKED_AT + 1}
        ) open`,
    },
  ],
  [
    'disputed',
    {
      name: 'list_payments_disputed',
      text: `
        (
          SELECT id FROM payment WHERE account_id = $1 AND $2::boolean AND status IN ('IN_DISPUTE', 'CHARGEBACK')
          LIMIT ${MAX_LOOKED_AT + 1}
        ) UNION (
          SELECT payment_id FROM dispute WHERE account_id = $1 AND $2::boolean ORDER BY opened_at, id LIMIT ${MAX_LOOKED_AT + 1}
        )`,
      isPrepared: false,
    },
  ],
  [
    'orderPrefix',
    {
      name: 'list_payments_of_order_prefix',
      text: `
        SELECT id FROM payment
        WHERE account_id = $1 AND merchant_order_id ~>=~ $2::text AND merchant_order_id ~<~ ($2::text || chr(1114111))
        ORDER BY merchant_order_id USING ~<~ LIMIT ${MAX_LOOKED_AT + 1}`,
      isPrepared: false,
    },
  ],
  [
    'succeeded',
    {
      name: 'list_payments_of_success',
      text: `
        SELECT DISTINCT payment_id AS id FROM (
          SELECT payment_id FROM transaction
          WHERE account_id = $1 AND succeeded_at >= split_part($2::text, ' ', 1)::timestamptz
            AND succeeded_at < split_part($2::text, ' ', 2)::timestamptz AND succeeded_at IS NOT NULL
          ORDER BY succeeded_at, id LIMIT ${MAX_LOOKED_AT + 1}
        ) succeeded`,
      isPrepared: false,
    },
  ],
];

type LookedAt = PagePosition & { readonly matches: boolean };
type Look = { readonly statement: Statement; readonly value: unknown };

/**
 * Looks through an account's payments, newest first, until it has found as many as wanted, there are no more, or it has
 * looked at MAX_LOOKED_AT.
 */
export async function lookThroughPayments(
  database: Database,
  conditions: PaymentConditions,
  { after, wanted, matches }: Reach,
): Promise<LookedThrough> {
  const { accountId, from = '-infinity', before = 'infinity' } = conditions;
  const { statement, value } = await lookOf(database, conditions);
  const tests = CONDITIONS.map((condition) => conditions[condition] ?? null);
  const found: ListedPayment[] = [];
  let position = after ?? { createdAt: before, id: NIL_UUID };
  for (let lookedAt = 0; lookedAt < MAX_LOOKED_AT; lookedAt += LOOKED_AT_ONCE) {
    const values = [accountId, from, position.createdAt, position.id, value, ...tests];
    const { rows } = await database.query<LookedAt>(statement, values);
    const candidates = rows.filter((row) => row.matches);
    found.push(
      ...(await readMatching(database, accountId, candidates, { wanted: wanted - found.length, matches })),
    );
    const last = rows.at(-1);
    if (found.length >= wanted || rows.length < LOOKED_AT_ONCE || !last)
      return { found, stoppedAt: undefined };
    position = { createdAt: last.createdAt, id: last.id };
  }
  return { found, stoppedAt: position };
}

/** Chooses the index, or the list of payments, that the search reads. */
async function lookOf(database: Database, conditions: PaymentConditions): Promise<Look> {
  const byIndex = (indexes: typeof INDEXES): Look | undefined => {
    const [condition] =
      indexes.find(
        ([one]) => conditions[one] !== undefined && !(one === 'methodType' && conditions[one] === 'CARD'),
      ) ?? [];
    const statement = condition && BY_INDEX.get(condition);
    return statement && { statement, value: conditions[condition] };
  };
  const narrow = byIndex(INDEXES);
  if (narrow) return narrow;
  for (const [condition, statement] of LISTS) {
    const value = conditions[condition];
    if (value === undefined) continue;
    const { rows } = await database.query<{ id: string }>(statement, [conditions.accountId, value]);
    if (rows.length <= MAX_LOOKED_AT) return { statement: BY_LIST, value: rows.map(({ id }) => id) };
  }
  return byIndex(WIDE_INDEXES) ?? { statement: BY_TIME, value: null };
}

const READ = {
  name: 'read_payments_looked_at',
  text: `SELECT p.id, p.record FROM payment p WHERE p.account_id = $1 AND p.id = ANY ($2::uuid[])`,
};

/** Reads the records of payments, in their order, until as many as wanted pass the test of a record. */
async function readMatching(
  database: Database,
  accountId: string,
  candidates: readonly PagePosition[],
  { wanted, matches = () => true }: Pick<Reach, 'wanted' | 'matches'>,
): Promise<ListedPayment[]> {
  const found: ListedPayment[] = [];
  for (let at = 0; at < candidates.length && found.length < wanted; at += RECORDS_AT_ONCE) {
    const part = candidates.slice(at, at + RECORDS_AT_ONCE);
    const { rows } = await database.query<{ id: string; record: Uint8Array }>(READ, [
      accountId,
      part.map(({ id }) => id),
    ]);
    const records = new Map(rows.map(({ id, record }) => [id, record]));
    for (const { id, createdAt } of part) {
      const record = records.get(id);
      if (record && matches(record)) found.push({ id, createdAt, record });
      if (found.length === wanted) break;
    }
  }
  return found;
}

// Each of the payer's payments within the day is compared, up to a hundred.
const ofSamePayer = (hash: string) => `
  SELECT o.id FROM (
    SELECT * FROM payment s
    WHERE s.account_id = $1 AND s.${hash} = p.${hash} AND s.${hash} IS NOT NULL
      AND s.created_at > p.created_at - interval '1 day' AND s.created_at < p.created_at + interval '1 day'
    ORDER BY s.created_at LIMIT 100
  ) o
  WHERE o.merchant_order_id = p.merchant_order_id AND o.currency = p.currency AND o.amount_minor_units = p.amount_minor_units
    AND o.id <> p.id AND o.status NOT IN ('DECLINED', 'ERROR', 'EXPIRED', 'CANCELED')`;
const DUPLICATES = {
  name: 'find_possible_duplicates',
  text: `
    SELECT p.id,
      ARRAY(${ofSamePayer('payer_email_hash')} UNION ${ofSamePayer('payer_document_hash')} LIMIT 10) AS others
    FROM payment p
    WHERE p.account_id = $1 AND p.id = ANY ($2::uuid[]) AND p.merchant_order_id <> '' AND p.amount_minor_units > 0
      AND p.status NOT IN ('DECLINED', 'ERROR', 'EXPIRED', 'CANCELED')`,
};

/**
 * Finds, for some of an account's payments, others of the same payer, order and amount within a day that took money or
 * may have taken it.
 *
 * @returns the others' ids, up to ten, by the payment's id.
 */
export async function findPossibleDuplicates(
  database: Database,
  accountId: string,
  ids: readonly string[],
): Promise<ReadonlyMap<string, readonly string[]>> {
  if (ids.length === 0) return new Map();
  const { rows } = await database.query<{ id: string; others: string[] }>(DUPLICATES, [accountId, ids]);
  return new Map(rows.filter(({ others }) => others.length > 0).map(({ id, others }) => [id, others]));
}
