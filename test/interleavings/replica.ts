import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Database } from '#src/store/engine/database.ts';
import type { LedgerProvider } from '../payments/ledger-provider.ts';
import type { OperatedPayments } from '../payments/open-operated-payments.ts';
import { earlier, type Tables } from '../support/tables.ts';

export type Deps = OperatedPayments['deps'];

/** Takes a step when the scheduler chooses it. */
export type Step = <T>(name: string, take: () => Promise<T>) => Promise<T>;

/** Takes a step at once. */
export const atOnce: Step = (_name, take) => take();

const DEADLINE_S = 1;

/** Short enough that pauses are known to the second: each is varied by a fifth. */
const SCHEDULE = { firstCheckMs: 5_000, leaseMarginMs: 120_000, closingMarginMs: 59_000 };

/** A time after which a scheduled check is due, but no lease is over and nothing may be closed, even after four of them. */
export const MOMENT_S = 7;
/** A time after which every lease is over, and everything may be closed. */
export const LONG_S = 2 * DEADLINE_S + SCHEDULE.leaseMarginMs / 1_000 + 1;

/** Lets time pass for everything that is stored, except news. */
export async function passTime(tables: Tables, seconds: number): Promise<void> {
  const times = ['created_at', 'updated_at', 'check_at'].map(
    (column) => `${column} = ${earlier(column, `${seconds} seconds`)}`,
  );
  await tables.query(`UPDATE transaction SET ${times}`);
}

/** Receives what a replica does besides its responses. */
export type Watch = {
  /** Called before the provider is asked about a transaction. */
  readonly lookedUp: (transactionId: string) => Promise<void>;
  readonly alarm: (alarm: string) => void;
};

/** Makes a replica of the service, each of whose statements and calls is a step. */
export function replica(deps: Deps, provider: LedgerProvider, watch: Watch, step: Step): Deps {
  const { query, transaction } = deps.database;
  const database: Database = {
    ...deps.database,
    query: (statement, values) => step(statement.name, () => query(statement, values)) as never,
    transaction: (work, timeoutMs) => step('transaction', () => transaction(work, timeoutMs)),
  };
  const { pay, capture, cancel, refund, lookUp } = provider.connection;
  const connection: ProviderConnection = {
    ...provider.connection,
    deadlineMs: DEADLINE_S * 1_000,
    pay: (attempt) => step('pay', () => pay(attempt)),
    capture: capture && ((operation) => step('capture', () => capture(operation))),
    cancel: cancel && ((operation) => step('cancel', () => cancel(operation))),
    refund: refund && ((operation) => step('refund', () => refund(operation))),
    lookUp:
      lookUp &&
      ((query) =>
        step(query.close ? 'close' : 'look up', async () => {
          await watch.lookedUp(query.transactionId);
          return lookUp(query);
        })),
  };
  const connections = new Map([['ledger', connection]]);
  return {
    ...deps,
    database,
    connections: () => connections,
    catalogue: () => ({ ...deps.catalogue(), connections }),
    schedule: SCHEDULE,
    patience: { waitMs: 20, retryAfterS: 1, pause: () => step('waits', async () => {}) },
    checked: {
      ...deps.checked,
      learned: (_about, result) => {
        if (result === 'contradiction' || result === 'mismatch') watch.alarm(result);
      },
    },
  };
}

/** A payment's row as `read_payment_state` returns it. */
type StateRow = {
  capturedMinorUnits: bigint;
  refundedMinorUnits: bigint;
  isReleased: boolean;
  openOperation: string | null;
  readonly parentId: string | null;
};

/** Makes a replica of a faulty release: it does not see that an operation on the payment is open. */
export function forgettingOpenOperation(deps: Deps): Deps {
  return withStates(deps, (rows) => rows.map((row) => ({ ...row, openOperation: null })));
}

/** Makes a replica of a faulty release: it plans an operation as if it were the first on its payment. */
export function forgettingAmounts(deps: Deps): Deps {
  const nothing = { capturedMinorUnits: 0n, refundedMinorUnits: 0n, isReleased: false };
  let isClaimed = false;
  return withStates(
    deps,
    (rows) =>
      isClaimed
        ? rows
        : rows.filter(({ parentId }) => parentId === null).map((row) => ({ ...row, ...nothing })),
    (name) => {
      isClaimed ||= name === 'claim_operation';
    },
  );
}

function withStates(
  deps: Deps,
  change: (rows: readonly StateRow[]) => readonly StateRow[],
  before: (statement: string) => void = () => {},
): Deps {
  const { query } = deps.database;
  const database: Database = {
    ...deps.database,
    async query(statement, values) {
      before(statement.name);
      const result = await query<StateRow>(statement, values);
      if (statement.name !== 'read_payment_state') return result as never;
      return { ...result, rows: change(result.rows) } as never;
    },
  };
  return { ...deps, database };
}
