import { describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { writeReport } from '#src/payments/write-change.ts';
import { ConnectionLostError, DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { APPROVED, UNKNOWN } from '../support/outcomes.ts';
import { ACCOUNT_ONE, cardPayment } from '../support/payment-requests.ts';
import { clock } from '../support/process-clock.ts';
import { LEASE_MARGIN_MS, onScriptedPayments, payments, type Script } from './scripted-payments.ts';

const CARD = cardPayment();

onScriptedPayments();

const lost = () => new ConnectionLostError(new Error('Connection terminated unexpectedly'));
const away = () => new DatabaseUnavailableError(new Error('refused'));

/** The slots of the only target, and the number of them that are held. */
function countedSlots() {
  const counted = { held: 0 };
  const take = () => {
    counted.held += 1;
    return () => {
      counted.held -= 1;
    };
  };
  return { counted, slots: new Map([['t1', { hasRoom: () => true, take }]]) };
}

/** Writes PENDING for every payment, as a replica does that has claimed the attempt and learned nothing. */
async function answerPending(): Promise<void> {
  const rows = await payments.tables.query(
    `UPDATE transaction t SET fence = fence + 1 FROM payment p WHERE p.account_id = t.account_id AND p.id = t.payment_id
     RETURNING p.id AS payment_id, t.id AS transaction_id, t.fence`,
  );
  for (const { payment_id, transaction_id, fence } of rows) {
    const transactionId = `${transaction_id}`;
    const leased = {
      accountId: ACCOUNT_ONE,
      paymentId: `${payment_id}`,
      transactionId,
      fence: Number(fence),
    };
    const report = { kind: 'outcome', transactionId, outcome: UNKNOWN, pauseS: 5 } as const;
    expect(await writeReport(payments.deps, leased, report)).toMatchObject({
      ...{ record: { status: Payment_Status.PENDING }, earlier: undefined },
    });
  }
}

/** Returns a wrapper of statements that lets another replica respond just before this one first writes an outcome. */
function stalling(): NonNullable<Script['around']> {
  let stoodStill = false;
  return async (statement, run) => {
    if (statement === 'write_outcome' && !stoodStill) {
      stoodStill = true;
      await answerPending();
    }
    return run();
  };
}

describe('a process that stalls between the approval and its commit', () => {
  it("a process that stalls before it commits an approval returns another replica's response, then commits", async () => {
    const finished: string[] = [];
    const payment = payments.payment(CARD, { outcomes: [APPROVED], finished, around: stalling() });
    const { record, body, replayed } = await payment.send();
    expect(Payment_Status[record.status]).toBe('PENDING');
    expect(payments.encode(record)).toEqual(Buffer.from(body));
    expect(replayed).toBe(false);
    expect(await payment.send()).toMatchObject({ body, replayed: true });
    expect(Payment_Status[(await payment.settle()).status]).toBe('SUCCEEDED');
    expect(finished).toEqual(['SUCCEEDED, learned later']);
  });

  it("a process that stalls before it commits an approval needs no further read to return another replica's response", async () => {
    const stall = stalling();
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      around: async (statement, run) => {
        if (statement === 'find_by_key') throw away();
        return stall(statement, run);
      },
    });
    const { record, replayed } = await payment.send();
    expect([Payment_Status[record.status], replayed]).toEqual(['PENDING', false]);
  });
});

describe('the commit of an outcome', () => {
  it('an outcome is reported once even if the acknowledgment of its commit is lost', async () => {
    const finished: string[] = [];
    let tries = 0;
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      finished,
      around: async (statement, run) => {
        const result = await run();
        if (statement === 'write_outcome' && ++tries < 3) throw lost();
        return result;
      },
    });
    const { record } = await payment.send();
    expect(Payment_Status[record.status]).toBe('SUCCEEDED');
    expect(finished).toEqual(['SUCCEEDED']);
  });

  it('an outcome is also reported if it is committed after the caller was told to wait', async () => {
    const finished: string[] = [];
    const held = Promise.withResolvers<void>();
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      finished,
      leaseMarginMs: 1_000,
      around: async (statement, run) => {
        if (statement === 'write_outcome') await held.promise;
        return run();
      },
    });
    const startedMs = performance.now();
    await expect(payment.send()).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    // Within the remaining half of the lease's margin after the attempt was sent.
    expect(performance.now() - startedMs).toBeLessThan(3_000);
    expect(finished).toEqual([]);
    held.resolve();
    await expect.poll(() => finished).toEqual(['SUCCEEDED']);
    expect(Payment_Status[(await payment.settle()).status]).toBe('SUCCEEDED');
  });
});

