import type { JsonObject } from '@bufbuild/protobuf';
import { paypalConnector } from '#src/connectors/paypal/connector.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { Secret } from '#src/secret.ts';
import { lookUpOf, redirectAttempt } from '../attempts.ts';
import { connect, type UnderTest, underTest } from '../under-test.ts';
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

/** A separate fake of PayPal, with connections to it. */
export type PayPalUnderTest = UnderTest<Awaited<ReturnType<typeof startFakePayPal>>> & {
  /** Number of times that the fake received a call. */
  seen(call: RegExp): number;
};

export async function openPayPal(
  over: { settings?: JsonObject; secret?: string } = {},
): Promise<PayPalUnderTest> {
  const fake = await startFakePayPal();
  const secrets = { ...SECRETS, ...(over.secret && { client_secret: new Secret(over.secret) }) };
  const own = { webhook_ids: [FAKE_WEBHOOK_ID], ...over.settings };
  return {
    ...underTest(fake, (address) => connect(paypalConnector, { ...address, ...own }, secrets)),
    seen: (call) => fake.requests.filter((request) => call.test(request.call)).length,
  };
}

/** The connection for a call with a fault: it times out soon if no response comes. */
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
  if (outcome.kind !== 'awaits_payer') throw new Error(`expected a redirect, got ${JSON.stringify(outcome)}`);
  return { attempt, outcome, orderId: referenceOf(outcome) };
}

/** A payer who went to PayPal and agreed. */
export async function approved(paypal: PayPalUnderTest, attempt?: PaymentAttempt) {
  const order = await sent(paypal, attempt);
  paypal.fake.approve(order.orderId);
  return order;
}

/** A completed payment: sent, approved and captured. */
export async function paid(paypal: PayPalUnderTest, attempt?: PaymentAttempt) {
  const order = await approved(paypal, attempt);
  const outcome = await complete(paypal, order.attempt, order.orderId);
  if (outcome?.kind !== 'approved') throw new Error(`expected approved, got ${JSON.stringify(outcome)}`);
  return { ...order, outcome, reference: referenceOf(outcome) };
}

export function complete(
  { connection }: Pick<PayPalUnderTest, 'connection'>,
  attempt: PaymentAttempt,
  reference: string,
) {
  return connection.complete?.(lookUpOf(attempt, { reference }));
}
