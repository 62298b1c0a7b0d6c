import { describe, expect, it } from 'vitest';
import { cardAttempt, operationOn } from './attempts.ts';
import { CIRCUIT_OPEN, guarded, later, OUTCOMES } from './guarded-connection.ts';

const { approved, declined, unknown, notSent, turnedAway } = OUTCOMES;

describe('a closed circuit', () => {
  it.each(Object.entries(OUTCOMES))(
    'a closed circuit returns the outcome unchanged: %s',
    async (_name, outcome) => {
      const { begin } = guarded();
      const payment = begin();
      await payment.sent?.end(outcome);
      expect(await payment.outcome).toBe(outcome);
    },
  );

  it.each([
    ['unknown', unknown],
    ['not_sent', notSent],
  ])('a closed circuit opens after repeated %s outcomes', async (_name, outcome) => {
    const { health, make } = guarded();
    await make(outcome);
    expect(health.isAvailable()).toBe(true);
    await make(outcome);
    expect(health.isAvailable()).toBe(false);
    expect(health.state()).toBe('OPEN');
  });

  it('a closed circuit opens neither on declines nor on attempts that were turned away', async () => {
    const { health, make } = guarded();
    for (let i = 0; i < 50; i++) await make(declined, turnedAway);
    expect(health.state()).toBe('CLOSED');
  });

  it('a circuit opens once it has counted minCalls calls and the share of failures reaches failureRate', async () => {
    const { health, make } = guarded({ failureRate: 0.3, minCalls: 10 });
    await make(unknown, unknown, unknown, ...Array(6).fill(approved));
    expect(health.state()).toBe('CLOSED');
    // 3 of 10 have already failed, but only a failure opens the circuit.
    await make(approved);
    expect(health.state()).toBe('CLOSED');
    await make(unknown);
    expect(health.state()).toBe('OPEN');
  });

  it('a circuit stays closed while the share of failed calls is below failureRate', async () => {
    const { health, make } = guarded({ failureRate: 0.3, minCalls: 10 });
    for (let i = 0; i < 20; i++) await make(approved, approved, approved, unknown);
    expect(health.state()).toBe('CLOSED');
  });

  it('a circuit with a failureRate of 1 opens only if all calls fail', async () => {
    const some = guarded({ failureRate: 1, minCalls: 3 });
    for (let i = 0; i < 20; i++) await some.make(unknown, unknown, approved);
    expect(some.health.state()).toBe('CLOSED');
    const all = guarded({ failureRate: 1, minCalls: 3 });
    await all.make(unknown, unknown, unknown);
    expect(all.health.state()).toBe('OPEN');
  });

  it('attempts that are turned away because the provider hangs do not keep a circuit from opening', async () => {
    const { health, make } = guarded({ minCalls: 20 });
    await make(...Array(200).fill(turnedAway), ...Array(20).fill(notSent));
    expect(health.state()).toBe('OPEN');
  });

  it('a closed circuit forgets failures older than the window, however few calls follow', async () => {
    const { health, make } = guarded({ failureRate: 0.75, minCalls: 4 });
    await make(unknown, unknown, unknown);
    later(10_000);
    await make(approved, unknown);
    expect(health.state()).toBe('CLOSED');
    await make(unknown, unknown);
    expect(health.state()).toBe('OPEN');
  });

  it('a closed circuit forgets calls one tenth of the window at a time', async () => {
    const first = guarded({ failureRate: 0.5, minCalls: 4 });
    await first.make(unknown);
    later(999);
    await first.make(unknown, approved);
    later(9_001);
    await first.make(unknown, unknown);
    expect(first.health.state()).toBe('CLOSED');
    const second = guarded({ failureRate: 0.5, minCalls: 4 });
    await second.make(approved);
    later(1_000);
    await second.make(unknown, approved);
    later(9_000);
    await second.make(unknown, unknown);
    expect(second.health.state()).toBe('OPEN');
  });

  it('a closed circuit opens after enough failures in a row, however long they take', async () => {
    const { health, make } = guarded({ minCalls: 3 });
    for (const outcome of [unknown, approved, notSent, turnedAway, unknown]) {
      await make(outcome);
      later(60_000);
    }
    expect(health.state()).toBe('CLOSED');
    await make(unknown);
    expect(health.state()).toBe('OPEN');
  });
});

