import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { CIRCUIT_OPEN, guarded, later, OUT_OF_REACH, OUTCOMES, settled } from './guarded-connection.ts';

const { approved, declined, unknown, turnedAway } = OUTCOMES;

describe('circuits of providers that cannot be probed', () => {
  it('a circuit without a probe uses one payment as its trial, and no other payment waits for it', async () => {
    const { open, begin, health } = guarded();
    await open();
    later(1_000);
    expect(health.isAvailable()).toBe(true);
    const trial = begin();
    expect(trial.sent).toBeDefined();
    expect(health.state()).toBe('HALF_OPEN');
    expect(health.isAvailable()).toBe(false);
    const others = [begin(), begin()];
    expect(others.map(({ sent }) => sent)).toEqual([undefined, undefined]);
    expect(await Promise.all(others.map(({ outcome }) => outcome))).toEqual([CIRCUIT_OPEN, CIRCUIT_OPEN]);

    await trial.sent?.end(declined);
    expect(await trial.outcome).toBe(declined);
    expect(health.state()).toBe('CLOSED');
  });

  it('a circuit without a probe restarts its count once it is closed', async () => {
    const { open, make, health } = guarded({ minCalls: 2 });
    await open();
    later(1_000);
    await make(approved, unknown);
    expect(health.state()).toBe('CLOSED');
    await make(unknown);
    expect(health.state()).toBe('OPEN');
  });

  it('a circuit without a probe doubles its pause after a failed trial, up to 5 minutes', async () => {
    const { open, make, health } = guarded({ openMs: 100_000 });
    await open();
    for (const pauseMs of [100_000, 200_000, 300_000, 300_000]) {
      later(pauseMs - 1);
      expect(health.isAvailable()).toBe(false);
      later(1);
      expect(health.isAvailable()).toBe(true);
      await make(unknown);
      expect(health.state()).toBe('OPEN');
    }
    later(300_000);
    await make(approved);
    await open();
    later(99_999);
    expect(health.isAvailable()).toBe(false);
    later(1);
    expect(health.isAvailable()).toBe(true);
  });

  it('a circuit without a probe keeps the configured pause if that exceeds 5 minutes', async () => {
    const { open, make, health } = guarded({ openMs: 600_000 });
    await open();
    later(600_000);
    await make(unknown);
    later(599_999);
    expect(health.isAvailable()).toBe(false);
    later(1);
    expect(health.isAvailable()).toBe(true);
  });

  it('a circuit without a probe uses the next payment as its trial if the first was turned away', async () => {
    const { open, make, health } = guarded();
    await open();
    later(1_000);
    await make(turnedAway);
    expect(health.state()).toBe('OPEN');
    expect(health.isAvailable()).toBe(true);
    await make(approved);
    expect(health.state()).toBe('CLOSED');
  });

  it('a circuit without a probe uses the next payment as its trial if the connector threw', async () => {
    const { open, begin, make, health } = guarded();
    await open();
    later(1_000);
    const trial = begin();
    const thrown = expect(trial.outcome).rejects.toThrow('broke its contract');
    await trial.sent?.fail();
    await thrown;
    expect(health.isAvailable()).toBe(true);
    await make(approved);
    expect(health.state()).toBe('CLOSED');
  });
});

describe('circuits of providers that can be probed', () => {
  it('a circuit with a probe probes once before any payment is sent', async () => {
    const { open, begin, probes, health } = guarded({ probed: true });
    await open();
    later(999);
    expect(health.isAvailable()).toBe(false);
    expect(probes).toHaveLength(0);
    later(1);
    expect(health.isAvailable()).toBe(false);
    expect(probes).toHaveLength(0);
    health.probeIfDue();
    health.probeIfDue();
    expect(health.isAvailable()).toBe(false);
    const early = begin();
    expect(await early.outcome).toEqual(CIRCUIT_OPEN);
    expect(early.sent).toBeUndefined();
    expect(probes).toHaveLength(1);
    expect(health.state()).toBe('HALF_OPEN');

    await probes[0]?.end(true);
    expect(health.isAvailable()).toBe(true);
    expect(health.state()).toBe('HALF_OPEN');
    const [trial, other] = [begin(), begin()];
    expect(await other.outcome).toEqual(CIRCUIT_OPEN);
    await trial.sent?.end(approved);
    expect(await trial.outcome).toBe(approved);
    expect(health.state()).toBe('CLOSED');
    expect(probes).toHaveLength(1);
  });

  it('a circuit with a probe probes if a payment is the first call', async () => {
    const { open, begin, probes } = guarded({ probed: true });
    await open();
    later(1_000);
    expect(await begin().outcome).toEqual(CIRCUIT_OPEN);
    expect(probes).toHaveLength(1);
  });

  it.each(['fails', 'throws'])(
    'a circuit with a probe doubles its pause after a probe that %s',
    async (how) => {
      const { open, probes, health, payments } = guarded({ probed: true });
      await open();
      let pauseMs = 1_000;
      for (let i = 0; i < 3; i++) {
        later(pauseMs - 1);
        health.probeIfDue();
        expect(probes).toHaveLength(i);
        later(1);
        health.probeIfDue();
        expect(probes).toHaveLength(i + 1);
        await (how === 'throws' ? probes[i]?.fail() : probes[i]?.end(false));
        expect(health.isAvailable()).toBe(false);
        expect(health.state()).toBe('OPEN');
        pauseMs *= 2;
      }
      expect(payments).toHaveLength(2);
    },
  );

  it('a circuit with a probe probes again after a failed trial', async () => {
    const { open, make, probes, health } = guarded({ probed: true });
    await open();
    later(1_000);
    health.probeIfDue();
    await probes[0]?.end(true);
    await make(unknown);
    expect(health.state()).toBe('OPEN');
    later(1_999);
    health.probeIfDue();
    expect(probes).toHaveLength(1);
    later(1);
    health.probeIfDue();
    expect(health.isAvailable()).toBe(false);
    expect(probes).toHaveLength(2);
  });

  it('a circuit reports the problem of a failed probe once, and again after it has been closed', async () => {
    const { open, make, probes, problems, health } = guarded({ probed: true });
    await open();
    for (const [i, pauseMs] of [1_000, 2_000, 4_000].entries()) {
      later(pauseMs);
      health.probeIfDue();
      await probes[i]?.end(false);
    }
    expect(problems).toEqual([OUT_OF_REACH]);
    later(8_000);
    health.probeIfDue();
    await probes[3]?.fail();
    expect(problems).toEqual([OUT_OF_REACH, 'Error: broke its contract']);

    later(16_000);
    health.probeIfDue();
    await probes[4]?.end(true);
    await make(approved);
    expect(health.state()).toBe('CLOSED');
    await open();
    later(1_000);
    health.probeIfDue();
    await probes[5]?.end(false);
    expect(problems).toEqual([OUT_OF_REACH, 'Error: broke its contract', OUT_OF_REACH]);
  });

  it('a circuit with a probe waits for a probe in progress before it closes', async () => {
    const { connection, open, health, probes } = guarded({ probed: true });
    await open();
    later(1_000);
    health.probeIfDue();
    let isClosed = false;
    const closing = connection.close().then(() => {
      isClosed = true;
    });
    await settled();
    expect(isClosed).toBe(false);
    await probes[0]?.end(false);
    await closing;
  });
});

