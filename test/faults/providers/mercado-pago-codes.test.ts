import { afterAll, beforeAll, expect, it } from 'vitest';
import { mercadoPagoConnector } from '#src/connectors/mercado-pago/connector.ts';
import type { PaymentAttempt } from '#src/connectors/port/attempt.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { Secret } from '#src/secret.ts';
import { FAKE_ACCESS_TOKEN, FAKE_WEBHOOK_SECRET } from '../../connectors/mercado-pago/fake-mercado-pago.ts';
import { codeAttempt } from '../../connectors/mercado-pago/mercado-pago-under-test.ts';
import { connect, lookUp } from '../../connectors/under-test.ts';
import { codeAtDouble } from './code-at-double.ts';
import { mercadoPago } from './mercado-pago.ts';
import type { Judge } from './provider.ts';

/* The codes of the double with which the faults judge Mercado Pago, behind its front. */

let judge: Judge;
let connection: ProviderConnection;

beforeAll(async () => {
  judge = await mercadoPago.start({
    checkout: '',
    ledgerUrl: async () => '',
    deliver: async () => undefined,
  });
  const secrets = {
    access_token: new Secret(FAKE_ACCESS_TOKEN),
    webhook_secret: new Secret(FAKE_WEBHOOK_SECRET),
  };
  connection = connect(
    mercadoPagoConnector,
    { base_url: `http://127.0.0.1:${judge.port}`, country: 'BR' },
    secrets,
  );
});
afterAll(async () => {
  await connection?.close();
  await judge?.kill();
});

async function created(over: Partial<PaymentAttempt> = {}) {
  const attempt = codeAttempt('PIX', over);
  const code = await codeAtDouble(judge, connection, attempt);
  const { outcome, line } = code;
  const isNow = async (kind: string, status: string, captured: number) => {
    expect(await lookUp({ connection }, attempt, outcome.reference)).toMatchObject({ kind });
    expect(await line()).toMatchObject({
      kind: 'code',
      status,
      amount: 3_000_000,
      amount_captured: captured,
    });
  };
  return { ...code, isNow };
}

it('a code at the double is created, paid, and named in a signed notification', async () => {
  const { attempt, line, isNow } = await created();
  await isNow('awaits_payer', 'created', 0);
  await judge.agree(await line());
  await isNow('approved', 'paid', 3_000_000);
  const told = await connection.readNotification?.(
    judge.notification(await line(), { isForged: false }),
    Date.now(),
  );
  expect(told).toMatchObject({ subjects: [{ transactionId: attempt.transactionId }] });
  await expect(judge.agree(await line())).rejects.toThrow('the code is approved');
});

it('a code at the double runs out, and is closed', async () => {
  const ended = await created();
  await judge.expire?.(await ended.line());
  await ended.isNow('expired', 'expired', 0);
  const closed = await created();
  await lookUp({ connection }, closed.attempt, closed.outcome.reference, { close: true });
  await closed.isNow('expired', 'canceled', 0);
});

it.each(['reset_before', 'reset_after', 'error_before'])(
  'a code whose creation the front loses by %s is created once',
  async (word) => {
    const { isNow } = await created({ description: `sandbox:${word}` });
    await isNow('awaits_payer', 'created', 0);
  },
);

it('the front knows the calls about codes', () => {
  expect(
    [
      'POST /v1/payments HTTP',
      'PUT /v1/payments/1 HTTP',
      'GET /v1/payments/1 HTTP',
      'POST /v1/payments/1/refunds HTTP',
    ].map(mercadoPago.callOf),
  ).toEqual(['charge', 'close', 'look_up', 'operation']);
});
