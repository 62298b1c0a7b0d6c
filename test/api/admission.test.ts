import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { createAdmission, type RefusedBy, type Ticket } from '#src/api/admission.ts';
import { ServiceError } from '#src/service-error.ts';

function admissionOf(maxInFlight: number, maxAtWork: number) {
  const refusals: RefusedBy[] = [];
  const admission = createAdmission({ maxInFlight, maxAtWork }, (limit) => refusals.push(limit));
  return { admission, refusals };
}

const admitted = (ticket: Ticket | undefined): Ticket => {
  if (!ticket) throw new Error('refused');
  return ticket;
};

/** Work that ends when it is told to. */
function startWork(ticket: Ticket) {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const result = ticket
    .work(() => promise)
    .then(
      () => 'done',
      (error: unknown) => error,
    );
  return { result, end: resolve, fail: reject };
}

describe('createAdmission', () => {
  it('takes on as many as are allowed at work, and refuses the next', async () => {
    const { admission, refusals } = admissionOf(10, 2);
    const first = admitted(admission.admit());
    admitted(admission.admit());
    expect(admission.admit()).toBeUndefined();
    expect(refusals).toEqual(['at_work']);
    first.close();
    expect(admission.admit()).toBeDefined();
  });

  it('counts who waits for a body or a provider as in flight only', async () => {
    const { admission, refusals } = admissionOf(3, 1);
    admitted(admission.admit()).receive();
    expect(admission.counts()).toEqual({ inFlight: 1, atWork: 0 });
    const answer = Promise.withResolvers<void>();
    const paying = admitted(admission.admit()).work(() => admission.aside(() => answer.promise));
    expect(admission.counts()).toEqual({ inFlight: 2, atWork: 0 });
    admitted(admission.admit()).receive();
    expect(admission.admit()).toBeUndefined();
    expect(refusals).toEqual(['in_flight']);
    answer.resolve();
    await paying;
    expect(admission.counts()).toEqual({ inFlight: 2, atWork: 0 });
  });

  it('keeps the ticket of work whose caller has left, until the work ends', async () => {
    const { admission } = admissionOf(1, 1);
    const ticket = admitted(admission.admit());
    ticket.receive();
    const work = startWork(ticket);
    ticket.close();
    expect(admission.admit()).toBeUndefined();
    work.end();
    await work.result;
    expect(admission.counts()).toEqual({ inFlight: 0, atWork: 0 });
  });

  it('refuses to begin work when too much is at work by then, and does not run it', async () => {
    const { admission, refusals } = admissionOf(10, 1);
    const late = admitted(admission.admit());
    late.receive();
    startWork(admitted(admission.admit()));
    let ran = false;
    const refused = late.work(async () => {
      ran = true;
    });
    await expect(refused).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE' });
    await expect(refused).rejects.toBeInstanceOf(ServiceError);
    expect({ ran, refusals, counts: admission.counts() }).toEqual({
      ran: false,
      refusals: ['at_work'],
      counts: { inFlight: 1, atWork: 1 },
    });
  });

  it('asks the refused to come back after one to three seconds, not all at once', async () => {
    const { admission } = admissionOf(1_000, 1);
    const waiting = Array.from({ length: 200 }, () => {
      const ticket = admitted(admission.admit());
      ticket.receive();
      return ticket;
    });
    startWork(admitted(admission.admit()));
    const pauses = await Promise.all(
      waiting.map((ticket) => ticket.work(async () => {}).catch((error: ServiceError) => error.retryAfterS)),
    );
    expect(new Set(pauses)).toEqual(new Set([1, 2, 3]));
  });

  it('gives every ticket back, whatever becomes of the calls and in whichever order', async () => {
    const acts = ['admit', 'receive', 'work', 'answered', 'end', 'fail', 'close'] as const;
    const step = fc.record({ who: fc.nat({ max: 5 }), act: fc.constantFrom(...acts) });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const { admission } = admissionOf(4, 2);
        const calls: ReturnType<typeof callOf>[] = [];
        for (const { who, act } of steps) {
          const ticket = act === 'admit' ? admission.admit() : undefined;
          if (ticket) calls.push(callOf(admission, ticket));
          else calls.at(-1 - who)?.[act === 'admit' ? 'receive' : act]();
          await new Promise((resolve) => setImmediate(resolve));
          const { inFlight, atWork } = admission.counts();
          expect(atWork).toBeGreaterThanOrEqual(0);
          expect(inFlight).toBeGreaterThanOrEqual(atWork);
        }
        for (const call of calls) await call.finish();
        expect(admission.counts()).toEqual({ inFlight: 0, atWork: 0 });
      }),
      { numRuns: 300 },
    );
  });
});

/** A call that does what it is told, in whichever order. Its work first waits for a provider. */
function callOf(admission: ReturnType<typeof createAdmission>, ticket: Ticket) {
  const provider = Promise.withResolvers<void>();
  const rest = Promise.withResolvers<void>();
  rest.promise.catch(() => {});
  let work: Promise<unknown> | undefined;
  return {
    receive: () => ticket.receive(),
    work() {
      work ??= ticket
        .work(async () => {
          await admission.aside(() => provider.promise);
          await rest.promise;
        })
        .catch(() => {});
    },
    answered: () => provider.resolve(),
    end: () => rest.resolve(),
    fail: () => rest.reject(new Error('failed')),
    close: () => ticket.close(),
    async finish() {
      provider.resolve();
      rest.resolve();
      await work;
      ticket.close();
    },
  };
}
