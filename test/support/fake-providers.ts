import { readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { RawNotification } from '#src/connectors/port/connector.ts';
import { FAKE_API_KEY as ADYEN_API_KEY, startFakeAdyen } from '../connectors/adyen/fake-adyen.ts';
import { FAKE_ACCOUNT, FAKE_HMAC_KEY } from '../connectors/adyen/fake-notifications.ts';
import {
  FAKE_ACCESS_TOKEN,
  FAKE_WEBHOOK_SECRET as MERCADO_PAGO_WEBHOOK_SECRET,
  startFakeMercadoPago,
} from '../connectors/mercado-pago/fake-mercado-pago.ts';
import { FAKE_CLIENT_ID, FAKE_CLIENT_SECRET, startFakePayPal } from '../connectors/paypal/fake-paypal.ts';
import {
  FAKE_API_KEY as STRIPE_API_KEY,
  FAKE_WEBHOOK_SECRET as STRIPE_WEBHOOK_SECRET,
  startFakeStripe,
} from '../connectors/stripe/fake-stripe.ts';

const EXAMPLE = join(import.meta.dirname, '../../config/examples/all-providers.yaml');

/** The secrets of all fakes, keyed by the environment variables of the example catalogue. */
export const FAKE_SECRETS = {
  ADYEN_API_KEY,
  ADYEN_HMAC_KEY: FAKE_HMAC_KEY,
  STRIPE_API_KEY,
  STRIPE_WEBHOOK_SECRET,
  PAYPAL_CLIENT_ID: FAKE_CLIENT_ID,
  PAYPAL_CLIENT_SECRET: FAKE_CLIENT_SECRET,
  MERCADO_PAGO_ACCESS_TOKEN: FAKE_ACCESS_TOKEN,
  MERCADO_PAGO_WEBHOOK_SECRET,
};

/** Settings of a service whose connections lead to fakes: their secrets, and short pauses between checks. */
export const AT_FAKES = {
  environment: (name: string) => FAKE_SECRETS[name as keyof typeof FAKE_SECRETS],
  recoveryIntervalMs: 50,
  checkSchedule: { leaseMarginMs: 10_000, firstCheckMs: 100, closingMarginMs: 10_000 },
};

/** Starts the fakes of all four providers, each on its own port. */
export async function startFakeProviders() {
  const [adyen, stripe, paypal, mercadoPago] = await Promise.all([
    startFakeAdyen(),
    startFakeStripe(),
    startFakePayPal(),
    startFakeMercadoPago(),
  ]);

  /** Returns the example catalogue with the fakes instead of the providers' test systems. */
  function catalogue(): string {
    return readFileSync(EXAMPLE, 'utf8')
      .replace('https://checkout-test.adyen.com', adyen.url)
      .replace('https://api.stripe.com', stripe.url)
      .replace('https://api-m.sandbox.paypal.com', paypal.url)
      .replace('https://api.mercadopago.com', mercadoPago.url)
      .replace('YourCompanyECOM', FAKE_ACCOUNT);
  }

  /** Delivers Adyen's waiting notifications to a service, in order. @returns the response statuses. */
  async function tellAdyens(serviceUrl: string, connection = 'adyen-main'): Promise<readonly number[]> {
    const statuses: number[] = [];
    for (const body of adyen.notifications.splice(0)) {
      statuses.push(
        await tell(serviceUrl, connection, { header: () => undefined, query: '', body: Buffer.from(body) }),
      );
    }
    return statuses;
  }

  return {
    adyen,
    stripe,
    paypal,
    mercadoPago,
    catalogue,
    tellAdyens,
    close: () => Promise.all([adyen, stripe, paypal, mercadoPago].map((fake) => fake.close())),
  };
}

/** The notification headers of all providers. */
export const NOTIFICATION_HEADERS = [
  ...['stripe-signature', 'x-signature', 'x-request-id', 'paypal-transmission-id', 'paypal-cert-url'],
  ...['paypal-transmission-time', 'paypal-transmission-sig', 'paypal-auth-algo'],
];

/** Posts a notification to a connection's URL, as its provider does. @returns the response status. */
export async function tell(
  serviceUrl: string,
  connection: string,
  { header, query, body }: RawNotification,
): Promise<number> {
  const headers = NOTIFICATION_HEADERS.flatMap((name): [string, string][] => {
    const value = header(name);
    return value === undefined ? [] : [[name, value]];
  });
  const response = await fetch(`${serviceUrl}/v1/providers/${connection}/notifications?${query}`, {
    method: 'POST',
    headers: [...headers, ['content-type', 'application/json']],
    body: Buffer.from(body),
  });
  await response.text();
  return response.status;
}
