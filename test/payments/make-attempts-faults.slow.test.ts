import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { Payment_Status } from '#gen/payments/v1/payment_pb.js';
import { ConnectionLostError, DatabaseUnavailableError } from '#src/store/engine/database-error.ts';
import { runs } from '../support/fixed-seed.ts';
import { APPROVED, declined } from '../support/outcomes.ts';
import { cardPayment } from '../support/payment-requests.ts';
import { clock } from '../support/process-clock.ts';
import {
  arbScript,
  endStates,
  expectedOutcomes,
  expectNoSecondCharge,
  NOT_SENT,
  reportedOf,
  shownOf,
} from './attempt-outcomes.ts';
import {
  isOpen,
  LEASE_MARGIN_MS,
  onScriptedPayments,
  payments,
  type Script,
  type ScriptedPayment,
} from './scripted-payments.ts';

const CARD = cardPayment();

onScriptedPayments();

const lost = () => new ConnectionLostError(new Error('Connection terminated unexpectedly'));
const away = () => new DatabaseUnavailableError(new Error('refused'));

/** The fault at the beginning of the next attempt; `run` begins the attempt when it is called. */
type Fault = <T>(payment: ScriptedPayment, run: () => Promise<T>, tries: number) => Promise<T>;

const takeOpen = () =>
  payments.tables.query('UPDATE transaction SET fence = fence + 1 WHERE check_at IS NOT NULL');

const FAULTS: Readonly<Record<string, Fault>> = {
  nothing: (_payment, run) => run(),
  'the acknowledgement is lost': async (_payment, run, tries) => {
    const result = await run();
    if (tries === 1) throw lost();
    return result;
  },
  'the acknowledgement is lost, and recovery takes the attempt': async (_payment, run, tries) => {
    const result = await run();
    if (tries > 1) return result;
    await takeOpen();
    throw lost();
  },
  'the database is away for a moment': async (_payment, run, tries) => {
    if (tries === 1) throw away();
    return run();
  },
  'the database is away until it is too late': async () => {
    clock.aheadMs += LEASE_MARGIN_MS;
    throw away();
  },
  'every acknowledgement is lost until it is too late': async (_payment, run) => {
    await run();
    clock.aheadMs += LEASE_MARGIN_MS;
    throw lost();
  },
  'the process is held up before': (_payment, run) => {
    clock.aheadMs += LEASE_MARGIN_MS;
    return run();
  },
  'the process is held up after': async (_payment, run) => {
    const result = await run();
    clock.aheadMs += LEASE_MARGIN_MS;
    return result;
  },
  'recovery takes the last attempt': async (_payment, run) => {
    await takeOpen();
    return run();
  },
  'recovery ends the last attempt': async (payment, run) => {
    await payment.recover();
    return run();
  },
  'recovery ends the next attempt': async (payment, run) => {
    const result = await run();
    await payment.recover();
    return result;
  },
};

/** The faults after which a payment continues. */
const PASSING = ['nothing', 'the acknowledgement is lost', 'the database is away for a moment'];

/** A payment that follows a script, with a fault at the beginning of each attempt after the first. */
function faultyPayment(script: Script, faults: readonly string[]): ScriptedPayment {
  const begun = new Map<number, number>();
  const payment: ScriptedPayment = payments.payment(CARD, {
    ...script,
    around: (statement, run) => {
      if (statement !== 'write_next_attempt') return run();
      const made = payment.calls.length;
      const tries = (begun.get(made) ?? 0) + 1;
      begun.set(made, tries);
      return (FAULTS[faults[made - 1] ?? 'nothing'] as Fault)(payment, run, tries);
    },
  });
  return payment;
}

