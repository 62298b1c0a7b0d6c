import type { JsonObject } from '@bufbuild/protobuf';
import type { CardOptions, PaymentAttempt } from '#src/connectors/attempt.ts';
import type { LookUp, Outcome, ProviderConnection } from '#src/connectors/connector.ts';
import { redactOutcomes } from '#src/connectors/redact-outcomes.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, lookUpOf, lookUpOfOperation, type operationOn } from '../attempts.ts';
import { FAKE_API_KEY, FAKE_WEBHOOK_SECRET, startFakeStripe } from './fake-stripe.ts';

/** A connection to a fake of Stripe of its own. */
export type StripeUnderTest = {
  readonly fake: Awaited<ReturnType<typeof startFakeStripe>>;
  readonly connection: ProviderConnection;
  /** Another to the same fake, with a deadline that a test can wait for. */
  readonly impatient: ProviderConnection;
  /** The one intent that the fake has. */
  intent(): JsonObject;
  close(): Promise<void>;
};

export async function openStripe(
  over: { settings?: JsonObject; apiKey?: string } = {},
): Promise<StripeUnderTest> {
  const fake = await startFakeStripe();
  const secrets = {
    api_key: new Secret(over.apiKey ?? FAKE_API_KEY),
    webhook_secret: new Secret(FAKE_WEBHOOK_SECRET),
  };
  const settings = { base_url: fake.url, timeout_ms: 20_000, ...over.settings };
  const connect = (settings: JsonObject) =>
    redactOutcomes(stripeConnector.connect(settings, { providerId: 'STRIPE', secrets }));
  const connection = connect(settings);
  const impatient = connect({ ...settings, timeout_ms: 2_000 });
  return {
    fake,
    connection,
    impatient,
    intent: () => {
      const [intent, ...others] = [...fake.ledger.intents.values()];
      if (!intent || others.length > 0) throw new Error(`${others.length + 1} intents, or none`);
      return intent;
    },
    close: async () => {
      await connection.close();
      await impatient.close();
      await fake.close();
    },
  };
}

/** An attempt by card with options of its own. */
export function cardWith(number: string, options: Partial<CardOptions> | object): PaymentAttempt {
  const attempt = cardAttempt(number);
  return { ...attempt, method: { ...attempt.method, ...options } as PaymentAttempt['method'] };
}

/** Card options of an authorization only. */
export const AUTHORIZE = { capture: false };

/** Makes a payment that is approved. */
export async function paid({ connection }: StripeUnderTest, attempt = cardAttempt('4242424242424242')) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'approved') throw new Error(`not approved but ${outcome.kind}`);
  return { attempt, outcome, reference: outcome.reference };
}

/** Looks up an attempt by what was told of it. */
export function lookUp(
  { connection }: StripeUnderTest,
  attempt: PaymentAttempt,
  told: Outcome | undefined,
  over: Partial<LookUp> = {},
) {
  const reference = told && 'reference' in told ? told.reference : undefined;
  return connection.lookUp?.(lookUpOf(attempt, { reference, ...over }));
}

/** Looks up an operation. */
export function lookUpOperation(
  { connection }: StripeUnderTest,
  kind: 'capture' | 'cancel' | 'refund',
  operation: ReturnType<typeof operationOn>,
  over: Partial<LookUp> = {},
) {
  return connection.lookUp?.(lookUpOfOperation(kind, operation, over));
}
