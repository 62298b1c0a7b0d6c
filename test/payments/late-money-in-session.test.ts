import { randomUUID } from 'node:crypto';
import { beforeAll, expect, it } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { CreatePaymentRequest } from '#gen/payments/v1/payment_service_pb.js';
import { checkDue } from '#src/payments/check/checker.ts';
import { createPayment } from '#src/payments/create/create-payment.ts';
import { hasSqlState } from '#src/store/engine/database-error.ts';
import { readSession } from '#src/store/tables/checkout-sessions.ts';
import { notified } from '../support/news.ts';
import { databaseUrl } from '../support/own-database.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { lockWaits, openTables } from '../support/tables.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

let request: CreatePaymentRequest;

onOperatedPayments();
beforeAll(async () => {
  ({ request } = await payments.payAs(payments.caller(), { wallet: true }));
});

/** Adds a checkout session. @returns its id. */
async function openSession(expiresAt: string): Promise<string> {
  const id = randomUUID();
  await payments.tables.query(
    `INSERT INTO checkout_session (account_id, id, merchant_order_id, country, currency, amount_minor_units, workflow, expires_at)
     VALUES ($1, $2, 'o', $3, $4, 10000, 'REDIRECT', ${expiresAt})`,
    [ACCOUNT_ONE, id, request.country, request.amount?.currency],
  );
  return id;
}

async function payIn(session: string, { paymentMethod, workflow } = request): Promise<Payment> {
  const checkout = { $typeName: 'payments.v1.Checkout' as const, session, sdkActionRequired: false };
  const paid = { ...request, paymentMethod, workflow, checkout };
  return (await createPayment(payments.deps, paid, payments.caller())).record;
}

/** Makes a redirect payment and lets it expire. */
async function payExpired(session: string): Promise<Payment> {
  const payment = await payIn(session);
  await expireAll();
  expect((await readSession(payments.database, ACCOUNT_ONE, session))?.used).toBe(false);
  return payment;
}

async function expireAll(): Promise<void> {
  payments.setAhead(2 * 86_400_000);
  await payments.makeDue();
  await checkDue(payments.deps);
  payments.setAhead(0);
}

/** The payer follows the redirect after the payment has expired here. */
async function payLate(
  session: string,
  meanwhile: () => Promise<unknown> = async () => {},
): Promise<Payment> {
  const payment = await payExpired(session);
  await meanwhile();
  expect(await payerPays(payment)).toBe('applied');
  return payment;
}

function payerPays({ transactions }: Payment, deps = payments.deps) {
  const transactionId = transactions?.id ?? '';
  payments.provider.payerPays(transactionId);
  return notified(deps, 'ledger', { transactionId });
}

const FIVE_HOURS = "now() + interval '5 hours'";

it('a payment that is paid after it expired uses up its session again', async () => {
  const session = await openSession(FIVE_HOURS);
  const card = await payments.payAs(payments.caller());
  const declined = async () => {
    payments.provider.next.push('declines it');
    await payIn(session, card.request);
  };
  const payment = await payLate(session, declined);
  expect(await readSession(payments.database, ACCOUNT_ONE, session)).toMatchObject({
    ...{ used: true, paymentId: payment.id },
  });
  await expect(payIn(session)).rejects.toMatchObject({ reason: 'CHECKOUT_SESSION_NOT_FOUND' });
});

it('a session that another payment has used meanwhile stays with that payment', async () => {
  const session = await openSession(FIVE_HOURS);
  let other: Payment | undefined;
  await payLate(session, async () => {
    other = await payIn(session);
  });
  expect(await readSession(payments.database, ACCOUNT_ONE, session)).toMatchObject({
    ...{ used: true, paymentId: other?.id },
  });
});

it('a session that was paid late stays used even if the payment made in it meanwhile fails', async () => {
  const session = await openSession(FIVE_HOURS);
  await payLate(session, () => payIn(session));
  await expireAll();
  expect((await readSession(payments.database, ACCOUNT_ONE, session))?.used).toBe(true);
  await expect(payIn(session)).rejects.toMatchObject({ reason: 'CHECKOUT_SESSION_NOT_FOUND' });
});

it('a late payment does not deadlock with a payment claimed in its session at the same moment', async () => {
  const session = await openSession(FIVE_HOURS);
  const payment = await payExpired(session);
  const other = randomUUID();
  let deadlocks = 0;
  const finishFailed = (_id: string, error: unknown) => {
    if (hasSqlState(error, '40P01')) deadlocks += 1;
  };
  const deps = { ...payments.deps, observer: { ...payments.deps.observer, finishFailed } };
  const claiming = await openTables(databaseUrl());
  // Writes in the same order as a claim: first the session, then its use.
  await claiming.query('BEGIN');
  await claiming.query('UPDATE checkout_session SET payment_id = $2 WHERE id = $1', [session, other]);
  const late = payerPays(payment, deps);
  await expect.poll(() => lockWaits(payments.tables)).toBe(1);
  await claiming.query('INSERT INTO single_use VALUES ($1, $2, $3)', [ACCOUNT_ONE, session, other]);
  await claiming.query('COMMIT');
  await claiming.close();
  expect([await late, deadlocks]).toEqual(['applied', 0]);
  // The other payment used the session first, so the session continues to show that payment.
  expect(await readSession(payments.database, ACCOUNT_ONE, session)).toMatchObject({
    ...{ used: true, paymentId: other },
  });
});

it('a session without terms is never used', async () => {
  const session = await openSession('NULL');
  await payLate(session);
  expect((await readSession(payments.database, ACCOUNT_ONE, session))?.used).toBe(false);
});
