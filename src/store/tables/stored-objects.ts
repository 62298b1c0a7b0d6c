import type { Database, Nullable } from '../engine/database.ts';
import { NIL_UUID, withoutNulls } from '../engine/rows.ts';

/** The referenced objects that exist in the account. Messages are encoded. */
export type StoredObjects = {
  /** An encoded CustomerPayer. */
  readonly customer: { readonly id: string; readonly payer: Uint8Array } | undefined;
  readonly vaultedToken: VaultedToken | undefined;
};

/** A stored payment method. */
export type VaultedToken = {
  readonly id: string;
  readonly type: string;
  /** For cards, an encoded CardData, the number's JWE and, if known, the number's keyed hash. */
  readonly card:
    | { readonly data: Uint8Array; readonly number: string; readonly fingerprint: string | undefined }
    | undefined;
  /** For wallets, the provider's own token. */
  readonly providerToken: string | undefined;
  /** For wallets, the connection where it was enrolled. */
  readonly connectionId: string | undefined;
  /** The customer that the method belongs to, if any. */
  readonly customerId: string | undefined;
};

/** The customer or the token. The other's columns are undefined. */
type Row = Omit<VaultedToken, 'id' | 'type' | 'card'> & {
  readonly payerId: string | undefined;
  readonly payer: Uint8Array | undefined;
  readonly id: string | undefined;
  readonly type: string | undefined;
  readonly card: Uint8Array | undefined;
  readonly cardNumber: string | undefined;
  readonly fingerprint: string | undefined;
};

/** Returns true if a string can be compared with a uuid column. */
export function isUuid(text: string): boolean {
  return UUID.test(text);
}

const UUID = /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/i;

// A row for each object that exists, with nulls in the other's columns. Not an outer join, for which a distributed engine
// would ask every node.
const FIND = {
  name: 'find_stored_objects',
  text: `
    SELECT c.id AS "payerId", c.payer, NULL::uuid AS id, NULL::text AS type, NULL::bytea AS card, NULL::text AS "cardNumber",
      NULL::uuid AS fingerprint, NULL::text AS "providerToken", NULL::uuid AS "customerId", NULL::text AS "connectionId"
    FROM customer c WHERE c.account_id = $1 AND c.id = $2::uuid AND c.deleted_at IS NULL
    UNION ALL
    SELECT NULL, NULL, t.id, t.type, t.card, t.card_number, t.fingerprint, t.provider_token, t.customer_id, t.connection_id
    FROM vaulted_token t WHERE t.account_id = $1 AND t.id = $3::uuid AND t.active AND t.status = 'ENROLLED'`,
};

/** Finds the objects that a request refers to in its account. A string that is not a UUID finds nothing. */
export async function findStoredObjects(
  database: Database,
  accountId: string,
  ids: { readonly customerId: string | undefined; readonly vaultedToken: string | undefined },
): Promise<StoredObjects> {
  const { customerId, vaultedToken } = ids;
  const values = [
    accountId,
    customerId === undefined ? null : uuidOrNil(customerId),
    vaultedToken === undefined ? null : uuidOrNil(vaultedToken),
  ];
  const rows = (await database.query<Nullable<Row>>(FIND, values)).rows.map(withoutNulls<Row>);
  const found: { -readonly [K in keyof StoredObjects]: StoredObjects[K] } = {
    customer: undefined,
    vaultedToken: undefined,
  };
  for (const { payerId, payer, id, type, card: data, cardNumber: number, fingerprint, ...rest } of rows) {
    const card = data && number ? { data, number, fingerprint } : undefined;
    if (payerId && payer) found.customer = { id: payerId, payer };
    if (id && type) found.vaultedToken = { ...rest, id, type, card };
  }
  return found;
}

/** Replaces a string that is not a UUID with the nil UUID, which finds nothing. */
function uuidOrNil(text: string): string {
  return isUuid(text) ? text : NIL_UUID;
}

const INSERT_CUSTOMER = {
  name: 'insert_customer',
  text: 'INSERT INTO customer (id, account_id, payer) VALUES ($1, $2, $3) ON CONFLICT (account_id, id) DO NOTHING',
};
const INSERT_CHECKOUT_SESSION = {
  name: 'insert_checkout_session',
  text: 'INSERT INTO checkout_session (id, account_id, customer_id) VALUES ($1, $2, $3) ON CONFLICT (account_id, id) DO NOTHING',
};
const INSERT_VAULTED_TOKEN = {
  name: 'insert_vaulted_token',
  text: `
    INSERT INTO vaulted_token (id, account_id, type, card, card_number, fingerprint, active)
    VALUES ($1, $2, $3, $4, $5, $6, true) ON CONFLICT (account_id, id) DO NOTHING`,
};

/** Adds a customer, as an encoded CustomerPayer. An existing customer is not changed. */
export async function insertCustomer(
  database: Database,
  customer: { readonly id: string; readonly accountId: string; readonly payer: Uint8Array },
): Promise<void> {
  await database.query(INSERT_CUSTOMER, [customer.id, customer.accountId, customer.payer]);
}

/** Adds a checkout session. An existing session is not changed. */
export async function insertCheckoutSession(
  database: Database,
  session: { readonly id: string; readonly accountId: string; readonly customerId: string | undefined },
): Promise<void> {
  await database.query(INSERT_CHECKOUT_SESSION, [session.id, session.accountId, session.customerId ?? null]);
}

/** Adds an immediately usable card: an encoded CardData, the number's JWE and keyed hash. An existing one is not changed. */
export async function insertVaultedToken(
  database: Database,
  token: {
    readonly id: string;
    readonly accountId: string;
    readonly type: string;
    readonly card: Uint8Array;
    readonly cardNumber: string;
    readonly fingerprint: string;
  },
): Promise<void> {
  const { id, accountId, type, card, cardNumber, fingerprint } = token;
  await database.query(INSERT_VAULTED_TOKEN, [id, accountId, type, card, cardNumber, fingerprint]);
}
