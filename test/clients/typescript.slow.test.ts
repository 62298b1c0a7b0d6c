import { execFile } from 'node:child_process';
import { randomUUID } from 'node:crypto';
import { cpSync, mkdtempSync, rmSync, symlinkSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { createClient, type Interceptor } from '@connectrpc/connect';
import { createConnectTransport, createGrpcTransport } from '@connectrpc/connect-node';
import { afterAll, beforeAll, describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { createPaymentsClient, type PaymentsClient } from '../../clients/typescript/src/client.ts';
import { paymentsErrorOf, paymentsInterceptor } from '../../clients/typescript/src/connect.ts';
import { PaymentsError } from '../../clients/typescript/src/errors.ts';
import type { CreatePaymentRequest } from '../../clients/typescript/src/operations.ts';
import { verifyWebhook, WebhookError } from '../../clients/typescript/src/webhooks.ts';
import { onService, server, tables } from '../support/on-service.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { type Receiver, startReceiver } from '../webhooks/receiver.ts';

const run = promisify(execFile);
const KEYS = { publicApiKey: 'pk_sandbox_one', privateSecretKey: 'sk_sandbox_one' };
let receiver: Receiver;
let client: PaymentsClient;

onService();
beforeAll(async () => {
  receiver = await startReceiver();
  client = createPaymentsClient({ baseUrl: server.url, ...KEYS });
});
afterAll(() => receiver?.close());

function card(over: Partial<CreatePaymentRequest> = {}, number = '4111111111111111'): CreatePaymentRequest {
  return {
    account_id: ACCOUNT_ONE,
    merchant_order_id: 'order-1001',
    country: 'US',
    amount: { currency: 'USD', value: '55.75' },
    payment_method: {
      type: 'CARD',
      detail: { card: { card_data: { number, expiration_month: 12, expiration_year: 30 } } },
    },
    ...over,
  };
}

/** Makes a client whose network fails as listed, one entry per try: the response is lost, or is a 503. */
function troubled(...troubles: readonly ('lose' | 503 | 'ok')[]) {
  const keys: (string | null)[] = [];
  const trouble: typeof fetch = async (input, init) => {
    const next = troubles[keys.length] ?? 'ok';
    keys.push(new Headers(init?.headers).get('x-idempotency-key'));
    if (next === 503) return new Response('', { status: 503, headers: { 'retry-after': '0' } });
    const response = await fetch(input, init);
    if (next === 'ok') return response;
    await response.text();
    throw new TypeError('the connection was reset');
  };
  const options = { baseUrl: server.url, ...KEYS, fetch: trouble, firstPauseMs: 1 };
  return { client: createPaymentsClient(options), keys };
}

const codeOf = (error: unknown) => (error instanceof PaymentsError ? error.code : error);

describe('the REST client', () => {
  it('the REST client makes, reads, captures in part and refunds a payment', async () => {
    const method = card().payment_method;
    const hold = { ...method, detail: { card: { ...method.detail?.card, capture: false } } };
    const payment = await client.createPayment(card({ payment_method: hold }));
    const captured = await client.capturePayment({
      payment_id: payment.id,
      amount: { currency: 'USD', value: 50 },
    });
    expect([captured.status, captured.amount.captured]).toEqual(['SUCCEEDED', 50]);
    const refunded = await client.refundPayment({ payment_id: payment.id, reason: 'REQUESTED_BY_CUSTOMER' });
    expect(refunded.status).toBe('REFUNDED');
    expect((await client.getPayment({ id: payment.id })).amount.refunded).toBe(50);
  });

  it('the REST client returns a declined payment without an error', async () => {
    const payment = await client.createPayment(card({}, '4000000000009995'));
    expect([payment.status, payment.transactions.response_code]).toEqual(['DECLINED', 'INSUFFICIENT_FUNDS']);
  });

  it('the REST client repeats a call with the same key when its response is lost, and makes one payment', async () => {
    const order = randomUUID();
    const { client, keys } = troubled('lose', 503, 'lose');
    const payment = await client.createPayment(card({ merchant_order_id: order }));
    expect(payment.status).toBe('SUCCEEDED');
    expect(keys).toHaveLength(4);
    expect(new Set(keys).size).toBe(1);
    expect(await client.listPayments({ merchant_order_id: order })).toHaveLength(1);
  });

  it('the REST client gives up with an error that contains the idempotency key for another try', async () => {
    const { client: lost } = troubled('lose', 'lose', 'lose', 'lose', 'lose');
    const error = await lost.createPayment(card()).catch((thrown: unknown) => thrown);
    expect(codeOf(error)).toBe('NO_RESPONSE');
    const { mayHaveHappened, idempotencyKey = '' } = error as PaymentsError;
    expect(mayHaveHappened).toBe(true);
    expect((await client.createPayment(card(), { idempotencyKey })).status).toBe('SUCCEEDED');
  });

  it('the REST client does not repeat a call that has no key and may have had an effect', async () => {
    const { client, keys } = troubled('lose');
    const change = client.updateWebhook({ id: randomUUID(), events: ['payment.capture'] });
    await expect(change).rejects.toThrow(PaymentsError);
    expect(keys).toEqual([null]);
  });

  it('the REST client reports a refusal with its code and invalid fields, and does not repeat the call', async () => {
    const { client, keys } = troubled();
    const error = await client.createPayment(card({ country: 'XX' })).catch((thrown: unknown) => thrown);
    expect(error).toMatchObject({
      code: 'INVALID_PARAMETERS',
      status: 400,
      mayHaveHappened: false,
      errors: [{ field: 'country', code: 'INVALID_FORMAT' }],
    });
    expect((error as PaymentsError).requestId).toMatch(/^[0-9a-f]{24}$/);
    expect(keys).toHaveLength(1);
  });

  it('the REST client stops when its caller aborts', async () => {
    const signal = AbortSignal.abort();
    expect(codeOf(await client.getPayment({ id: 'x' }, { signal }).catch((error) => error))).toBe(
      'NO_RESPONSE',
    );
  });

  it('the REST client reads a list page by page', async () => {
    const order = randomUUID();
    const made: string[] = [];
    for (let i = 0; i < 5; i++)
      made.push((await client.createPayment(card({ merchant_order_id: order }))).id);
    const read: string[] = [];
    for await (const page of client.pages('listPayments', { merchant_order_id: order, page_size: 2 })) {
      expect(page.length).toBeLessThanOrEqual(2);
      read.push(...page.map(({ id }) => id));
    }
    expect(read).toEqual(made.reverse());
  });
});

it('verifyWebhook returns the typed event, and refuses forged, changed, old and unsigned events', async () => {
  const { id, secret } = await client.createWebhook({ url: receiver.url, events: ['payment.purchase'] });
  const payment = await client.createPayment(card());
  const [delivery] = await receiver.has(1);
  if (!delivery) throw new Error('no event was delivered');
  const header = (name: string) => delivery.headers[name];
  const event = await verifyWebhook([`whsec_${btoa('an old one')}`, secret], header, delivery.text);
  expect([event.type_event, event.data.payment?.id]).toEqual(['payment.purchase', payment.id]);
  const other = `whsec_${btoa('another')}`;
  const changed = delivery.text.replace('SUCCEEDED', 'DECLINED');
  const later = { nowMs: Date.now() + 301_000 };
  await expect(verifyWebhook(other, header, delivery.text)).rejects.toThrow(WebhookError);
  await expect(verifyWebhook(secret, header, changed)).rejects.toThrow(WebhookError);
  await expect(verifyWebhook(secret, header, delivery.text, later)).rejects.toThrow('too old');
  await expect(verifyWebhook(secret, () => null, delivery.text)).rejects.toThrow('missing');
  await client.deleteWebhook({ id });
});

describe.each([
  ['Connect', createConnectTransport],
  ['gRPC', createGrpcTransport],
])('the rpc interceptor over %s', (_name, createTransport) => {
  const request = {
    accountId: ACCOUNT_ONE,
    merchantOrderId: 'order-1001',
    country: 'US',
    amount: { currency: 'USD', value: { value: '55.75' } },
    paymentMethod: {
      type: 'CARD',
      detail: {
        kind: {
          case: 'card' as const,
          value: { cardData: { number: '4111111111111111', expirationMonth: 12, expirationYear: 30 } },
        },
      },
    },
  };
  const connect = (...interceptors: Interceptor[]) =>
    createClient(
      PaymentService,
      createTransport({
        baseUrl: server.url,
        httpVersion: '2',
        interceptors: [paymentsInterceptor({ ...KEYS, firstPauseMs: 1 }), ...interceptors],
      }),
    );

  it('the interceptor sends the keys, and repeats a lost call with the same idempotency key', async () => {
    const keys: (string | null)[] = [];
    const loseFirst: Interceptor = (next) => async (sent) => {
      keys.push(sent.header.get('x-idempotency-key'));
      const response = await next(sent);
      if (keys.length === 1) throw new Error('lost');
      return response;
    };
    const before = (await tables.counts()).payments;
    const payment = await connect(loseFirst).createPayment(request);
    expect(payment.status).toBe(Payment_Status.SUCCEEDED);
    expect([keys.length, new Set(keys).size]).toEqual([2, 1]);
    expect((await tables.counts()).payments).toBe(before + 1);
  });

  it('the interceptor makes the code and the invalid fields of a refusal available', async () => {
    const error = await connect()
      .createPayment({ ...request, country: 'XX' })
      .catch((thrown: unknown) => thrown);
    expect(paymentsErrorOf(error)).toMatchObject({
      code: 'INVALID_PARAMETERS',
      mayHaveHappened: false,
      errors: [{ field: 'country', code: 'INVALID_FORMAT' }],
    });
  });
});

it('the client package builds, and another project makes a payment with its JavaScript', async () => {
  const root = join(import.meta.dirname, '../..');
  const directory = mkdtempSync(join(tmpdir(), 'payments-client-'));
  try {
    const installed = join(directory, 'node_modules/payments-client');
    const tsc = join(root, 'node_modules/.bin/tsc');
    await run(tsc, ['-p', join(root, 'clients/typescript'), '--outDir', join(installed, 'dist')]);
    cpSync(join(root, 'clients/typescript/package.json'), join(installed, 'package.json'));
    cpSync(join(root, 'gen'), join(installed, 'dist/gen'), { recursive: true });
    for (const peer of ['@bufbuild', '@connectrpc'])
      symlinkSync(join(root, 'node_modules', peer), join(directory, 'node_modules', peer));
    writeFileSync(
      join(directory, 'pay.mjs'),
      `import { createPaymentsClient } from 'payments-client';
import { paymentsErrorOf, paymentsInterceptor } from 'payments-client/connect';
import { PaymentService } from 'payments-client/gen/payments/v1/payment_service_pb.js';
import { verifyWebhook } from 'payments-client/webhooks';
const client = createPaymentsClient(${JSON.stringify({ baseUrl: server.url, ...KEYS })});
const { status } = await client.createPayment(${JSON.stringify(card())});
console.log(status, typeof paymentsInterceptor, PaymentService.typeName, typeof verifyWebhook);`,
    );
    const { stdout } = await run(process.execPath, ['pay.mjs'], { cwd: directory });
    expect(stdout).toBe('SUCCEEDED function payments.v1.PaymentService function\n');
  } finally {
    rmSync(directory, { recursive: true });
  }
});
