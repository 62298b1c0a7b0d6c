import { setImmediate } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import fc from 'fast-check';
import {
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  CreatePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import type { ProviderConnection } from '#src/connectors/connector.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { routeNews } from '#src/payments/check/route-news.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { cancelPayment, capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { ServiceError } from '#src/service-error.ts';
import type { Database } from '#src/store/engine/database.ts';
import { insertNotification } from '#src/store/tables/notifications.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { type Behaviour, type LedgerProvider, ledgerProvider } from '../payments/ledger-provider.ts';
import type { OperatedPayments } from '../payments/operated-payments.ts';
import { ACCOUNT_ONE, cardPayment, withField } from '../support/payment-requests.ts';
import { restBody } from '../support/stored-responses.ts';
import { earlier, type Tables } from '../support/tables.ts';
import { judge } from './judge.ts';

/*
 * What can happen to one payment concurrently: it is made, an operation is performed on it, two replicas check it, and
 * its provider sends notifications. fast-check chooses which actor takes the next step (one statement or one call to
 * the provider) and after which step one actor stops forever, as if its process died. Then a new replica recovers the
 * rest, and the provider's ledger decides whether all is correct.
 */

/** The choices of fast-check apart from the order of the steps. */
export type Plan = {
  /**
   * True if the payment was approved earlier, so that an operation on it competes with the checkers and the
   * notifications.
   */
  readonly isMade: boolean;
  readonly capture: boolean;
  readonly operation: 'capture' | 'cancel' | 'refund';
  /** The provider's behavior for each call that moves money; after the last of these, it does what is requested. */
  readonly behaviours: readonly Behaviour[];
  /** The actor that dies, and the number of steps after which it dies; it survives if it takes fewer. */
  readonly dies: { readonly actor: number; readonly afterSteps: number };
};

const BEHAVIOURS: readonly Behaviour[] = [
  'does it',
  'does it, unanswered',
  'never hears of it',
  'declines it',
  'delays it',
];

export const PLANS: fc.Arbitrary<Plan> = fc.record({
  isMade: fc.boolean(),
  capture: fc.boolean(),
  operation: fc.constantFrom('capture', 'cancel', 'refund'),
  behaviours: fc.array(fc.constantFrom(...BEHAVIOURS), { maxLength: 4 }),
  dies: fc.record({ actor: fc.nat(4), afterSteps: fc.nat(14) }),
});

/** Number of statements and calls in progress outside the scheduler. */
let underWay = 0;

/** Waits until every actor is waiting for its next turn or has finished. */
async function settled(): Promise<void> {
  for (let quiet = 0; quiet < 3; ) {
    await setImmediate();
    quiet = underWay === 0 ? quiet + 1 : 0;
  }
}

/**
 * Chooses the order of steps. A step ends before the next begins, so that the same order always has the same result.
 */
export const ORDERS = fc.scheduler({
  act: async (step) => {
    await step();
    await settled();
  },
});

type Deps = OperatedPayments['deps'];
type Step = <T>(name: string, take: () => Promise<T>) => Promise<T>;

const decode = jsonDecoder(CreatePaymentRequestSchema);

/**
 * Plays one order and judges the result.
 *
 * @throws Error that lists what is wrong.
 */
export async function play(
  { deps, tables }: { readonly deps: Deps; readonly tables: Tables },
  order: fc.Scheduler,
  plan: Plan,
): Promise<void> {
  const provider = ledgerProvider();
  const responses: string[] = [];
  const caller = { accountId: ACCOUNT_ONE, idempotencyKey: 'once', secretPresented: true as const };
  const request = () =>
    decode(
      parseJson(
        Buffer.from(
          JSON.stringify(
            withField(
              withField(cardPayment(), 'amount.value', 100),
              'payment_method.detail.card.capture',
              plan.capture,
            ),
          ),
        ),
      ),
    );
  const pay = async (own: Deps) => {
    responses.push(`${restBody(await createPayment(own, request(), caller))}`);
  };
  const operate = (idempotencyKey: string) => async (own: Deps, step: Step) => {
    const paymentId = await step('finds the payment', () => idOf(tables, 'payment'));
    if (paymentId === undefined) return undefined;
    const key = { ...caller, idempotencyKey };
    // Two operations of this amount exceed the payment.
    const amount = { currency: 'USD', value: { value: '60.00' } };
    switch (plan.operation) {
      case 'capture':
        return capturePayment(own, create(CapturePaymentRequestSchema, { paymentId, amount }), key);
      case 'cancel':
        return cancelPayment(own, create(CancelPaymentRequestSchema, { paymentId }), key);
      case 'refund':
        return refundPayment(own, create(RefundPaymentRequestSchema, { paymentId, amount }), key);
    }
  };
  const check = async (own: Deps, step: Step) => {
    for (let times = 0; times < 2; times++) {
      await step('is due', () => makeDue(tables));
      await checkDue(own);
    }
  };
  const news = async (own: Deps, step: Step) => {
    const transactionId = await step('finds the transaction', () => idOf(tables, 'transaction', 'DESC'));
    if (transactionId === undefined) return;
    const stored = await insertNotification(own.database, {
      ...{ connectionId: 'ledger', deduplicationKey: 'news', subjects: [{ transactionId }] },
      ...{ body: Buffer.alloc(0), query: '', headers: '{}' },
    });
    for (const one of stored) await routeNews(own, one);
    await checkDue(own);
  };
  const alive = replica(deps, provider, (_, take) => take());
  if (plan.isMade) await pay(alive);
  provider.next.push(...plan.behaviours);
  const works = {
    create: plan.isMade ? operate('other') : pay,
    operation: operate('operation'),
    'checker one': check,
    'checker two': check,
    news,
  };
  const actors = Object.entries(works).map(([name, work], i) => {
    const died = Promise.withResolvers<void>();
    let steps = 0;
    const step: Step = async (what, take) => {
      if (i === plan.dies.actor && steps++ >= plan.dies.afterSteps) {
        died.resolve();
        return new Promise(() => {});
      }
      await order.schedule(Promise.resolve(), `${name}: ${what}`);
      underWay += 1;
      return take().finally(() => {
        underWay -= 1;
      });
    };
    const ended = work(replica(deps, provider, step), step).catch(ignoreRefusal);
    return Promise.race([ended, died.promise]);
  });
  await order.waitFor(Promise.all(actors));
  provider.settleDelayed();
  await recover(alive, tables);
  await judge(deps, tables, provider, responses, () =>
    createPayment(
      replica(deps, provider, (_, take) => take()),
      request(),
      caller,
    ),
  );
}

/** Makes a replica of the service, each of whose statements and calls is a step. */
function replica(deps: Deps, provider: LedgerProvider, step: Step): Deps {
  const { query, transaction } = deps.database;
  const database: Database = {
    ...deps.database,
    query: (statement, values) => step(statement.name, () => query(statement, values)) as never,
    transaction: (work, timeoutMs) => step('transaction', () => transaction(work, timeoutMs)),
  };
  const { pay, capture, cancel, refund, lookUp } = provider.connection;
  const connection: ProviderConnection = {
    ...provider.connection,
    pay: (attempt) => step('pay', () => pay(attempt)),
    capture: capture && ((operation) => step('capture', () => capture(operation))),
    cancel: cancel && ((operation) => step('cancel', () => cancel(operation))),
    refund: refund && ((operation) => step('refund', () => refund(operation))),
    lookUp: lookUp && ((query) => step(query.close ? 'close' : 'look up', () => lookUp(query))),
  };
  const connections = new Map([['ledger', connection]]);
  return {
    ...deps,
    database,
    connections: () => connections,
    catalogue: () => ({ ...deps.catalogue(), connections }),
    patience: { waitMs: 20, retryAfterS: 1, pause: () => step('waits', async () => {}) },
  };
}

/** Ignores a refusal. A caller may be refused at any time; only the final state matters. */
function ignoreRefusal(error: unknown): void {
  if (!(error instanceof ServiceError)) throw error;
}

async function idOf(
  tables: Tables,
  table: string,
  order: 'ASC' | 'DESC' = 'ASC',
): Promise<string | undefined> {
  const [row] = await tables.query(`SELECT id FROM ${table} ORDER BY created_at ${order} LIMIT 1`);
  return row && String(row.id);
}

const makeDue = (tables: Tables) =>
  tables.query('UPDATE transaction SET check_at = now() WHERE check_at IS NOT NULL');

const MOST_CHECKS = 20;

/** Checks, like a replica that survived, until no outcome is open. */
async function recover(deps: Deps, tables: Tables): Promise<void> {
  for (let times = 0; times < MOST_CHECKS; times++) {
    await makeDue(tables);
    // A provider without the transaction is queried for two days, so the clock has to advance.
    await tables.query(`UPDATE notification SET received_at = ${earlier('received_at', '1 day')}`);
    await tables.query('UPDATE notification SET check_at = now() WHERE check_at IS NOT NULL');
    await checkDue(deps);
    const open = await tables.query(
      `SELECT 1 FROM transaction WHERE status IN ('PENDING', 'CREATED')
       UNION ALL SELECT 1 FROM notification WHERE settled_at IS NULL`,
    );
    if (open.length === 0) return;
  }
  throw new Error('recovery did not end');
}
