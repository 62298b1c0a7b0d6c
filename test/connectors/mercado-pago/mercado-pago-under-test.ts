import { create, type JsonObject, type MessageInitShape } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { Operation } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { localAttempt, operationOn, redirectAttempt } from '../attempts.ts';
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

export const openMercadoPago = (secrets = SECRETS, settings: JsonObject = {}) =>
  openAccount('AR', 'ARS', secrets, settings);

/** Opens connections to a new fake of an account in a country. */
export async function openAccount(
  country: string,
  currency: string,
  secrets = SECRETS,
  settings: JsonObject = {},
): Promise<MercadoPagoUnderTest> {
  const own = { country, account_id: String(FAKE_ACCOUNT), ...settings };
  return underTest(await startFakeMercadoPago(currency), (address) =>
    connect(mercadoPagoConnector, { ...address, ...own }, secrets),
  );
}

/** Terms of an attempt by each local method, with a payer who has everything that it needs. */
export const LOCAL_METHODS = {
  PIX: { country: 'BR', currency: 'BRL', category: 'BANK_TRANSFER', id: 'pix', closes: true },
  BOLETO: { country: 'BR', currency: 'BRL', category: 'TICKET', id: 'bolbradesco', closes: true },
  OXXO: { country: 'MX', currency: 'MXN', category: 'TICKET', id: 'oxxo', closes: false },
  PSE: { country: 'CO', currency: 'COP', category: 'BANK_TRANSFER', id: 'pse', closes: false },
  EFECTY: { country: 'CO', currency: 'COP', category: 'TICKET', id: 'efecty', closes: false },
} as const;

/** The name of a local method. */
export type LocalType = keyof typeof LOCAL_METHODS;

/** An attempt by a local method. */
export function codeAttempt(type: LocalType, over: Partial<PaymentAttempt> = {}): PaymentAttempt {
  const { country, currency, category } = LOCAL_METHODS[type];
  return {
    ...localAttempt({ type, category, bankId: type === 'PSE' ? '1007' : '' }),
    money: { minorUnits: 3_000_000n, currency },
    country,
    customerPayer: create(CustomerPayerSchema, PAYERS[country]),
    expiresAtMs: Date.now() + 3 * 86_400_000,
    ...over,
  };
}

const PAYERS: Readonly<Record<string, MessageInitShape<typeof CustomerPayerSchema>>> = {
  BR: {
    ...{ firstName: 'Ana', lastName: 'Souza', email: 'ana@example.com', ipAddress: '203.0.113.7' },
    document: { documentType: 'CPF', documentNumber: '123.456.789-09' },
    billingAddress: {
      ...{ addressLine1: 'Rua das Flores, 123', neighborhood: 'Centro', city: 'São Paulo' },
      ...{ state: 'SP', zipCode: '01310-100', country: 'BR' },
    },
  },
  CO: {
    ...{ firstName: 'Ana', lastName: 'Gómez', email: 'ana@example.com', ipAddress: '203.0.113.7' },
    document: { documentType: 'CC', documentNumber: '76.262.349' },
    phone: { countryCode: '57', number: '3001234567' },
    billingAddress: {
      ...{
        addressLine1: 'Carrera 7 con Avenida Jiménez # 11-27',
        neighborhood: 'La Candelaria Centro Histórico',
      },
      ...{ city: 'Bogotá, Distrito Capital', state: 'DC', zipCode: '111711', country: 'CO' },
    },
  },
  MX: { firstName: 'Ana', lastName: 'Gómez', email: 'ana@example.com' },
};

/** Creates a payment by a local method. */
export async function coded({ connection, fake }: MercadoPagoUnderTest, attempt: PaymentAttempt) {
  const outcome = await connection.pay(attempt);
  if (outcome.kind !== 'awaits_payer') throw new Error(`expected a code, got ${JSON.stringify(outcome)}`);
  const payment = [...fake.payments.values()].at(-1);
  if (!payment) throw new Error('no payment');
  return { attempt, outcome, payment, reference: outcome.reference, id: String(payment.id) };
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
