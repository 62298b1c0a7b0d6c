import { create } from '@bufbuild/protobuf';
import {
  CancelPaymentRequestSchema,
  CapturePaymentRequestSchema,
  type CreatePaymentRequest,
  CreatePaymentRequestSchema,
  RefundPaymentRequestSchema,
} from '#gen/payments/v1/payment_service_pb.js';
import { reportDispute } from '#src/payments/check/check-transaction.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { cancelPayment, capturePayment, refundPayment } from '#src/payments/operate/payment-operations.ts';
import { parseJson } from '#src/wire/parse-json.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import type { LedgerProvider } from '../payments/ledger-provider.ts';
import { bringNews } from '../support/bring-news.ts';
import { ACCOUNT_ONE, cardPayment, walletPayment, withField } from '../support/payment-requests.ts';
import { restBody } from '../support/stored-responses.ts';
import type { Tables } from '../support/tables.ts';
import type { ActorName, Plan } from './plan.ts';
import {
  type Deps,
  forgettingAmounts,
  forgettingOpenOperation,
  LONG_S,
  MOMENT_S,
  passTime,
  type Step,
} from './replica.ts';

/** The caller that makes the payment. */
export const CALLER = { accountId: ACCOUNT_ONE, idempotencyKey: 'once', secretPresented: true as const };

/** An actor's work at its own replica. */
type Act = (own: Deps, step: Step) => Promise<unknown>;

const decode = jsonDecoder(CreatePaymentRequestSchema);

/** Two operations of this amount exceed the payment. */
const PART = { currency: 'USD', value: { value: '60.00' } };
/** An amount in minor units that leaves enough for one of our operations. */
const OUTSIDE = 1_000n;

/** Returns the request for the payment. */
export function payment({ capture, isCode }: Plan): CreatePaymentRequest {
  const amount = withField(isCode ? walletPayment() : cardPayment(), 'amount', {
    currency: 'USD',
    value: 100,
  });
  const json = isCode
    ? withField(amount, 'payment_method', { type: 'PIX' })
    : withField(amount, 'payment_method.detail.card.capture', capture);
  return decode(parseJson(Buffer.from(JSON.stringify(json))));
}

/**
 * Returns the work of each actor. `other` performs the operation with another key, and `repeatNews` is the provider that
 * notifies again of what its merchant did there.
 */
export function actsOf(scene: {
  readonly tables: Tables;
  readonly provider: LedgerProvider;
  readonly plan: Plan;
  /** Receives the responses to the call that makes the payment. */
  readonly responses: string[];
}): Readonly<Record<ActorName | 'other' | 'repeatNews', Act>> {
  const { tables, provider, plan, responses } = scene;
  const check: Act = async (own, step) => {
    for (let times = 0; times < 2; times++) {
      await step('time passes', () => passTime(tables, plan.leasesEnd ? LONG_S : MOMENT_S));
      await checkDue(own);
    }
  };
  return {
    create: async (own) => {
      responses.push(`${restBody(await createPayment(own, payment(plan), CALLER))}`);
    },
    other: async (own, step) => {
      const base = plan.isCode ? await baseOf(tables) : undefined;
      if (base && provider.paysCode(base.id)) await notify(own, base.id, 'paid earlier');
      await operate(scene, own, step, 'other');
    },
    payer: async (own, step) => {
      const base = await step('finds the payment', () => baseOf(tables));
      const isPaid = base !== undefined && (await step('pays', async () => provider.paysCode(base.id)));
      if (isPaid) await notify(own, base.id, 'paid');
    },
    end: async (own, step) => {
      const base = await step('finds the payment', () => baseOf(tables));
      if (!base) return;
      await step('ends the code', async () => provider.endsCode(base.id));
      await notify(own, base.id, 'ended');
    },
    operation: (own, step) => operate(scene, plan.forgets ? forgettingAmounts(own) : own, step, 'operation'),
    'checker one': check,
    'checker two': check,
    news: async (own, step) => {
      const transactionId = await step('finds the transaction', () => lastTransaction(tables));
      if (transactionId !== undefined) await notify(own, transactionId, 'news');
    },
    network: (_own, step) => step('delivers the late calls', async () => provider.receiveLate()),
    merchant: async (own, step) => {
      const base = await step('finds the payment', () => baseOf(tables));
      const isDone =
        base !== undefined &&
        (await step('moves money at the provider', async () => moveOutside(provider, base.id, plan)));
      if (isDone) await notify(own, base.id, 'outside');
    },
    repeatNews: async (own) => {
      const base = await baseOf(tables);
      if (base && provider.moved.includes(`pay ${base.id}`)) await notify(own, base.id, 'outside again');
    },
    dispute: async (own, step) => {
      const base = await step('finds the payment', () => baseOf(tables));
      if (!base) return;
      const leased = { accountId: ACCOUNT_ONE, paymentId: base.paymentId, transactionId: base.id, fence: 0 };
      const check = { deps: forgettingOpenOperation(own), leased };
      await reportDispute(check, { stage: 'won', reference: 'dispute' });
    },
  };
}

