import type { AddressInfo } from 'node:net';
import Fastify from 'fastify';
import { Pool } from 'undici';
import { newBarePayment, openBarePayments } from './bare-payment.ts';
import { ready } from './worker.ts';

// The floor: no Node service can be much faster. It parses the request, commits the same rows twice, calls the same
// provider in between, and always returns the same response. It checks nothing.

const [databaseUrl = '', sampleFile = '', providerPort = '', connections = '64'] = process.argv.slice(2);
const payments = openBarePayments(databaseUrl, sampleFile);
const provider = new Pool(`http://127.0.0.1:${providerPort}`, { connections: Number(connections) });

type Body = {
  readonly country: string;
  readonly description: string;
  readonly merchant_order_id: string;
  readonly merchant_reference: string;
  readonly amount: { readonly currency: string; readonly value: string };
  readonly customer_payer: object;
  readonly payment_method: { readonly detail: { readonly card: { readonly card_data: object } } };
  readonly additional_data: { readonly order: object };
};

const app = Fastify();
app.post<{ Body: Body }>('/v1/payments', async ({ headers, body }, reply) => {
  const cents = Number(body.amount.value.replace('.', ''));
  const payment = newBarePayment(String(headers['x-idempotency-key']), BigInt(cents));
  await payments.claim(payment);
  const charge = await provider.request({
    method: 'POST',
    path: '/v1/charges',
    headers: { 'content-type': 'application/json', 'idempotency-key': payment.transactionId },
    body: JSON.stringify(chargeOf(body, cents)),
  });
  const { status } = (await charge.body.json()) as { status: string };
  if (status !== 'approved') throw new Error('the provider did not approve');
  await payments.finish(payment);
  return reply.code(201).type('application/json').send(payments.response);
});
await app.listen({ host: '127.0.0.1', port: 0 });
ready((app.server.address() as AddressInfo).port);

function chargeOf(body: Body, amount: number): object {
  return {
    amount,
    currency: body.amount.currency,
    country: body.country,
    reference: body.merchant_reference,
    order_number: body.merchant_order_id,
    description: body.description,
    payer: body.customer_payer,
    order: body.additional_data.order,
    capture: true,
    installments: 1,
    card: body.payment_method.detail.card.card_data,
  };
}
