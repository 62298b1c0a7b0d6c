import { randomUUID } from 'node:crypto';
import { beforeAll, expect } from 'vitest';
import { type Payment, Payment_Status, PaymentSchema } from '#gen/payments/v1/payment_pb.js';
import { CreatePaymentRequestSchema } from '#gen/payments/v1/payment_service_pb.js';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import { CARDS_ONLY, type Capabilities } from '#src/connectors/port/capabilities.ts';
import type { CallSlots, LookUp, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { type KeyedResponse, openStoredResponses } from '#src/payments/keys/stored-response.ts';
import { createBinTable } from '#src/payments/method/bin-table.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { addSandboxFixtures } from '#src/server/sandbox-fixtures.ts';
import type { Database } from '#src/store/engine/database.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { jsonEncoder } from '#src/wire/wire-json-encode.ts';
import { type CoreDeps, coreDeps } from '../support/core-deps.ts';
import { database, onOwnDatabase, tables } from '../support/own-database.ts';
import { ACCOUNT_ONE, ENROLLED_WALLET, type RequestJson } from '../support/payment-requests.ts';
import { onMovedClock } from '../support/process-clock.ts';
import { silentConnection } from '../support/silent-connection.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Tables } from '../support/tables.ts';

/** A script: the providers' behavior, and the faults meanwhile. */
export type Script = {
  /** Outcomes of a payment at targets t1, t2, …; there are as many targets as outcomes. */
  readonly outcomes: readonly Outcome[];
  readonly maxAttempts?: number | undefined;
  /** Capabilities of a target besides the common ones: cards and enrolled wallets. */
  readonly capabilities?: Readonly<Record<string, Partial<Capabilities>>>;
  readonly softDeclines?: boolean;
  /** Returns true if a target's circuit lets payments pass; all do by default. */
  readonly isAvailable?: (connectionId: string) => boolean;
  readonly slots?: ReadonlyMap<string, CallSlots>;
  /** Outcome that a look-up returns for a sent attempt that is unknown or pending. */
  readonly truth?: Outcome;
  /** Runs instead of each statement to the database, with its name. */
  readonly around?: <T>(statement: string, run: () => Promise<T>) => Promise<T>;
  /** Long by default, so that no process counts as delayed on a slow machine. */
  readonly leaseMarginMs?: number;
  /** Each written status, in order. */
  readonly finished?: string[];
  /** Runs instead of each provider call. */
  readonly aroundCall?: (connectionId: string, call: () => Promise<Outcome>) => Promise<Outcome>;
};

/** A provider call that was made. */
export type Call = {
  readonly connectionId: string;
  readonly transactionId: string;
  readonly outcome: Outcome;
  /**
   * The database as others saw it at the time of the call: the attempt's row, and the record's last
   * attempt.
   */
  readonly stood: Record<string, unknown> | undefined;
};

/** A payment that follows a script. */
export type ScriptedPayment = {
  readonly calls: readonly Call[];
  /** Makes or repeats the payment, always with the same request under the same key. */
  send(): Promise<KeyedResponse & { readonly body: Buffer }>;
  /** Looks up all open attempts until none is left. */
  recover(): Promise<void>;
  /**
   * Recovers the payment, repeats the request, and checks that the response stays the same, byte for
   * byte. @returns the current payment.
   */
  settle(): Promise<Payment>;
};

/** Payments and recovery on a real database, at scripted providers. */
export type ScriptedPayments = {
  readonly database: Database;
  readonly tables: Tables;
  readonly encode: (record: Payment) => Buffer;
  /** Dependencies with which a test writes and checks as another replica, without connections. */
  readonly deps: CoreDeps;
  payment(request: RequestJson, script: Script): ScriptedPayment;
  /** The attempts in the database, in order; `open`: the outcome is unknown. */
  rows(): Promise<Record<string, unknown>[]>;
};

export const LEASE_MARGIN_MS = 60_000;

const STOOD = `SELECT t.connection_id, t.status, t.check_at > now() AS leased, p.status AS payment_status, p.record
  FROM transaction t JOIN payment p ON p.account_id = t.account_id AND p.id = t.payment_id WHERE t.id = $1`;

/** Condition of an attempt with an unknown outcome. */
const IS_OPEN = `check_at IS NOT NULL AND status IN ('CREATED', 'PENDING') AND NOT awaits_payer
  AND type IN ('PURCHASE', 'AUTHORIZE', 'VERIFY')`;
const ROWS = `SELECT id, connection_id, status, ${IS_OPEN} AS open FROM transaction ORDER BY created_at`;

const decode = jsonDecoder(CreatePaymentRequestSchema);
const encodeJson = jsonEncoder(PaymentSchema);
const encode = (record: Payment) => Buffer.from(encodeJson(record));

export let payments: ScriptedPayments;

/** Opens such payments for a file's tests, with the sandbox's fixtures. Each test starts without payments. */
export function onScriptedPayments(): void {
  onOwnDatabase({ empties: 'payment, transaction, notification' });
  beforeAll(async () => {
    payments = await openScriptedPayments();
  });
  onMovedClock();
}

async function openScriptedPayments(): Promise<ScriptedPayments> {
  const responses = await openStoredResponses(database);
  const deps = coreDeps({ database, responses, connections: new Map() });
  await addSandboxFixtures(database, { ...deps, bins: createBinTable([]) });
  // The scripted targets stand in for the connection that enrolled the sandbox's wallet.
  await tables.query("UPDATE vaulted_token SET connection_id = 't1' WHERE id = $1", [ENROLLED_WALLET]);

  return {
    ...{ database, tables, encode, deps },
    payment: (request, script) => scriptedPayment({ database, tables, responses }, request, script),
    rows: () => tables.query(ROWS),
  };
}

type Opened = Pick<ScriptedPayments, 'database' | 'tables'> & Pick<CoreDeps, 'responses'>;

function scriptedPayment(opened: Opened, request: RequestJson, script: Script): ScriptedPayment {
  const { database, tables } = opened;
  const calls: Call[] = [];
  const deps = depsOf(opened, script, scriptedConnections(script, calls, tables));
  const caller = { accountId: ACCOUNT_ONE, idempotencyKey: randomUUID(), secretPresented: true };
  const message = decode(parseJson(Buffer.from(JSON.stringify(request))));
  async function send() {
    const made = await createPayment(deps, message, caller);
    return { ...made, body: restBody(made) };
  }
  async function recover() {
    do {
      await tables.query(`UPDATE transaction SET check_at = now() WHERE ${IS_OPEN}`);
    } while (await checkDue({ ...deps, database }));
  }
  return {
    calls,
    send,
    recover,
    async settle() {
      await recover();
      const { record, body } = await send();
      expect(`${encode(record)}`).toBe(`${body}`);
      expect(await send()).toMatchObject({ body, replayed: true });
      return getPayment({ database }, record.id, caller);
    },
  };
}

function depsOf(
  { database, responses }: Opened,
  script: Script,
  connections: ReadonlyMap<string, ProviderConnection>,
): CoreDeps {
  const { around = (_name, run) => run(), maxAttempts, softDeclines = false, isAvailable } = script;
  const deps = coreDeps({
    database: {
      ...database,
      query: (statement, values) => around(statement.name, () => database.query(statement, values)),
    },
    ...{ responses, connections, ...(isAvailable && { isAvailable }) },
    failover: { ...(maxAttempts !== undefined && { maxAttempts }), softDeclines },
  });
  return {
    ...deps,
    schedule: { ...deps.schedule, leaseMarginMs: script.leaseMarginMs ?? LEASE_MARGIN_MS },
    // A repeat of a request that stays in progress is refused soon.
    patience: { waitMs: 50, retryAfterS: 1, pause: () => Promise.resolve() },
    observer: {
      ...deps.observer,
      finished: (payment, isLearnedLater) => {
        const status = Payment_Status[payment.status] ?? '';
        script.finished?.push(isLearnedLater ? `${status}, learned later` : status);
      },
    },
  };
}

/** Returns true if a card payment with this outcome is looked up. */
export const isOpen = ({ kind }: Outcome) => kind === 'unknown' || kind === 'pending';

function truthOf({ truth }: Script): Outcome {
  if (!truth) throw new Error('the script does not say what became of it');
  return truth;
}

function scriptedConnections(script: Script, calls: Call[], tables: Tables): Map<string, ProviderConnection> {
  const closed = new Set<string>();
  const connectionOf = (connectionId: string, outcome: Outcome): ProviderConnection =>
    silentConnection({
      identity: connectionId,
      slots: script.slots?.get(connectionId),
      capabilities: { ...CARDS_ONLY, methods: ['CARD', 'WALLET'], ...script.capabilities?.[connectionId] },
      async pay({ transactionId }: PaymentAttempt) {
        const [stood] = await tables.query(STOOD, [transactionId]);
        // Another request used this key: nothing is charged, and nothing else is known.
        if (closed.has(transactionId)) return { kind: 'unknown', detail: 'closed', providerData: undefined };
        calls.push({ connectionId, transactionId, outcome, stood });
        return script.aroundCall ? script.aroundCall(connectionId, async () => outcome) : outcome;
      },
      async lookUp({ transactionId, close }: LookUp) {
        const call = calls.find((one) => one.transactionId === transactionId);
        if (call) return isOpen(outcome) ? truthOf(script) : outcome;
        if (!close) return { kind: 'unknown', detail: 'not heard of', providerData: undefined };
        closed.add(transactionId);
        return { kind: 'not_sent', detail: 'closed', because: 'turned_away' };
      },
    });
  return new Map(script.outcomes.map((outcome, i) => [`t${i + 1}`, connectionOf(`t${i + 1}`, outcome)]));
}