describe('an open circuit', () => {
  it('an open circuit returns not_sent at once, and the provider receives nothing', async () => {
    const { open, begin } = guarded();
    await open();
    later(999);
    const { outcome, sent } = begin();
    expect(sent).toBeUndefined();
    expect(await outcome).toEqual(CIRCUIT_OPEN);
  });

  it('an open circuit lets look-ups pass, and learns nothing from them', async () => {
    const { connection, open, lookedUp, health } = guarded();
    const query = {
      transactionId: 'transaction-1',
      money: { minorUnits: 1n, currency: 'USD' },
      reference: undefined,
      ageMs: 0,
      payerTimeLeftMs: 0,
      close: false,
      of: { kind: 'CARD', capture: true, verify: false, softDescriptor: '', attempt: cardAttempt() },
    } as const;
    for (let i = 0; i < 5; i++) await connection.lookUp?.(query);
    expect(health.state()).toBe('CLOSED');
    await open();
    expect(await connection.lookUp?.(query)).toBe(unknown);
    expect(lookedUp).toHaveLength(6);
    expect(await connection.complete?.(query)).toBe(approved);
    expect(health.state()).toBe('OPEN');
  });

  it.each(['capture', 'cancel', 'refund'] as const)(
    'an open circuit blocks a %s like a payment, and a successful trial closes the circuit',
    async (name) => {
      const { connection, open, payments, health } = guarded();
      const operation = operationOn(cardAttempt(), undefined);
      const call = () => connection[name]?.(operation);
      const failing = [call(), call()];
      for (const payment of payments) await payment.end(unknown);
      expect(await Promise.all(failing)).toEqual([unknown, unknown]);
      expect(health.state()).toBe('OPEN');
      expect(await call()).toEqual(CIRCUIT_OPEN);
      expect(payments).toHaveLength(2);
      later(1_000);
      const trial = call();
      await payments[2]?.end(approved);
      expect(await trial).toBe(approved);
      expect(health.state()).toBe('CLOSED');
      await open();
      expect(health.isAvailable()).toBe(false);
    },
  );
});

describe('payments from before the circuit opened', () => {
  it('a payment from before the circuit opened neither closes it by success nor reopens it by failure', async () => {
    const { begin, open, make, health } = guarded();
    const late = Array.from({ length: 8 }, begin);
    const endTwo = async () => {
      await late.pop()?.sent?.end(approved);
      await late.pop()?.sent?.end(unknown);
    };
    await open();
    await endTwo();
    expect(health.state()).toBe('OPEN');
    later(1_000);
    await endTwo();
    expect(health.isAvailable()).toBe(true);
    const trial = begin();
    await endTwo();
    expect(health.state()).toBe('HALF_OPEN');
    await trial.sent?.end(approved);
    expect(health.state()).toBe('CLOSED');
    await late.pop()?.sent?.end(unknown);
    await late.pop()?.sent?.end(unknown);
    expect(health.state()).toBe('CLOSED');
    await make(unknown);
    expect(health.state()).toBe('CLOSED');
    await make(unknown);
    expect(health.state()).toBe('OPEN');
  });

  it('a payment from before the circuit opened does not lengthen the pause by failing', async () => {
    const { begin, health, states } = guarded();
    const calls = Array.from({ length: 100 }, begin);
    await Promise.all(calls.map(({ sent }) => sent?.end(unknown)));
    expect((await Promise.all(calls.map(({ outcome }) => outcome))).every((it) => it === unknown)).toBe(true);
    expect(states).toEqual(['OPEN']);
    later(1_000);
    expect(health.isAvailable()).toBe(true);
  });
});

it('a circuit reports each new state', async () => {
  const { open, make, probes, health, states } = guarded({ probed: true });
  await open();
  later(1_000);
  health.probeIfDue();
  expect(states).toEqual(['OPEN', 'HALF_OPEN']);
  await probes[0]?.end(false);
  later(2_000);
  health.probeIfDue();
  await probes[1]?.end(true);
  await make(unknown);
  later(4_000);
  health.probeIfDue();
  await probes[2]?.end(true);
  await make(approved);
  expect(states).toEqual(['OPEN', 'HALF_OPEN', 'OPEN', 'HALF_OPEN', 'OPEN', 'HALF_OPEN', 'CLOSED']);
});

describe('look-ups and open circuits', () => {
  it('look-ups stop while the circuit is open, until a probe succeeds', async () => {
    const { open, health, probes } = guarded({ probed: true });
    expect(health.isLeftAlone()).toBe(false);
    await open();
    expect(health.isLeftAlone()).toBe(true);
    later(1_000);
    health.probeIfDue();
    expect(health.isLeftAlone()).toBe(true);
    await probes[0]?.end(false);
    expect(health.isLeftAlone()).toBe(true);
    later(2_000);
    health.probeIfDue();
    await probes[1]?.end(true);
    // Without a payment for the trial, the circuit stays half open, but look-ups must continue.
    expect(health.state()).toBe('HALF_OPEN');
    expect(health.isLeftAlone()).toBe(false);
  });

  it('look-ups resume after the pause without a payment if the provider cannot be probed', async () => {
    const { open, health } = guarded();
    await open();
    expect(health.isLeftAlone()).toBe(true);
    later(1_000);
    expect(health.isLeftAlone()).toBe(false);
  });
});