type Step =
  | { readonly step: 'pay' }
  | { readonly step: 'ask' }
  | { readonly step: 'end'; readonly which: number; readonly outcome: keyof typeof OUTCOMES }
  | { readonly step: 'answer probe'; readonly isThere: boolean }
  | { readonly step: 'wait'; readonly ms: number };

const steps: fc.Arbitrary<Step> = fc.oneof(
  { weight: 4, arbitrary: fc.constant<Step>({ step: 'pay' }) },
  { weight: 1, arbitrary: fc.constant<Step>({ step: 'ask' }) },
  {
    weight: 4,
    arbitrary: fc.record({
      step: fc.constant<'end'>('end'),
      which: fc.nat(),
      outcome: fc.constantFrom(...(Object.keys(OUTCOMES) as (keyof typeof OUTCOMES)[])),
    }),
  },
  {
    weight: 2,
    arbitrary: fc.record({ step: fc.constant<'answer probe'>('answer probe'), isThere: fc.boolean() }),
  },
  { weight: 2, arbitrary: fc.record({ step: fc.constant<'wait'>('wait'), ms: fc.nat(3_000) }) },
);

it('a circuit sends nothing while it is unavailable, and one trial at a time, whatever the order of events', async () => {
  const met = { refused: 0, tried: 0, closed: 0 };
  await fc.assert(
    fc.asyncProperty(
      fc.boolean(),
      fc.array(steps, { minLength: 20, maxLength: 80 }),
      async (probed, taken) => {
        const { connection, health, begin, probes, payments, states } = guarded({ probed });
        const underWay: { payment: ReturnType<typeof begin>; isTrial: boolean }[] = [];
        let answeredProbes = 0;
        let isThere = false;

        function pay(): void {
          const isAvailable = health.isAvailable();
          const isTrial = health.state() !== 'CLOSED';
          const payment = begin();
          expect(payment.sent !== undefined).toBe(isAvailable);
          if (!isAvailable) {
            met.refused += 1;
            return;
          }
          if (isTrial) {
            met.tried += 1;
            expect(underWay.filter((each) => each.isTrial)).toEqual([]);
            if (probed) expect(isThere).toBe(true);
          }
          underWay.push({ payment, isTrial });
        }

        async function answerProbe(answer: boolean): Promise<void> {
          const probe = probes[answeredProbes];
          if (!probe) return;
          answeredProbes += 1;
          isThere = answer;
          await probe.end(answer);
        }

        for (const each of taken) {
          if (each.step === 'pay') pay();
          else if (each.step === 'ask') health.probeIfDue();
          else if (each.step === 'wait') later(each.ms);
          else if (each.step === 'answer probe') await answerProbe(each.isThere);
          else {
            const [ended] = underWay.splice(each.which % Math.max(underWay.length, 1), 1);
            await ended?.payment.sent?.end(OUTCOMES[each.outcome]);
            if (ended) expect(await ended.payment.outcome).toBe(OUTCOMES[each.outcome]);
          }
          expect(probes.length - answeredProbes).toBeLessThanOrEqual(1);
          if (health.state() === 'OPEN') isThere = false;
        }
        met.closed += states.filter((state) => state === 'CLOSED').length;
        await Promise.all(payments.map(({ end }) => end(approved)));
        await Promise.all(probes.map(({ end }) => end(false)));
        await connection.close();
      },
    ),
    { seed: 1, numRuns: 300 },
  );
  // Otherwise the property would hold vacuously.
  expect(Math.min(met.refused, met.tried, met.closed)).toBeGreaterThan(10);
});
