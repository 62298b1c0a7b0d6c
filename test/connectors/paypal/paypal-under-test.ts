import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { LookUp, Operation, Outcome, ProviderConnection } from '#src/connectors/connector.ts';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import { redactOutcomes } from '#src/connectors/redact-outcomes.ts';
import { Secret } from '#src/secret.ts';
import { lookUpOf, lookUpOfOperation, operationOn, redirectAttempt } from '../attempts.ts';
import {
  FAKE_CLIENT_ID,
  FAKE_CLIENT_SECRET,
  FAKE_WEBHOOK_ID,
  startFakePayPal,
  type Trouble,
} from './fake-paypal.ts';

export const SECRETS = {
  client_id: new Secret(FAKE_CLIENT_ID),
  client_secret: new Secret(FAKE_CLIENT_SECRET),
};
export const CAPTURE = /POST .*\/capture$/;
export const CREATE = /POST .*\/orders$/;
export const REFUND = /POST .*\/refund$/;
export const TOKEN = /POST .*\/token$/;

/** A connection to a fake of PayPal of its own. */
export type PayPalUnderTest = {
  readonly fake: Awaited<ReturnType<typeof startFakePayPal>>;
  readonly connection: ProviderConnection;
  /** Another to the same fake, with a deadline that a test can wait for. */
  readonly impatient: ProviderConnection;
  /** Number of times that the fake saw a call. */
  seen(call: RegExp): number;
  close(): Promise<void>;
};

export async function openPayPal(
  over: { settings?: JsonObject; secret?: string } = {},
): Promise<PayPalUnderTest> {
  const fake = await startFakePayPal();
  const secrets = { ...SECRETS, ...(over.secret && { client_secret: new Secret(over.secret) }) };
  const settings = {
    base_url: fake.url,
    timeout_ms: 20_000,
    webhook_ids: [FAKE_WEBHOOK_ID],
    ...over.settings,
  };
  const connect = (settings: JsonObject) =>
    redactOutcomes(paypalConnector.connect(settings, { providerId: 'PAYPAL', secrets }));
  const connection = connect(settings);
  const impatient = connect({ ...settings, timeout_ms: 2_000 });
  return {
    fake,
    connection,
    impatient,
    seen: (call) => fake.requests.filter((request) => call.test(request.call)).length,
    close: async () => {
      await connection.close();
      await impatient.close();
      await fake.close();
    },
  };
}

/** The connection for a call in trouble: one that gives up soon where no answer comes. */
export function connectionFor(paypal: PayPalUnderTest, trouble: Trouble): ProviderConnection {
  return trouble === 'no answer' ? paypal.impatient : paypal.connection;
}

/** The reference of an outcome. */
export function referenceOf(outcome: Outcome | undefined): string {
  if (outcome && 'reference' in outcome && outcome.reference !== undefined) return outcome.reference;
  throw new Error(`no reference in ${outcome?.kind}: ${JSON.stringify(outcome)}`);
}

/** Sends a payer to PayPal. */
export async function sent({ connection }: PayPalUnderTest, attempt: PaymentAttempt = redirectAttempt()) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'redirect') throw new Error(`no redirect but ${JSON.stringify(outcome)}`);
  return { attempt, outcome, orderId: referenceOf(outcome) };
}

/** A payer who went to PayPal and agreed. */
export async function approved(paypal: PayPalUnderTest, attempt?: PaymentAttempt) {
  const order = await sent(paypal, attempt);
  paypal.fake.approve(order.orderId);
  return order;
}

/** A payment that is made: sent, approved and captured. */
export async function paid(paypal: PayPalUnderTest, attempt?: PaymentAttempt) {
  const order = await approved(paypal, attempt);
  const outcome = await complete(paypal, order.attempt, order.orderId);
  if (outcome?.kind !== 'approved') throw new Error(`not paid but ${JSON.stringify(outcome)}`);
  return { ...order, outcome, reference: referenceOf(outcome) };
}

export function complete(
  { connection }: Pick<PayPalUnderTest, 'connection'>,
  attempt: PaymentAttempt,
  reference: string,
) {
  return connection.complete?.(lookUpOf(attempt, { reference }));
}

export function lookUp(
  { connection }: PayPalUnderTest,
  attempt: PaymentAttempt,
  reference: string | undefined,
  over: Partial<LookUp> = {},
) {
  return connection.lookUp?.(lookUpOf(attempt, { reference, ...over }));
}

/** A refund of a payment, of all of it by default. */
export function refundOf(
  attempt: PaymentAttempt,
  reference: string,
  over: Partial<Operation> = {},
): Operation {
  return operationOn(attempt, reference, over);
}

export function lookUpRefund(
  { connection }: PayPalUnderTest,
  operation: Operation,
  reference?: string,
  over: Partial<LookUp> = {},
) {
  return connection.lookUp?.(lookUpOfOperation('refund', operation, { reference, ...over }));
}
