import { afterEach, describe, expect, it, vi } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { acquireSlot, MAX_CONNECTION_SLOTS } from '#src/payments/create/connection-slots.ts';
import { createPayment, type PaymentDeps } from '#src/payments/create/create-payment.ts';
import type { PreparedPayment } from '#src/payments/create/prepare-payment.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments();

it("a payment beyond a hanging provider's slots is refused with its key unused, until a slot is free", async () => {
  const { request } = await payments.payAs(payments.caller());
  const answering = Promise.withResolvers<void>();
  let held = 0;
  const deps: PaymentDeps = {
    ...payments.deps,
    observer: {
      ...payments.deps.observer,
      async providerCall(_connectionId, _transactionId, call) {
        held += 1;
        await answering.promise;
        return call();
      },
    },
  };
  const pay = (key?: string) => createPayment(deps, request, payments.caller(key));
  const first = pay('first');
  const others = Array.from({ length: MAX_CONNECTION_SLOTS - 1 }, () => pay());
  await expect.poll(() => held).toBe(MAX_CONNECTION_SLOTS);

  await expect(pay('late')).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE', status: 503 });
  const { rows } = await payments.database.query(
    { name: 'late', text: "SELECT FROM payment WHERE idempotency_key LIKE '%late'" },
    [],
  );
  expect(rows).toEqual([]);
  // A repeat is not another payment, and waits for the first response.
  const repeat = pay('first');
  answering.resolve();
  expect((await repeat).record.id).toBe((await first).record.id);
  const made = await Promise.all(others);
  expect(new Set(made.map(({ record }) => record.status))).toEqual(new Set([Payment_Status.SUCCEEDED]));
  expect((await pay('late')).record.status).toBe(Payment_Status.SUCCEEDED);
});

describe('a connection slot', () => {
  afterEach(() => {
    vi.restoreAllMocks();
  });

  /**
   * Prepares payments whose first connection is one of these, by a route with the given number of
   * targets and attempts.
   */
  function preparedAt(...names: readonly string[]) {
    const connections = new Map(names.map((name) => [name, { name }]));
    return (connectionId: string, { targets = 1, maxAttempts = 1 } = {}) =>
      ({
        catalogue: { connections },
        chosen: { targets: Array(targets).fill({ id: connectionId }), maxAttempts },
        claim: { connectionId },
      }) as unknown as PreparedPayment;
  }

  it('each payment holds a slot of its connection until it is released', () => {
    const prepared = preparedAt('one', 'another');
    const taken = Array.from({ length: MAX_CONNECTION_SLOTS }, () => acquireSlot(prepared('one')));
    expect(() => acquireSlot(prepared('one'))).toThrow('too many payments wait for their provider');
    acquireSlot(prepared('another'));
    for (const giveBack of taken.slice(0, 2)) giveBack();
    acquireSlot(prepared('one'));
    acquireSlot(prepared('one'));
    expect(() => acquireSlot(prepared('one'))).toThrow('too many payments wait for their provider');
  });

  it('a payment that can fail over acquires a slot for its other targets, too', () => {
    const prepared = preparedAt('one');
    for (let i = 0; i < MAX_CONNECTION_SLOTS; i++) acquireSlot(prepared('one'));
    expect(() => acquireSlot(prepared('one', { targets: 1, maxAttempts: 2 }))).toThrow();
    expect(() => acquireSlot(prepared('one', { targets: 2, maxAttempts: 1 }))).toThrow();
    expect(() => acquireSlot(prepared('one', { targets: 2, maxAttempts: 2 }))).not.toThrow();
  });

  it.each([
    [0, 1],
    [0.5, 2],
    [0.999, 3],
  ])(
    'a payment refused for lack of slots may be retried after a random 1 to 3 s: %j → %i s',
    (drawn, retryAfterS) => {
      const prepared = preparedAt('one');
      for (let i = 0; i < MAX_CONNECTION_SLOTS; i++) acquireSlot(prepared('one'));
      vi.spyOn(Math, 'random').mockReturnValue(drawn);
      expect(() => acquireSlot(prepared('one'))).toThrow(
        expect.objectContaining({ reason: 'SERVICE_UNAVAILABLE', retryAfterS }),
      );
    },
  );
});