async function operate(
  { tables, plan }: { readonly tables: Tables; readonly plan: Plan },
  own: Deps,
  step: Step,
  idempotencyKey: string,
): Promise<unknown> {
  const base = await step('finds the payment', () => baseOf(tables));
  if (!base) return undefined;
  const { paymentId } = base;
  const key = { ...CALLER, idempotencyKey };
  switch (plan.operation) {
    case 'capture': {
      const request = { paymentId, amount: PART, finalCapture: plan.isFinal };
      return capturePayment(own, create(CapturePaymentRequestSchema, request), key);
    }
    case 'cancel':
      return cancelPayment(own, create(CancelPaymentRequestSchema, { paymentId }), key);
    case 'refund':
      return refundPayment(own, create(RefundPaymentRequestSchema, { paymentId, amount: PART }), key);
  }
}

/** Stores a notification about a transaction, routes it, and makes the checks that are due. */
async function notify(own: Deps, transactionId: string, deduplicationKey: string): Promise<void> {
  await bringNews(own, 'ledger', { transactionId }, { deduplicationKey });
  await checkDue(own);
}

/**
 * Captures or refunds a part at the provider itself, if it allows that. Captures nothing if an operation from here may
 * release the rest before the capture is learned: such a capture is not recorded, but raises an alarm.
 *
 * @returns false if nothing moved.
 */
function moveOutside(
  provider: LedgerProvider,
  baseId: string,
  { outside: type, operation, isFinal }: Plan,
): boolean {
  if (type === 'capture' && (operation === 'cancel' || isFinal)) return false;
  if (!provider.moved.includes(`pay ${baseId}`)) return false;
  const { authorized, captured, refunded, released } = provider.bookOf(baseId);
  const isAllowed =
    type === 'capture' ? !released && captured + OUTSIDE <= authorized : refunded + OUTSIDE <= captured;
  if (isAllowed) {
    provider.elsewhere(baseId, type === 'capture' ? { captured: OUTSIDE } : { refunded: OUTSIDE });
  }
  return isAllowed;
}

/** Finds the payment's own transaction. */
async function baseOf(tables: Tables): Promise<{ id: string; paymentId: string } | undefined> {
  const [row] = await tables.query('SELECT id, payment_id FROM transaction WHERE parent_id IS NULL LIMIT 1');
  return row && { id: String(row.id), paymentId: String(row.payment_id) };
}

/** Finds the last transaction that was sent from here. */
async function lastTransaction(tables: Tables): Promise<string | undefined> {
  const [row] = await tables.query(
    `SELECT id FROM transaction WHERE parent_id IS NULL OR method IS NOT NULL ORDER BY created_at DESC LIMIT 1`,
  );
  return row && String(row.id);
}
