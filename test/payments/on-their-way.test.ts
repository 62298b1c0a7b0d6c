import { afterAll, beforeAll, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { createPayment, type PaymentDeps } from '#src/payments/create-payment.ts';
import { MAX_ON_THEIR_WAY } from '#src/payments/on-their-way.ts';
import { type OperatedPayments, openOperatedPayments } from './operated-payments.ts';

let payments: OperatedPayments;

beforeAll(async () => {
  payments = await openOperatedPayments();
});
afterAll(() => payments?.close());

it('a payment too many for a provider that hangs is refused before its key is used, and made once there is room', async () => {
  const { request } = await payments.payAs(payments.caller());
  const answering = Promise.withResolvers<void>();
  let held = 0;
  const deps: PaymentDeps = {
    ...payments.deps,
    observer: {
      ...payments.deps.observer,
      async providerCall(_connectionId, call) {
        held += 1;
        await answering.promise;
        return call();
      },
    },
  };
  const pay = (key?: string) => createPayment(deps, request, payments.caller(key));
  const first = pay('first');
  const others = Array.from({ length: MAX_ON_THEIR_WAY - 1 }, () => pay());
  await expect.poll(() => held, { timeout: 60_000 }).toBe(MAX_ON_THEIR_WAY);

  await expect(pay('late')).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE', status: 503 });
  const { rows } = await payments.database.query(
    { name: 'late', text: "SELECT FROM payment WHERE idempotency_key LIKE '%late'" },
    [],
  );
  expect(rows).toEqual([]);
  // A repeat is no payment more: it waits for its own.
  const repeat = pay('first');
  answering.resolve();
  expect((await repeat).record.id).toBe((await first).record.id);
  const made = await Promise.all(others);
  expect(new Set(made.map(({ record }) => record.status))).toEqual(new Set([Payment_Status.SUCCEEDED]));
  expect((await pay('late')).record.status).toBe(Payment_Status.SUCCEEDED);
});
