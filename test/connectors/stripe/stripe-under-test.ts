import { create, type JsonObject } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import type { CardOptions, PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { LookUp } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, localAttempt } from '../attempts.ts';
import { connect, lookUp as lookUpBy, type UnderTest, underTest } from '../under-test.ts';
import { FAKE_API_KEY, FAKE_WEBHOOK_SECRET, startFakeStripe } from './fake-stripe.ts';

/** A separate fake of Stripe, with connections to it. */
export type StripeUnderTest = UnderTest<Awaited<ReturnType<typeof startFakeStripe>>> & {
  /** The fake's only intent. */
  intent(): JsonObject;
};

export async function openStripe(
  over: { settings?: JsonObject; apiKey?: string } = {},
): Promise<StripeUnderTest> {
  const fake = await startFakeStripe();
  const secrets = {
    api_key: new Secret(over.apiKey ?? FAKE_API_KEY),
    webhook_secret: new Secret(FAKE_WEBHOOK_SECRET),
  };
  return {
    ...underTest(fake, (address) => connect(stripeConnector, { ...address, ...over.settings }, secrets)),
    intent: () => {
      const [intent, ...others] = [...fake.ledger.intents.values()];
      if (!intent || others.length > 0) throw new Error(`${others.length + 1} intents, or none`);
      return intent;
    },
  };
}

/** A card attempt with its own options. */
export function cardWith(number: string, options: Partial<CardOptions> | object): PaymentAttempt {
  return cardAttempt(number, {}, options);
}

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;
/** A local method of the payer in a test: its country, currency and category, and the minutes until its code ends. */
const LOCAL = {
  PIX: { country: 'BR', currency: 'BRL', category: 'BANK_TRANSFER' },
  BOLETO: { country: 'BR', currency: 'BRL', category: 'TICKET' },
  OXXO: { country: 'MX', currency: 'MXN', category: 'TICKET' },
  SPEI: { country: 'MX', currency: 'MXN', category: 'BANK_TRANSFER' },
} as const;
export type LocalType = keyof typeof LOCAL;
export const LOCAL_TYPES = Object.keys(LOCAL) as LocalType[];

/** An attempt with a local method, whose code ends three days later. */
export function codeAttempt(
  type: LocalType,
  over: Partial<PaymentAttempt> = {},
  createdAtMs = Date.now(),
): PaymentAttempt {
  const { country, currency, category } = LOCAL[type];
  const customerPayer = create(CustomerPayerSchema, {
    ...{ firstName: 'Ana', lastName: 'Gómez', email: 'ana@example.com' },
    document: { documentType: 'CPF', documentNumber: '390.533.447-05' },
    billingAddress: {
      ...{ addressLine1: 'Rua Augusta 1', neighborhood: 'Consolação', city: 'São Paulo' },
      ...{ state: 'SP', zipCode: '01305-000', country },
    },
  });
  return localAttempt(
    { type, category },
    {
      ...{ country, customerPayer, createdAtMs, expiresAtMs: createdAtMs + 3 * DAY_MS },
      money: { minorUnits: 15_000n, currency },
      ...over,
    },
  );
}

/** Card options that authorize without a capture. */
export const AUTHORIZE = { capture: false };

/** Makes an approved payment. */
export async function paid({ connection }: StripeUnderTest, attempt = cardAttempt('4242424242424242')) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'approved') throw new Error(`expected approved, got ${outcome.kind}`);
  return { attempt, outcome, reference: outcome.reference };
}

/** Looks up an attempt by its reported reference. */
export function lookUp(
  stripe: StripeUnderTest,
  attempt: PaymentAttempt,
  told: Outcome | undefined,
  over: Partial<LookUp> = {},
) {
  return lookUpBy(stripe, attempt, told && 'reference' in told ? told.reference : undefined, over);
}
