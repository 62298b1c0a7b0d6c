import { create, type JsonObject } from '@bufbuild/protobuf';
import { CustomerPayerSchema } from '#gen/payments/v1/customer_payer_pb.js';
import { adyenConnector } from '#src/connectors/adyen/connector.ts';
import type { CardOptions, PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type {
  NotificationReading,
  ProviderConnection,
  RawNotification,
} from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, localAttempt, tokenAttempt } from '../attempts.ts';
import { connect, type UnderTest, underTest } from '../under-test.ts';
import { FAKE_API_KEY, type FakeAdyen, startFakeAdyen } from './fake-adyen.ts';
import { FAKE_ACCOUNT, FAKE_HMAC_KEY } from './fake-notifications.ts';
import { WALLET_ANSWERS } from './fake-wallets.ts';

/** A separate fake of Adyen, with connections to it. */
export type AdyenUnderTest = UnderTest<FakeAdyen> & {
  /** Delivers the waiting notifications in order. */
  delivered(): Promise<readonly NotificationReading[]>;
};

/** The secrets of a connection to the fake. */
export const SECRETS = { api_key: new Secret(FAKE_API_KEY), hmac_key: new Secret(FAKE_HMAC_KEY) };

export async function openAdyen(settings: JsonObject = {}): Promise<AdyenUnderTest> {
  const under = underTest(await startFakeAdyen(), (address) => connectAdyen({ ...address, ...settings }));
  const { fake, connection } = under;
  const delivered = () => Promise.all(fake.notifications.splice(0).map((body) => read(connection, body)));
  return { ...under, delivered };
}

/** A connection, opened as the service opens it. */
export function connectAdyen(settings: JsonObject = {}, secrets: Record<string, Secret> = SECRETS) {
  const own = { merchant_account: FAKE_ACCOUNT, redirect_methods: { WALLET_B: 'ideal' } };
  return connect(adyenConnector, { base_url: 'http://127.0.0.1:1', ...own, ...settings }, secrets);
}

/** Reads a notification as a connection does. */
export async function read(
  connection: ProviderConnection,
  body: string | Buffer,
): Promise<NotificationReading> {
  const raw: RawNotification = { header: () => undefined, query: '', body: Buffer.from(body) };
  const reading = await connection.readNotification?.(raw, Date.now());
  if (!reading) throw new Error('the connection reads no notifications');
  return reading;
}

/** The only subject of a reading, with its outcome. */
export function subjectOf(reading: NotificationReading | undefined) {
  if (reading?.kind !== 'about' || reading.subjects.length !== 1)
    throw new Error('the notification does not have exactly one subject');
  return reading.subjects[0] as (typeof reading.subjects)[number];
}

/** A card attempt with its own options, for a cardholder whose name tells the fake what to do. */
export function cardWith(
  options: Partial<CardOptions & { holderName: string }> = {},
  over: Partial<PaymentAttempt> = {},
): PaymentAttempt {
  return cardAttempt(undefined, over, options);
}

/** A payer with all that Adyen's local methods need. */
export const PAYER = create(CustomerPayerSchema, {
  firstName: 'Ana',
  lastName: 'Gómez',
  email: 'ana@example.com',
  phone: { countryCode: '57', number: '3001234567' },
  document: { documentType: 'CPF', documentNumber: '12345678909' },
});

/** The countries and currencies of local methods, if they are not Brazil's. */
const PLACES: Readonly<Record<string, readonly [country: string, currency: string]>> = {
  OXXO: ['MX', 'MXN'],
  PSE: ['CO', 'COP'],
};

/** An attempt with a local method. */
export function codeAttempt(
  type: string,
  over: Partial<PaymentAttempt> = {},
  { bankId = '' }: { readonly bankId?: string } = {},
): PaymentAttempt {
  const [country, currency] = PLACES[type] ?? ['BR', 'BRL'];
  const category = type === 'PIX' || type === 'PSE' ? 'BANK_TRANSFER' : 'TICKET';
  const money = { minorUnits: 300_000n, currency };
  return localAttempt({ type, category, bankId }, { country, money, customerPayer: PAYER, ...over });
}

/** An attempt with the answer of a wallet. */
export function walletAttempt(
  type: 'APPLE_PAY' | 'GOOGLE_PAY',
  answer: unknown = WALLET_ANSWERS[type](),
  { over, options }: { over?: Partial<PaymentAttempt>; options?: Partial<CardOptions> } = {},
): PaymentAttempt {
  return tokenAttempt(type, JSON.stringify(answer), over, options);
}

/** Everything that Adyen needs to know about a browser before it sends the payer to a challenge. */
export const BROWSER = {
  userAgent: 'Mozilla/5.0',
  acceptHeader: '*/*',
  colorDepth: '24',
  screenHeight: '900',
  screenWidth: '1440',
  language: 'es-CO',
};
