import type { JsonObject } from '@bufbuild/protobuf';
import { adyenConnector } from '#src/connectors/adyen/connector.ts';
import type { CardOptions, PaymentAttempt } from '#src/connectors/attempt.ts';
import type { NotificationReading, ProviderConnection, RawNotification } from '#src/connectors/connector.ts';
import { redactOutcomes } from '#src/connectors/redact-outcomes.ts';
import { Secret } from '#src/secret.ts';
import { cardAttempt, redirectAttempt } from '../attempts.ts';
import { FAKE_API_KEY, type FakeAdyen, startFakeAdyen } from './fake-adyen.ts';
import { FAKE_ACCOUNT, FAKE_HMAC_KEY } from './fake-notifications.ts';

/** A connection to a fake of Adyen of its own. */
export type AdyenUnderTest = {
  readonly fake: FakeAdyen;
  readonly connection: ProviderConnection;
  /** Delivers the notifications that wait, in order. */
  delivered(): Promise<readonly NotificationReading[]>;
  close(): Promise<void>;
};

/** The secrets of a connection to the fake. */
export const SECRETS = { api_key: new Secret(FAKE_API_KEY), hmac_key: new Secret(FAKE_HMAC_KEY) };

export async function openAdyen(settings: JsonObject = {}): Promise<AdyenUnderTest> {
  const fake = await startFakeAdyen();
  const connection = connectAdyen({ base_url: fake.url, ...settings });
  return {
    fake,
    connection,
    delivered: () => Promise.all(fake.notifications.splice(0).map((body) => read(connection, body))),
    close: async () => {
      await connection.close();
      await fake.close();
    },
  };
}

/** A connection as the service opens it. */
export function connectAdyen(settings: JsonObject = {}, secrets: Record<string, Secret> = SECRETS) {
  const all = {
    base_url: 'http://127.0.0.1:1',
    timeout_ms: 20_000,
    merchant_account: FAKE_ACCOUNT,
    redirect_methods: { WALLET_B: 'ideal' },
    ...settings,
  };
  return redactOutcomes(adyenConnector.connect(all, { providerId: 'ADYEN', secrets }));
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

/** The one subject of a reading, with what it says. */
export function subjectOf(reading: NotificationReading | undefined) {
  if (reading?.kind !== 'about' || reading.subjects.length !== 1)
    throw new Error('it is about nothing, or too much');
  return reading.subjects[0] as (typeof reading.subjects)[number];
}

/** An attempt by card with options of its own, for a card holder whose name tells the fake what to do. */
export function cardWith(
  options: Partial<CardOptions> & { holderName?: string } = {},
  over: Partial<PaymentAttempt> = {},
): PaymentAttempt {
  const { holderName, ...rest } = options;
  const attempt = cardAttempt(undefined, over);
  if (attempt.method.kind !== 'card') throw new Error('not a card');
  const { method } = attempt;
  const card = holderName === undefined ? method.card : { ...method.card, holderName };
  return { ...attempt, method: { ...method, ...rest, card } };
}

/** All that Adyen wants to know of a browser before it sends its payer to a challenge. */
export const BROWSER = {
  userAgent: 'Mozilla/5.0',
  acceptHeader: '*/*',
  colorDepth: '24',
  screenHeight: '900',
  screenWidth: '1440',
  language: 'es-CO',
};

export const redirectBy = redirectAttempt;
