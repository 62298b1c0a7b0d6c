import { describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { writeReport } from '#src/payments/write-change.ts';
import { ACCOUNT_ONE, cardPayment } from '../support/payment-requests.ts';
import { APPROVED, UNKNOWN } from './attempt-outcomes.ts';
import { clock, LEASE_MARGIN_MS, onScriptedPayments, payments } from './scripted-payments.ts';

const CARD = cardPayment();

onScriptedPayments();

const lost = () => new Error('Connection terminated unexpectedly');

/** Writes PENDING for every payment, as a replica does that has claimed the attempt and learned nothing. */
async function answerPending(): Promise<void> {
  const rows = await payments.tables.query(
    `UPDATE transaction t SET fence = fence + 1 FROM payment p WHERE p.id = t.payment_id
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
    expect(await writeReport(payments.writeDeps, leased, report)).toMatchObject({
      ...{ record: { status: Payment_Status.PENDING }, earlier: undefined },
    });
  }
}

describe('a process that stalls between the approval and its commit', () => {
  it("a process that stalls before it commits an approval returns another replica's response, then commits", async () => {
    const finished: string[] = [];
    let stoodStill = false;
    const payment = payments.payment(CARD, {
      outcomes: [APPROVED],
      finished,
      around: async (statement, run) => {
        if (statement === 'write_outcome' && !stoodStill) {
          stoodStill = true;
          await answerPending();
        }
        return run();
      },
    });
    const { record, body, replayed } = await payment.send();
    expect(Payment_Status[record.status]).toBe('PENDING');
    expect(payments.encode(record)).toEqual(Buffer.from(body));
    expect(replayed).toBe(false);
    expect(await payment.send()).toMatchObject({ body, replayed: true });
    expect(Payment_Status[(await payment.settle()).status]).toBe('SUCCEEDED');
    expect(finished).toEqual(['SUCCEEDED, learned later']);
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
});
