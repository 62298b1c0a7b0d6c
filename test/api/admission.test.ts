import fc from 'fast-check';
import { describe, expect, it } from 'vitest';
import { type AdmissionLimits, createAdmission, type RefusedBy, type Ticket } from '#src/api/admission.ts';
import type { Credentials } from '#src/api/authenticate.ts';
import { addressGroup } from '#src/api/shares.ts';
import { ServiceError } from '#src/service-error.ts';

const MERCHANT: Credentials = { accountId: 'merchant', secretPresented: true };
const OTHER: Credentials = { accountId: 'other', secretPresented: true };
const PAYER: Credentials = { accountId: 'merchant', secretPresented: false };
const OTHER_PAYER: Credentials = { accountId: 'other', secretPresented: false };

function admissionOf(maxInFlight: number, maxAtWork: number, shares: Partial<AdmissionLimits> = {}) {
  const refusals: RefusedBy[] = [];
  const limits = { maxInFlight, maxAtWork, accountSharePercent: 100, addressSharePercent: 100, ...shares };
  const admission = createAdmission(limits);
  const admit = (address = '') =>
    admission.admit({ address: () => address, refused: (limit) => refusals.push(limit) });
  const counts = () => admission.counts();

  /** Makes a call whose keys are known and whose body has not arrived. */
  function receiving(credentials = MERCHANT, address = '192.0.2.1'): Ticket {
    const ticket = admit(address);
    if (!ticket) throw new Error('refused on arrival');
    ticket.receive(credentials);
    return ticket;
  }

  /** Returns how many calls can begin before one is refused. */
  function room(begin: () => unknown): number {
    let begun = 0;
    try {
      for (; begun < 1_000; begun++) begin();
    } catch (error) {
      expect(error).toMatchObject({ reason: 'SERVICE_UNAVAILABLE' });
    }
    return begun;
  }

  return { admission, admit, refusals, counts, receiving, room };
}

/** Starts work that ends when the test says so. */
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