describe('faults between two attempts', () => {
  it('faults between two attempts never cause a second charge or send anything uncommitted', async () => {
    const arbFaults = fc.array(fc.constantFrom(...Object.keys(FAULTS)), { minLength: 4, maxLength: 4 });
    await fc.assert(
      fc.asyncProperty(arbScript, arbFaults, async (script, faults) => {
        await payments.tables.query('TRUNCATE payment, transaction');
        clock.aheadMs = 0;
        const payment = faultyPayment(script, faults);
        const answered = await payment.send().then(
          ({ body }) => body,
          (error) => {
            expect(error).toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
          },
        );
        const stands = await payment.settle();
        expectNoSecondCharge(payment.calls, script);
        const stopping = faults.findIndex((fault) => !PASSING.includes(fault));
        const sent = expectedOutcomes(script).slice(0, stopping < 0 ? undefined : stopping + 1);
        expect(payment.calls.map(({ outcome }) => outcome)).toEqual(sent);
        if (answered) expect(`${(await payment.send()).body}`).toBe(`${answered}`);

        // The sent attempts are shown in order; one more may follow that was begun and never sent.
        const made = await payments.rows();
        expect(shownOf(stands).map(({ id, status }) => `${id} ${status}`)).toEqual(
          made.map(({ id, status }) => `${id} ${status}`),
        );
        expect(made.slice(0, payment.calls.length).map(({ id }) => id)).toEqual(
          payment.calls.map(({ transactionId }) => transactionId),
        );
        expect(made.length - payment.calls.length).toBeLessThanOrEqual(1);
        const isSent = made.length === payment.calls.length;
        const last = payment.calls.at(-1)?.outcome ?? NOT_SENT;
        const known = isOpen(last) ? script.truth : last;
        const before = payment.calls.slice(0, -1).map(({ outcome }) => outcome);
        const ended = isSent ? [...before, known] : [...before, last, NOT_SENT];
        expect(stands.status).toBe(endStates(ended).payment);
        expect(stands.transactions?.id).toBe(reportedOf(stands)?.id);
        expect(made.filter(({ open }) => open)).toEqual([]);
      }),
      { numRuns: runs(40) },
    );
  });

  it('a payment is not tried for longer than it may still be sent, despite faults between attempts', async () => {
    let tries = 0;
    const payment = payments.payment(CARD, {
      outcomes: [NOT_SENT, APPROVED],
      around: (statement, run) => {
        if (statement !== 'write_next_attempt') return run();
        tries += 1;
        // A silent database: each try takes long.
        clock.aheadMs += LEASE_MARGIN_MS / 4;
        return Promise.reject(away());
      },
    });
    const { record } = await payment.send();
    expect(Payment_Status[record.status]).toBe('ERROR');
    expect(tries).toBeLessThanOrEqual(3);
    expect(payment.calls).toHaveLength(1);
  });

  it('an attempt is not sent if its process was delayed for half the margin of its lease', async () => {
    const leaseMarginMs = 4_000;
    const payment = payments.payment(CARD, {
      outcomes: [NOT_SENT, APPROVED],
      leaseMarginMs,
      around: async (statement, run) => {
        const result = await run();
        if (statement === 'write_next_attempt') clock.aheadMs += leaseMarginMs / 2;
        return result;
      },
    });
    const { record } = await payment.send();
    expect(Payment_Status[record.status]).toBe('ERROR');
    expect(payment.calls).toHaveLength(1);
  });

  it('a known outcome is never lost between two attempts, even if the database stays unavailable', async () => {
    let isAway = false;
    const payment = payments.payment(CARD, {
      outcomes: [declined('51'), APPROVED],
      softDeclines: true,
      around: (statement, run) => {
        if (statement === 'write_next_attempt') {
          isAway = true;
          clock.aheadMs += LEASE_MARGIN_MS;
        }
        return isAway ? Promise.reject(away()) : run();
      },
    });
    await expect(payment.send()).rejects.toMatchObject({ reason: 'REQUEST_IN_PROGRESS' });
    expect(await payments.rows()).toMatchObject([{ connection_id: 't1', status: 'PENDING', open: true }]);
    isAway = false;
    await expect.poll(payments.rows).toMatchObject([{ status: 'DECLINED', open: false }]);
    expect(Payment_Status[(await payment.settle()).status]).toBe('DECLINED');
    expect(payment.calls).toHaveLength(1);
  });

  it('a failed attempt that is followed by another is not recorded as waiting for its payer', async () => {
    await payments.payment(CARD, { outcomes: [NOT_SENT, APPROVED] }).send();
    const rows = await payments.tables.query('SELECT awaits_payer FROM transaction');
    expect(rows).toEqual([{ awaits_payer: false }, { awaits_payer: false }]);
  });

  it('a frozen process does not continue once recovery has ended its first attempt', async () => {
    const payment = faultyPayment({ outcomes: [NOT_SENT, APPROVED] }, ['recovery ends the last attempt']);
    const { record, body } = await payment.send();
    expect(Payment_Status[record.status]).toBe('ERROR');
    expect(payment.calls).toHaveLength(1);
    expect(await payment.send()).toMatchObject({ body, replayed: true });
  });
});
