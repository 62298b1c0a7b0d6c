import { describe, expect, it } from 'vitest';
import { defaultCallLimit, limitCalls } from '#src/connectors/guards/limit-calls.ts';
import { CARDS_ONLY } from '#src/connectors/port/capabilities.ts';
import type { LookUp, Operation, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { cardAttempt } from './attempts.ts';
import { OUTCOMES } from './guarded-connection.ts';

const FULL: Outcome = { kind: 'not_sent', detail: 'too many calls in flight', because: 'turned_away' };
const OPERATION = {} as Operation;
const LOOK_UP = {} as LookUp;

/** A connection with this limit, whose calls last until `answer` is called, and the names of the calls sent. */
function limited(limit: number) {
  const sent: string[] = [];
  const answering = Promise.withResolvers<void>();
  const send = (name: string) => async (): Promise<Outcome> => {
    sent.push(name);
    await answering.promise;
    return OUTCOMES.approved;
  };
  const inner: ProviderConnection = {
    identity: 'scripted',
    environment: 'TEST',
    capabilities: CARDS_ONLY,
    deadlineMs: 1_000,
    pay: send('pay'),
    capture: send('capture'),
    cancel: send('cancel'),
    refund: send('refund'),
    complete: send('complete'),
    lookUp: send('lookUp'),
    repeatOperation: send('repeatOperation'),
    enrollWallet: send('enrollWallet'),
    lookUpEnrollment: send('lookUpEnrollment'),
    readNotification: undefined,
    probe: undefined,
    readAccount: async () => ({ result: 'ACCEPTED', account: undefined, environment: 'TEST' }),
    close: async () => {},
  };
  const connection = limitCalls(inner, limit);
  const { slots } = connection;
  if (!slots) throw new Error('a limited connection has slots');
  return { connection, slots, sent, answer: answering.resolve };
}

describe('the slots of a connection', () => {
  it('payments take up to seven eighths of the slots', () => {
    const { slots } = limited(16);
    const taken = Array.from({ length: 14 }, () => slots.take());
    expect(taken).not.toContain(undefined);
    expect(slots.hasRoom()).toBe(false);
    expect(slots.take()).toBeUndefined();
    taken[0]?.();
    expect(slots.hasRoom()).toBe(true);
    expect(slots.take()).toBeDefined();
    expect(slots.take()).toBeUndefined();
  });

  it('a slot is released only once, however often its payment releases it', () => {
    const { slots } = limited(3);
    const [first] = [slots.take(), slots.take()];
    first?.();
    first?.();
    expect(slots.take()).toBeDefined();
    expect(slots.take()).toBeUndefined();
  });

  it('the smallest limit leaves one slot for payments', () => {
    const { slots } = limited(2);
    expect(slots.take()).toBeDefined();
    expect(slots.take()).toBeUndefined();
  });

  it("a payment's call takes no slot in addition to the payment's own", async () => {
    const { connection, slots, sent, answer } = limited(2);
    const release = slots.take();
    const payment = connection.pay(cardAttempt());
    const refund = connection.refund?.(OPERATION);
    expect(sent).toEqual(['pay', 'refund']);
    answer();
    expect(await payment).toBe(OUTCOMES.approved);
    release?.();
    expect(await refund).toBe(OUTCOMES.approved);
    expect(slots.hasRoom()).toBe(true);
  });
});

describe('a call other than a payment', () => {
  it.each(['capture', 'cancel', 'refund', 'enrollWallet'] as const)(
    'a call of %s is not sent once all slots are taken, and is sent when one is free',
    async (name) => {
      const { connection, sent, answer } = limited(2);
      const others = [connection.cancel?.(OPERATION), connection.refund?.(OPERATION)];
      const operate = connection[name] as (argument: object) => Promise<Outcome>;
      expect(await operate(OPERATION)).toEqual(FULL);
      expect(sent).toEqual(['cancel', 'refund']);
      answer();
      await Promise.all(others);
      expect(await operate(OPERATION)).toBe(OUTCOMES.approved);
    },
  );

  it.each(['lookUp', 'complete', 'repeatOperation', 'lookUpEnrollment'] as const)(
    'a call of %s is sent even while all slots are taken, and takes a slot',
    async (name) => {
      const { connection, slots, sent, answer } = limited(2);
      const others = [connection.cancel?.(OPERATION), connection.refund?.(OPERATION)];
      const ask = connection[name] as (argument: object) => Promise<Outcome>;
      const asked = ask(LOOK_UP);
      expect(sent).toEqual(['cancel', 'refund', name]);
      answer();
      await Promise.all([...others, asked]);
      expect(slots.hasRoom()).toBe(true);
    },
  );

  it('look-ups alone can leave no slot for a payment', async () => {
    const { connection, slots, answer } = limited(2);
    const asked = connection.lookUp?.(LOOK_UP);
    expect(slots.take()).toBeUndefined();
    answer();
    await asked;
    expect(slots.take()).toBeDefined();
  });

  it('a call that breaks its contract releases its slot', async () => {
    const { connection, slots } = limited(2);
    const broken = limitCalls({ ...connection, refund: () => Promise.reject(new Error('broken')) }, 2);
    await expect(broken.refund?.(OPERATION)).rejects.toThrow('broken');
    expect(broken.slots?.take()).toBeDefined();
    expect(slots.hasRoom()).toBe(true);
  });
});

it.each([
  [4, 64],
  [85, 64],
  [1_000, 750],
  [4_288, 3_216],
])(
  "with a limit of %i calls in flight in total, a connection's default limit is %i",
  (maxInFlight, limit) => {
    expect(defaultCallLimit(maxInFlight)).toBe(limit);
  },
);