describe('admission of calls', () => {
  it('admission refuses arriving calls while the maximum number of calls is being processed', async () => {
    const { admit, refusals, receiving } = admissionOf(10, 1);
    const work = startWork(receiving());
    expect(admit()).toBeUndefined();
    expect(refusals).toEqual(['at_work']);
    work.end();
    await work.result;
    expect(admit()).toBeDefined();
  });

  it('a call whose body has not arrived counts only as receiving', () => {
    const { counts, receiving } = admissionOf(3, 1);
    receiving();
    receiving();
    expect(counts()).toEqual({ receiving: 2, inFlight: 0, atWork: 0 });
  });

  it('a body is refused at the limit of calls in flight, and accepted again once another call closes', () => {
    const { refusals, receiving } = admissionOf(2, 2);
    const first = receiving();
    receiving();
    expect(receiving).toThrow(ServiceError);
    expect(refusals).toEqual(['receiving']);
    first.close();
    receiving();
  });

  it('a call that waits for its provider counts as in flight but not as being processed', async () => {
    const { admission, admit, refusals, counts, receiving } = admissionOf(1, 1);
    const provider = Promise.withResolvers<void>();
    const ticket = receiving();
    const paying = ticket.work(() => admission.pauseWork(() => provider.promise));
    expect(counts()).toEqual({ receiving: 0, inFlight: 1, atWork: 0 });
    expect(admit()).toBeUndefined();
    expect(refusals).toEqual(['in_flight']);
    provider.resolve();
    await paying;
    ticket.close();
    expect(counts()).toEqual({ receiving: 0, inFlight: 0, atWork: 0 });
  });

  it('a call whose work has ended counts as in flight until its response is complete', async () => {
    const { counts, receiving } = admissionOf(1, 1);
    const ticket = receiving();
    const work = startWork(ticket);
    work.end();
    await work.result;
    expect(counts()).toEqual({ receiving: 0, inFlight: 1, atWork: 0 });
    ticket.close();
    expect(counts()).toEqual({ receiving: 0, inFlight: 0, atWork: 0 });
  });

  it('a call whose caller disconnected counts as in flight until its work ends', async () => {
    const { counts, receiving } = admissionOf(1, 1);
    const ticket = receiving();
    const work = startWork(ticket);
    ticket.close();
    expect(counts()).toEqual({ receiving: 0, inFlight: 1, atWork: 1 });
    work.end();
    await work.result;
    expect(counts()).toEqual({ receiving: 0, inFlight: 0, atWork: 0 });
  });

  it('waiting outside the work of a call, such as during recovery, does not change the counts', async () => {
    const { admission, counts, receiving } = admissionOf(10, 10);
    const provider = Promise.withResolvers<void>();
    const waiting = admission.pauseWork(() => provider.promise);
    startWork(receiving());
    expect(counts().atWork).toBe(1);
    provider.resolve();
    await waiting;
    expect(counts().atWork).toBe(1);
  });

  it('work is refused, and does not run, while the maximum number of calls is being processed', async () => {
    const { refusals, counts, receiving } = admissionOf(10, 1);
    const late = receiving();
    startWork(receiving());
    let ran = false;
    const refused = late.work(async () => {
      ran = true;
    });
    await expect(refused).rejects.toMatchObject({ reason: 'SERVICE_UNAVAILABLE' });
    expect({ ran, refusals, counts: counts() }).toEqual({
      ran: false,
      refusals: ['at_work'],
      counts: { receiving: 0, inFlight: 1, atWork: 1 },
    });
  });

  it('refused calls are asked to retry after one, two or three seconds, not all at once', async () => {
    const { receiving } = admissionOf(1_000, 1);
    const waiting = Array.from({ length: 200 }, () => receiving());
    startWork(receiving());
    const pauses = await Promise.all(
      waiting.map((ticket) => ticket.work(async () => {}).catch((error: ServiceError) => error.retryAfterS)),
    );
    expect(new Set(pauses)).toEqual(new Set([1, 2, 3]));
  });

  it('all capacity is released, whatever the order of calls, failures and disconnects', async () => {
    const acts = ['admit', 'work', 'answered', 'end', 'fail', 'close'] as const;
    const callers = fc.constantFrom(MERCHANT, OTHER, PAYER, OTHER_PAYER);
    const step = fc.record({ who: fc.nat({ max: 5 }), act: fc.constantFrom(...acts), caller: callers });
    await fc.assert(
      fc.asyncProperty(fc.array(step, { maxLength: 80 }), async (steps) => {
        const { admission, admit, counts, receiving } = admissionOf(8, 4, { accountSharePercent: 50 });
        const calls: ReturnType<typeof callOf>[] = [];
        for (const { who, act, caller } of steps) {
          if (act !== 'admit') calls.at(-1 - who)?.[act]();
          else if (admit()) {
            try {
              calls.push(callOf(admission, receiving(caller)));
            } catch {}
          }
          await new Promise((resolve) => setImmediate(resolve));
          const { inFlight, atWork } = counts();
          expect(atWork).toBeGreaterThanOrEqual(0);
          expect(inFlight).toBeGreaterThanOrEqual(atWork);
          expect(inFlight).toBeLessThanOrEqual(8);
        }
        for (const call of calls) await call.finish();
        expect(counts()).toEqual({ receiving: 0, inFlight: 0, atWork: 0 });
        for (const caller of [MERCHANT, OTHER, PAYER, OTHER_PAYER]) receiving(caller).close();
      }),
      { numRuns: 300, seed: 12 },
    );
  });
});

