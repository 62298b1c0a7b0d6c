import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { CreateCheckoutPaymentRequestSchema } from '#gen/payments/v1/checkout_service_pb.js';
import { PaymentMethodInputSchema } from '#gen/payments/v1/payment_method_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { payCheckout } from '#src/customers/checkout-payments.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import type { Database } from '#src/store/engine/database.ts';
import { AlreadyUsedError } from '#src/store/tables/single-uses.ts';
import { onOperatedPayments, payments } from '../payments/operated-payments.ts';
import { interleave } from '../support/interleave.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';

let wallet: CreatePaymentRequest;
let customer: string;
let session: string;
let storedCard: string;

onOperatedPayments();
beforeAll(async () => {
  const { tables } = payments;
  ({ request: wallet } = await payments.payAs(payments.caller(), { wallet: true }));
  customer = randomUUID();
  await tables.query("INSERT INTO customer (account_id, id, payer) VALUES ($1, $2, '')", [
    ACCOUNT_ONE,
    customer,
  ]);
  const kept = await payments.pay({ keepsCard: true, customerId: customer });
  storedCard = kept.paymentMethod?.vaultedToken ?? '';
});
beforeEach(async () => {
  session = randomUUID();
  await payments.tables.query(
    `INSERT INTO checkout_session (account_id, id, merchant_order_id, country, currency, amount_minor_units, customer_id, workflow, expires_at)
     VALUES ($1, $2, 'order-1', $3, 'USD', 10000, $4, 'REDIRECT', now() + interval '1 hour')`,
    [ACCOUNT_ONE, session, wallet.country, customer],
  );
});

/** Pays the session as a browser does, while the merchant changes it after each of the first reads. */
function payWhile(change: string, paymentMethod: CreatePaymentRequest['paymentMethod'], times = 1) {
  const { database, tables, deps } = payments;
  const text = `UPDATE checkout_session SET version = version + 1, ${change} WHERE id = $1`;
  const racing = interleave(database, {
    after: { get_checkout_session: (nth) => nth <= times && tables.query(text, [session]) },
  });
  const request = create(CreateCheckoutPaymentRequestSchema, { checkoutSession: session, paymentMethod });
  const caller = { ...payments.caller(), secretPresented: false };
  return payCheckout({ ...deps, database: racing }, request, caller, () => {});
}

it('a session that loses its customer during a payment cannot be paid with the customer’s stored card', async () => {
  const method = create(PaymentMethodInputSchema, { type: 'CARD', vaultedToken: storedCard });
  await payments.tables.query("UPDATE checkout_session SET workflow = 'DIRECT' WHERE id = $1", [session]);
  const paid = payWhile('customer_id = NULL', method);
  await expect(paid).rejects.toMatchObject({ reason: 'INVALID_CUSTOMER_FOR_TOKEN' });
});

it('a session whose order changes during a payment is paid for the new order', async () => {
  const { message } = await payWhile("merchant_order_id = 'order-2'", wallet.paymentMethod);
  const payment = await getPayment(payments.deps, message.id, payments.caller());
  expect([payment.merchantOrderId, payment.checkout?.session]).toEqual(['order-2', session]);
});

it('a payment is given up if its session changes at every try, and does not count as a payment of the session', async () => {
  const paid = payWhile("merchant_order_id = 'order-2'", wallet.paymentMethod, Number.POSITIVE_INFINITY);
  await expect(paid).rejects.toBeInstanceOf(AlreadyUsedError);
  const found = await payments.tables.query('SELECT payments FROM checkout_session WHERE id = $1', [session]);
  expect(found).toEqual([{ payments: 0 }]);
});

it('a session’s payment reads the session and the stored objects once', async () => {
  const { database, deps } = payments;
  const read: string[] = [];
  const query: Database['query'] = (statement, values) => {
    if (/^(get|find)_.*(session|objects)/.test(statement.name)) read.push(statement.name);
    return database.query(statement, values);
  };
  const { paymentMethod } = wallet;
  const request = create(CreateCheckoutPaymentRequestSchema, { checkoutSession: session, paymentMethod });
  const caller = { ...payments.caller(), secretPresented: false };
  await payCheckout({ ...deps, database: { ...database, query } }, request, caller, () => {});
  expect(read).toEqual(['get_checkout_session', 'find_stored_objects']);
});
