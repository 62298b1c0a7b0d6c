import type { JsonObject } from '@bufbuild/protobuf';
import type { PaymentAttempt } from '#src/connectors/attempt.ts';
import type { LookUp, Operation, Outcome, ProviderConnection } from '#src/connectors/connector.ts';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import { redactOutcomes } from '#src/connectors/redact-outcomes.ts';
import { Secret } from '#src/secret.ts';
import { lookUpOf, lookUpOfOperation, operationOn, redirectAttempt } from '../attempts.ts';
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

/** A connection to a fake of Mercado Pago of its own. */
export type MercadoPagoUnderTest = {
  readonly fake: Awaited<ReturnType<typeof startFakeMercadoPago>>;
  readonly connection: ProviderConnection;
  close(): Promise<void>;
};

export async function openMercadoPago(
  settings: JsonObject = {},
  secrets = SECRETS,
): Promise<MercadoPagoUnderTest> {
  const fake = await startFakeMercadoPago();
  const connection = redactOutcomes(
    mercadoPagoConnector.connect(
      {
        base_url: fake.url,
        country: 'AR',
        account_id: String(FAKE_ACCOUNT),
        timeout_ms: 20_000,
        ...settings,
      },
      { providerId: 'MERCADO_PAGO', secrets },
    ),
  );
  return {
    fake,
    connection,
    close: async () => {
      await connection.close();
      await fake.close();
    },
  };
}

export function attemptInPesos(over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  return redirectAttempt({ money: MONEY, country: 'AR', expiresAtMs: Date.now() + 86_400_000, ...over });
}

/** Sends a payer to a preference. */
export async function sentAway({ connection }: MercadoPagoUnderTest, attempt = attemptInPesos()) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'redirect') throw new Error(`not a redirect but ${outcome.kind}`);
  return { attempt, outcome, reference: outcome.reference };
}

/** A payment that its payer made and that was looked up. */
export async function paid(under: MercadoPagoUnderTest, attempt = attemptInPesos()) {
  const sent = await sentAway(under, attempt);
  const payment = under.fake.pay(under.fake.preference());
  const outcome = await lookUp(under, attempt, sent.reference);
  if (outcome?.kind !== 'approved') throw new Error(`not approved but ${outcome?.kind}`);
  return { attempt, payment, outcome, reference: outcome.reference };
}

export function lookUp(
  { connection }: MercadoPagoUnderTest,
  attempt: PaymentAttempt,
  reference: string | undefined,
  over: Partial<LookUp> = {},
): Promise<Outcome> | undefined {
  return connection.lookUp?.(lookUpOf(attempt, { reference, ...over }));
}

export function refundOf(
  attempt: PaymentAttempt,
  reference: string | undefined,
  minorUnits: bigint,
): Operation {
  return operationOn(attempt, reference, { money: { minorUnits, currency: 'ARS' } });
}

export function lookUpRefund(
  { connection }: MercadoPagoUnderTest,
  operation: Operation,
  over: Partial<LookUp> = {},
): Promise<Outcome> | undefined {
  return connection.lookUp?.(lookUpOfOperation('refund', operation, over));
}