describe('shares of accounts and addresses', () => {
  const DEFAULTS = { accountSharePercent: 75, addressSharePercent: 50 };

  it('an account that floods the service with calls that use its secret leaves room for another account', () => {
    const { receiving, room } = admissionOf(100, 100, DEFAULTS);
    expect(room(() => receiving(MERCHANT))).toBe(75);
    expect(room(() => receiving(OTHER))).toBe(25);
  });

  it('a call of an account that has used up its share of work is refused before its body arrives', async () => {
    const { refusals, counts, receiving } = admissionOf(100, 8, { accountSharePercent: 50 });
    const works = Array.from({ length: 4 }, () => startWork(receiving(MERCHANT)));
    expect(() => receiving(MERCHANT)).toThrow(ServiceError);
    expect(refusals).toEqual(['at_work']);
    expect(counts()).toEqual({ receiving: 0, inFlight: 4, atWork: 4 });
    receiving(OTHER);
    works[0]?.end();
    await works[0]?.result;
    receiving(MERCHANT);
  });

  it('calls with public keys, however many, leave half of the capacity to callers with a secret', () => {
    const { receiving, room } = admissionOf(100, 100, DEFAULTS);
    let payer = 0;
    const anyPayer = () => ({ accountId: `account ${payer++}`, secretPresented: false });
    expect(room(() => receiving(anyPayer(), `192.0.2.${payer % 250}`))).toBe(50);
    expect(room(() => receiving(MERCHANT))).toBe(50);
  });

  it('one client with a public key leaves room for other clients with its account or its address', () => {
    const { receiving, room } = admissionOf(100, 100, DEFAULTS);
    expect(room(() => receiving(PAYER, '192.0.2.1'))).toBe(18);
    expect(room(() => receiving(OTHER_PAYER, '192.0.2.1'))).toBe(25 - 18);
    expect(room(() => receiving(PAYER, '192.0.2.2'))).toBe(18);
    expect(room(() => receiving(PAYER, '192.0.2.3'))).toBe(37 - 2 * 18);
    expect(room(() => receiving(OTHER_PAYER, '192.0.2.3'))).toBe(50 - 37 - 7);
  });

  it('shares also limit calls in flight and calls being processed', async () => {
    const { receiving, counts } = admissionOf(100, 8, DEFAULTS);
    const tickets = Array.from({ length: 7 }, (_, i) => receiving(PAYER, `192.0.2.${i}`));
    const merchants = Array.from({ length: 8 }, () => receiving(MERCHANT));
    for (const ticket of tickets) void startWork(ticket);
    // 8 × 50 % × 75 %
    expect(counts().atWork).toBe(3);
    for (const ticket of merchants) void startWork(ticket);
    // The remaining five are within the account's 75 %.
    expect(counts().atWork).toBe(8);
  });

  it('look-ups of unknown keys are limited, and leave room for keys that were valid before', async () => {
    const { admit } = admissionOf(100, 16, DEFAULTS);
    const never = () => new Promise<void>(() => {});
    const refusedOf = async (count: number, recalled: Credentials | undefined, address: string) => {
      let refused = 0;
      for (let i = 0; i < count; i++) {
        admit(address)
          ?.lookUp(recalled, never)
          .catch(() => refused++);
      }
      await new Promise((resolve) => setImmediate(resolve));
      return refused;
    };
    expect(await refusedOf(20, undefined, '192.0.2.1')).toBe(20 - 4);
    expect(await refusedOf(20, undefined, '192.0.2.2')).toBe(20 - 4);
    expect(await refusedOf(20, undefined, '192.0.2.3')).toBe(20);
    expect(await refusedOf(8, MERCHANT, '192.0.2.1')).toBe(0);
  });

  it('the smallest share still allows one call', () => {
    const { receiving } = admissionOf(1, 1, { accountSharePercent: 1, addressSharePercent: 1 });
    receiving(PAYER).close();
    receiving(MERCHANT).close();
  });

  it.each([
    ['192.0.2.1', '192.0.2.1'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::6', '2001:db8:1:2::/64'],
    ['2001:db8::6', '2001:db8:0:0::/64'],
    ['::1', '0:0:0:0::/64'],
    ['', ''],
  ])('the address %s belongs to the group %s', (address, group) => {
    expect(addressGroup(address)).toBe(group);
  });
});

/** A call whose steps can run in any order. Its work first waits for a provider. */
function callOf(admission: ReturnType<typeof createAdmission>, ticket: Ticket) {
  const provider = Promise.withResolvers<void>();
  const rest = Promise.withResolvers<void>();
  rest.promise.catch(() => {});
  let work: Promise<unknown> | undefined;
  return {
    work() {
      work ??= ticket
        .work(async () => {
          await admission.pauseWork(() => provider.promise);
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
