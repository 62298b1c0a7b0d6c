import { afterAll, beforeAll, expect, it } from 'vitest';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { stripeConnector } from '#src/connectors/stripe/connector.ts';
import { Secret } from '#src/secret.ts';
import { FAKE_API_KEY, FAKE_WEBHOOK_SECRET } from '../../connectors/stripe/fake-stripe.ts';
import { codeAttempt, type LocalType } from '../../connectors/stripe/stripe-under-test.ts';
import { connect, lookUp } from '../../connectors/under-test.ts';
import { codeAtDouble } from './code-at-double.ts';
import type { Judge } from './provider.ts';
import { stripe } from './stripe.ts';

/* The codes of the double with which the faults judge Stripe, behind its front. */

let judge: Judge;
let connection: ProviderConnection;

beforeAll(async () => {
  judge = await stripe.start({
    checkout: '',
    ledgerUrl: async () => '',
    deliver: async () => undefined,
  });
  const secrets = {
    api_key: new Secret(FAKE_API_KEY),
    webhook_secret: new Secret(FAKE_WEBHOOK_SECRET),
  };
  connection = connect(stripeConnector, { base_url: `http://127.0.0.1:${judge.port}` }, secrets);
});
afterAll(async () => {
  await connection?.close();
  await judge?.kill();
});

async function created(over: Partial<PaymentAttempt> = {}, type: LocalType = 'PIX') {
  const attempt = codeAttempt(type, over);
  const code = await codeAtDouble(judge, connection, attempt);
  const { outcome, line } = code;
  const isNow = async (kind: string, status: string, captured: number) => {
    expect(await lookUp({ connection }, attempt, outcome.reference)).toMatchObject({ kind });
    const entry = { kind: 'code', status, amount: 15_000, amount_captured: captured };
    expect(await line()).toMatchObject(entry);
  };
  return { ...code, isNow };
}

it.each(['PIX', 'BOLETO', 'OXXO', 'SPEI'] as const)(
  'a code of %s at the double is created, paid, and named in a signed notification',
  async (type) => {
    const { attempt, line, isNow } = await created({}, type);
    await isNow('awaits_payer', 'created', 0);
    await judge.agree(await line());
    await isNow('approved', 'paid', 15_000);
    const notification = judge.notification(await line(), { isForged: false });
    expect(await connection.readNotification?.(notification, Date.now())).toMatchObject({
      subjects: [{ transactionId: attempt.transactionId }],
    });
  },
);

it('a code at the double runs out, and is closed', async () => {
  const ended = await created();
  await judge.expire?.(await ended.line());
  await ended.isNow('expired', 'expired', 0);
  await expect(judge.expire?.(await ended.line())).rejects.toThrow('the code is canceled');
  const closed = await created();
  await lookUp({ connection }, closed.attempt, closed.outcome.reference, { close: true });
  await closed.isNow('expired', 'canceled', 0);
  await expect(judge.agree(await closed.line())).rejects.toThrow('the code is worthless');
});

it.each(['reset_before', 'reset_after', 'error_before'])(
  'a code whose creation the front loses by %s is created once',
  async (word) => {
    const { isNow } = await created({ description: `sandbox:${word}` });
    await isNow('awaits_payer', 'created', 0);
  },
);

it('the front knows the creation of a code from that of an intent for a card', () => {
  const create = 'POST /v1/payment_intents HTTP/1.1\r\n\r\namount=1&capture_method=automatic';
  expect([`${create}&confirm=true&description=x`, create].map(stripe.callOf)).toEqual(['charge', undefined]);
});
