import { afterEach, describe, expect, it, vi } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { limitCalls } from '#src/connectors/guards/limit-calls.ts';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { acquireSlot, type ConnectionSlot } from '#src/payments/create/connection-slots.ts';
import { createPayment, type PaymentDeps } from '#src/payments/create/create-payment.ts';
import type { PreparedPayment } from '#src/payments/create/prepare-payment.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

onOperatedPayments();

it("a payment beyond a hanging provider's slots is refused with its key unused, until a slot is free", async () => {
  const { request } = await payments.payAs(payments.caller());
  const answering = Promise.withResolvers<void>();
  let held = 0;
  const catalogue = payments.deps.catalogue();
  const connections = new Map(
    [...catalogue.connections].map(([id, connection]) => [id, limitCalls(connection, 16)]),
  );
  const deps: PaymentDeps = {
    ...payments.deps,
    catalogue: () => ({ ...catalogue, connections }),
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
  const others = Array.from({ length: 13 }, () => pay());
  await expect.poll(() => held).toBe(14);

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

  /** Prepares payments whose first connection is one of these, each with slots for two payments. */
  function preparedAt(...names: readonly string[]) {
    const connections = new Map(names.map((name) => [name, limitCalls({} as ProviderConnection, 3)]));
    const prepared = (connectionId: string) =>
      ({ catalogue: { connections }, claim: { connectionId } }) as unknown as PreparedPayment;
    const moveTo = (slot: ConnectionSlot, name: string) =>
      slot.moveTo(connections.get(name) as ProviderConnection);
    return { acquire: (name: string) => acquireSlot(prepared(name)), moveTo };
  }

  it('each payment holds a slot of its connection until the slot is released', () => {
    const { acquire } = preparedAt('one', 'another');
    const taken = [acquire('one'), acquire('one')];
    expect(() => acquire('one')).toThrow('too many payments are waiting for their provider');
    acquire('another');
    for (const slot of taken) slot.release();
    acquire('one');
    acquire('one');
    expect(() => acquire('one')).toThrow('too many payments are waiting for their provider');
  });

  it('a payment that fails over moves to a slot of its next connection', () => {
    const { acquire, moveTo } = preparedAt('one', 'another');
    const [first] = [acquire('one'), acquire('one')];
    expect(moveTo(first as ConnectionSlot, 'another')).toBe(true);
    acquire('one');
    acquire('another');
    expect(() => acquire('another')).toThrow();
    first?.release();
    acquire('another');
    expect(() => acquire('one')).toThrow();
  });

  it('a payment whose next connection has no slot keeps its current slot', () => {
    const { acquire, moveTo } = preparedAt('one', 'another');
    const [first] = [acquire('one'), acquire('one'), acquire('another'), acquire('another')];
    expect(moveTo(first as ConnectionSlot, 'another')).toBe(false);
    expect(() => acquire('one')).toThrow();
    first?.release();
    acquire('one');
  });

  it('a connection without a limit always has a slot', () => {
    const connections = new Map([['one', {}]]);
    const prepared = { catalogue: { connections }, claim: { connectionId: 'one' } };
    const slot = acquireSlot(prepared as unknown as PreparedPayment);
    expect(slot.moveTo({} as ProviderConnection)).toBe(true);
    slot.release();
  });

  it.each([
    [0, 1],
    [0.5, 2],
    [0.999, 3],
  ])(
    'a payment refused for lack of slots may be retried after a random time of 1 to 3 s: %j → %i s',
    (drawn, retryAfterS) => {
      const { acquire } = preparedAt('one');
      acquire('one');
      acquire('one');
      vi.spyOn(Math, 'random').mockReturnValue(drawn);
      expect(() => acquire('one')).toThrow(
        expect.objectContaining({ reason: 'SERVICE_UNAVAILABLE', retryAfterS }),
      );
    },
  );
});
