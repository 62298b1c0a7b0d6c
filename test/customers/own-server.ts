import { randomUUID } from 'node:crypto';
import { beforeAll } from 'vitest';
import { onService, server, tables } from '../support/on-service.ts';
import { cardPayment } from '../support/payment-requests.ts';
import { type Call, ONE, type Response, restCalls } from './calls.ts';
import { checkoutCalls } from './checkout.ts';

export { server, tables };
/** Calls the service over REST. */
export let call: Call;
export let checkout: ReturnType<typeof checkoutCalls>;

/** Starts a service for one test file, with the sandbox's accounts. */
export function onOwnServer(): void {
  onService();
  beforeAll(() => {
    call = restCalls(server.url);
    checkout = checkoutCalls(call);
  });
}

/** Makes a payment for a customer with a card or a stored method. */
export function pay(method: object, customer: string): Promise<Response> {
  const payment = { ...cardPayment(), payment_method: { type: 'CARD', ...method } };
  const headers = { ...ONE, 'x-idempotency-key': randomUUID() };
  return call('POST', '/v1/payments', { ...payment, customer_payer: { id: customer } }, headers);
}
