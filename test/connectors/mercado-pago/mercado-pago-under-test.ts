import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Operation } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { operationOn, redirectAttempt } from '../attempts.ts';
import { connect, lookUp, type UnderTest, underTest } from '../under-test.ts';
import {
  FAKE_ACCESS_TOKEN,
  FAKE_ACCOUNT,
  FAKE_WEBHOOK_SECRET,
  startFakeMercadoPago,
} from './fake-mercado-pago.ts';

export const SECRETS = {
  access_token: new Secret(FAKE_ACCESS_TOKEN),
  webhook_secret: new Secret(FAKE_WEBHOOK_SECRET),
};
export const MONEY = { minorUnits: 300_050n, currency: 'ARS' };

/** A separate fake of Mercado Pago, with connections to it. */
export type MercadoPagoUnderTest = UnderTest<Awaited<ReturnType<typeof startFakeMercadoPago>>>;

export async function openMercadoPago(secrets = SECRETS): Promise<MercadoPagoUnderTest> {
  const own = { country: 'AR', account_id: String(FAKE_ACCOUNT) };
  return underTest(await startFakeMercadoPago(), (address) =>
    connect(mercadoPagoConnector, { ...address, ...own }, secrets),
  );
}

export function attemptInPesos(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return redirectAttempt({ money: MONEY, country: 'AR', expiresAtMs: Date.now() + 86_400_000, ...over });
}

/** Sends a payer to a preference. */
export async function sentAway({ connection }: MercadoPagoUnderTest, attempt = attemptInPesos()) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'awaits_payer') throw new Error(`expected a redirect, got ${outcome.kind}`);
  return { attempt, outcome, reference: outcome.reference };
}

/** A paid and looked-up payment. */
export async function paid(under: MercadoPagoUnderTest, attempt = attemptInPesos()) {
  const sent = await sentAway(under, attempt);
  const payment = under.fake.pay(under.fake.preference());
  const outcome = await lookUp(under, attempt, sent.reference);
  if (outcome?.kind !== 'approved') throw new Error(`expected approved, got ${outcome?.kind}`);
  return { attempt, payment, outcome, reference: outcome.reference };
}

export function refundOf(
  attempt: PaymentAttempt,
  reference: string | undefined,
  minorUnits: bigint,
): Operation {
  return operationOn(attempt, reference, { money: { minorUnits, currency: 'ARS' } });
}
