import { AsyncLocalStorage } from 'node:async_hooks';
import { ServiceError } from '#src/service-error.ts';
import type { Credentials } from './authenticate.ts';
import { type ShareLimits, sharesOf } from './shares.ts';
import { createSlots, type Share, type Slots } from './slots.ts';

/** Limits on calls in progress. A call that exceeds one is refused at once: nothing is sent, no key is claimed. */
export type AdmissionLimits = ShareLimits & {
  /**
   * Calls from the end of their body until their response is taken, whatever they wait for. Each costs memory.
   * As many again may wait for their bodies.
   */
  readonly maxInFlight: number;
  /**
   * Of those, the ones that cost us time now: not those that wait for a provider, for another call with their key, or for
   * their response to be taken. Look-ups of keys count too. What it exceeds the database's connections by is the queue
   * for them.
   */
  readonly maxAtWork: number;
};

/** The limit that refused a call. */
export type RefusedBy = 'receiving' | 'in_flight' | 'at_work';

/** Decides which calls are accepted, and counts them until they end. */
export type Admission = {
  /**
   * Begins a call, which holds no slot yet.
   *
   * @param address returns the client's.
   * @returns the call's ticket; undefined when the call is refused because nobody could be accepted now.
   */
  admit(address: () => string): Ticket | undefined;
  /** Awaits something that costs no processor time; meanwhile the call does not count as at work. */
  pauseWork<T>(wait: () => Promise<T>): Promise<T>;
  counts(): { readonly receiving: number; readonly inFlight: number; readonly atWork: number };
};

/** Counts one call. Its steps are taken in this order; each may be the last. */
export type Ticket = {
  /**
   * Runs a look-up of the call's keys.
   *
   * @param recalled whose call it is by what was known of the keys before.
   * @throws ServiceError SERVICE_UNAVAILABLE, without running it, when too much is at work.
   */
  lookUp<T>(recalled: Credentials | undefined, run: () => Promise<T>): Promise<T>;
  /**
   * Begins to wait for the call's body.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE when there is no room for it, or there would be none for the call then.
   */
  receive(credentials: Credentials): void;
  /**
   * Runs the call's work. The call is in flight until that has ended, whether or not anybody waits for it still, and its
   * response is over.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE, without running it, when too much is in flight or at work by now.
   */
  work<T>(run: () => Promise<T>): Promise<T>;
  /** Ends the call's response: it was taken, or given up. */
  close(): void;
};

/**
 * Makes the admission of a replica's calls. There is no queue beside the limits: a caller rejected at once can try another
 * replica; one that waits in vain delays the rest.
 */
export function createAdmission(
  limits: AdmissionLimits,
  refused: (limit: RefusedBy) => void = () => {},
): Admission {
  const receiving = createSlots(limits.maxInFlight);
  const inFlight = createSlots(limits.maxInFlight);
  const atWork = createSlots(limits.maxAtWork);
  const work = trackWork(atWork);

  function refusal(limit: RefusedBy): ServiceError {
    refused(limit);
    return anyOf(OVERLOADED);
  }

  function ticket(address: () => string): Ticket {
    let shares: readonly Share[] = [];
    let entered: Slots | undefined;
    let isWorking = false;
    let isClosed = false;
    const hold = (slots: Slots | undefined) => {
      entered?.release(shares);
      entered = slots;
    };
    return {
      async lookUp(recalled, run) {
        const ofLookUp = sharesOf(recalled, address, limits);
        if (!atWork.take(ofLookUp)) throw refusal('at_work');
        return work.run(ofLookUp, run);
      },
      receive(credentials) {
        shares = sharesOf(credentials, address, limits);
        if (!inFlight.hasRoom(shares)) throw refusal('in_flight');
        if (!receiving.take(shares)) throw refusal('receiving');
        hold(receiving);
        if (isClosed) hold(undefined);
      },
      async work(run) {
        hold(undefined);
        if (!inFlight.hasRoom(shares)) throw refusal('in_flight');
        if (!atWork.take(shares)) throw refusal('at_work');
        inFlight.take(shares);
        hold(inFlight);
        isWorking = true;
        try {
          return await work.run(shares, run);
        } finally {
          isWorking = false;
          if (isClosed) hold(undefined);
        }
      },
      close() {
        isClosed = true;
        if (!isWorking) hold(undefined);
      },
    };
  }

  return {
    admit(address) {
      if (!atWork.hasRoom([])) refused('at_work');
      else if (!inFlight.hasRoom([])) refused('in_flight');
      else return ticket(address);
      return undefined;
    },
    pauseWork: work.pause,
    counts: () => ({ receiving: receiving.count(), inFlight: inFlight.count(), atWork: atWork.count() }),
  };
}

/** The work of one call, as code that runs within it finds it. */
type Work = {
  readonly shares: readonly Share[];
  /** Number of waits for which it is paused. */
  pauses: number;
  isOver: boolean;
};

/** Runs what counts as at work. */
type WorkTracker = {
  /** Runs what counts until it ends, except while it is paused; a slot has been taken for it. */
  run<T>(shares: readonly Share[], run: () => Promise<T>): Promise<T>;
  /** Pauses the work that it is called in while it waits. */
  pause<T>(wait: () => Promise<T>): Promise<T>;
};

function trackWork(atWork: Pick<Slots, 'release' | 'retake'>): WorkTracker {
  const current = new AsyncLocalStorage<Work>();
  return {
    async run(shares, run) {
      const work: Work = { shares, pauses: 0, isOver: false };
      try {
        return await current.run(work, run);
      } finally {
        work.isOver = true;
        if (work.pauses === 0) atWork.release(shares);
      }
    },
    async pause(wait) {
      const work = current.getStore();
      // Recovery is no call's work, and what goes on in the background after a call's work is not either.
      if (!work || work.isOver) return wait();
      if (work.pauses++ === 0) atWork.release(work.shares);
      try {
        return await wait();
      } finally {
        if (--work.pauses === 0 && !work.isOver) atWork.retake(work.shares);
      }
    },
  };
}

/** Jittered, so that callers refused together do not return together. */
const RETRY_AFTER_S = [1, 2, 3] as const;

/** All refusals, one for each value of Retry-After. */
export const OVERLOADED: readonly ServiceError[] = RETRY_AFTER_S.map(
  (retryAfterS) =>
    new ServiceError('SERVICE_UNAVAILABLE', 'the service is overloaded; nothing was sent; retry later', {
      retryAfterS,
    }),
);

/** Returns true if an error is such a refusal: those are counted, not logged one by one. */
export function isOverload(error: unknown): boolean {
  return OVERLOADED.includes(error as ServiceError);
}

/** One of several, at random. */
export function anyOf<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T;
}