describe('a claim', () => {
  it('a claim is not retried for longer than its payment may still be sent', async () => {
    let tries = 0;
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      around: async (statement, run) => {
        if (statement !== 'claim') return run();
        tries += 1;
        clock.aheadMs += LEASE_MARGIN_MS / 4;
        throw lost();
      },
    });
    await expect(payment.send()).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(tries).toBe(2);
    expect(payment.calls).toEqual([]);
  });

  it('a payment is not sent if the acknowledgment of its claim comes too late', async () => {
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      around: async (statement, run) => {
        const result = await run();
        if (statement === 'claim') clock.aheadMs += LEASE_MARGIN_MS * 0.6;
        return result;
      },
    });
    const { record } = await payment.send();
    expect(Payment_Status[record.status]).toBe('ERROR');
    expect(payment.calls).toEqual([]);
  });

  it('a claim whose acknowledgment is lost is recognized as its own, and its payment is sent once', async () => {
    let tries = 0;
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      around: async (statement, run) => {
        const result = await run();
        if (statement === 'claim' && ++tries === 1) throw lost();
        return result;
      },
    });
    const { record, replayed } = await payment.send();
    expect([Payment_Status[record.status], replayed, tries]).toEqual(['SUCCEEDED', false, 2]);
    expect(payment.calls).toHaveLength(1);
  });

  it('a claim whose acknowledgment is lost stays in progress, even if its repeat surely fails', async () => {
    let tries = 0;
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      around: async (statement, run) => {
        if (statement !== 'claim') return run();
        if (++tries === 1) {
          await run();
          throw lost();
        }
        clock.aheadMs += LEASE_MARGIN_MS;
        throw away();
      },
    });
    await expect(payment.send()).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(tries).toBe(2);
    expect(await payments.rows()).toMatchObject([{ status: 'PENDING', open: true }]);
    expect(payment.calls).toEqual([]);
  });

  it('a payment whose key is held is in progress, and never refused, while its holder cannot be read', async () => {
    let isAway = false;
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      around: async (statement, run) => {
        if (!isAway || statement !== 'find_by_key') return run();
        clock.aheadMs += LEASE_MARGIN_MS;
        throw away();
      },
    });
    await payment.send();
    isAway = true;
    await expect(payment.send()).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(payment.calls).toHaveLength(1);
  });
});

describe("a payment's slot", () => {
  it("a payment's slot is released after its attempts, and after a repeat of its request", async () => {
    const { counted, slots } = countedSlots();
    const held: number[] = [];
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      slots,
      aroundCall: (_connectionId, call) => {
        held.push(counted.held);
        return call();
      },
    });
    await payment.send();
    expect([held, counted.held]).toEqual([[1], 0]);
    expect(await payment.send()).toMatchObject({ replayed: true });
    expect(counted.held).toBe(0);
  });

  it("a payment's slot is released if its call throws", async () => {
    const { counted, slots } = countedSlots();
    const aroundCall = () => Promise.reject(new Error('a fault of ours'));
    const payment = payments.payment(CARD, { outcomes: [APPROVED], slots, aroundCall });
    await expect(payment.send()).rejects.toThrow('a fault of ours');
    expect(counted.held).toBe(0);
  });

  it("a payment's slot is released if its claim fails", async () => {
    const { counted, slots } = countedSlots();
    const held: number[] = [];
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      slots,
      around: (statement, run) => {
        if (statement !== 'claim') return run();
        held.push(counted.held);
        return Promise.reject(away());
      },
    });
    await expect(payment.send()).rejects.toThrow(DatabaseUnavailableError);
    expect([held, counted.held]).toEqual([[1], 0]);
  });
});
