import { createClient } from '@connectrpc/connect';
import { expect, it } from 'vitest';
import { Payment_Status, Payment_SubStatus_Value } from '#gen/payments/v1/payment_pb.js';
import { PaymentService } from '#gen/payments/v1/payment_service_pb.js';
import { clients, onService, server } from './support/on-service.ts';
import { cardPayment, headersOne, walletPayment, withField } from './support/payment-requests.ts';
import { RPCS, rpcTransports } from './support/rpc-transports.ts';

onService({ config: { publicUrl: 'http://127.0.0.1:1' } });

// biome-ignore lint/suspicious/noExplicitAny: tests read arbitrary fields of the record.
type RecordJson = any;
const WALLET = walletPayment();

async function pay(request = WALLET): Promise<RecordJson> {
  const reply = await clients.create('rest', request, headersOne());
  expect([reply.status, reply.fields]).toEqual([201, []]);
  return JSON.parse(reply.record);
}

async function call(verb: string, { id }: RecordJson): Promise<{ status: number; body: RecordJson }> {
  const headers = { ...headersOne(), 'content-type': 'application/json' };
  const url = `${server.url}/v1/payments/${id}/${verb}`;
  const response = await fetch(url, { method: 'POST', headers, body: '{}' });
  return { status: response.status, body: await response.json() };
}

async function read({ id }: RecordJson): Promise<RecordJson> {
  const response = await fetch(`${server.url}/v1/payments/${id}`, { headers: headersOne() });
  return response.json();
}

const statesOf = ({ status, sub_status, transactions_history }: RecordJson) =>
  [
    `${status}/${sub_status}`,
    ...transactions_history.map((one: RecordJson) => `${one.type} ${one.status} ${one.response_code}`),
  ].join(', ');

const CLOSED = 'CANCELED/CANCELED, PURCHASE EXPIRED CANCELED_BY_MERCHANT, CANCEL SUCCEEDED SUCCEEDED';

it.each(['cancel', 'cancel-or-refund'])(
  '%s closes a payment that awaits its payer, at the sandbox',
  async (verb) => {
    const payment = await pay();
    expect(payment.status).toBe('READY_TO_PAY');
    const { status, body } = await call(verb, payment);
    expect([status, statesOf(body)]).toEqual([200, CLOSED]);
    const page = await fetch(payment.payment_method.payment_method_detail.wallet.redirect_url);
    expect(await page.text()).toContain('Too late');
  },
);

it.each(RPCS)('CancelPayment closes a payment that awaits its payer over %s', async (rpc) => {
  const payment = await pay();
  const { transports, close } = rpcTransports(server.url);
  const client = createClient(PaymentService, transports[rpc]);
  const request = { paymentId: payment.id, reason: 'REQUESTED_BY_CUSTOMER' };
  const canceled = await client.cancelPayment(request, { headers: headersOne() });
  close();
  expect([canceled.status, canceled.subStatus]).toEqual([
    Payment_Status.CANCELED,
    Payment_SubStatus_Value.CANCELED,
  ]);
  expect(canceled.transactionsHistory.map(({ responseCode }) => responseCode)).toEqual([
    'CANCELED_BY_MERCHANT',
    'SUCCEEDED',
  ]);
  expect(statesOf(await read(payment))).toBe(CLOSED);
});

it('a cancel stays pending if the sandbox does not close the payment', async () => {
  const payment = await pay(withField(WALLET, 'description', 'sandbox:stay_open'));
  const { status, body } = await call('cancel', payment);
  expect([status, body.status, body.sub_status, body.transactions.status]).toEqual([
    200,
    'CANCELED',
    'PENDING_PROVIDER_CONFIRMATION',
    'PENDING',
  ]);
});

it('a cancel of a payment that its payer has paid is declined, and the payment succeeds', async () => {
  const payment = await pay();
  const { redirect_url } = payment.payment_method.payment_method_detail.wallet;
  await fetch(`${redirect_url}/pay`, { method: 'POST', redirect: 'manual' });
  const { status, body } = await call('cancel', payment);
  expect([status, statesOf(body)]).toEqual([
    200,
    'SUCCEEDED/APPROVED, PURCHASE SUCCEEDED SUCCEEDED, CANCEL DECLINED ALREADY_PAID',
  ]);
});

it("a payer who cancels on the sandbox's page comes back by a path of its own", async () => {
  const payment = await pay();
  const { redirect_url } = payment.payment_method.payment_method_detail.wallet;
  await fetch(`${redirect_url}/leave`, { method: 'POST', redirect: 'manual' });
  const page = await (await fetch(redirect_url)).text();
  const path = `/v1/payments/${payment.id}/return/canceled`;
  expect(page).toContain(path);
  const back = await fetch(server.url + path, { redirect: 'manual', headers: { accept: 'text/html' } });
  expect([200, 303]).toContain(back.status);
  expect(statesOf(await read(payment))).toBe('DECLINED/DECLINED, PURCHASE DECLINED CANCELED_BY_PAYER');
});

it('a card payment without a challenge has nothing to close', async () => {
  const payment = await pay(cardPayment());
  expect((await call('cancel', payment)).body.code).toBe('INVALID_STATUS');
});
