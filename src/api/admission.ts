import { AsyncLocalStorage } from 'node:async_hooks';
import { overloadErrors } from '#src/service-error.ts';
import { createSlots, type Release, type Share, type Slots } from '#src/slots.ts';
import type { Credentials } from './authenticate.ts';
import { type ShareLimits, sharesOf } from './shares.ts';

/**
 * Limit on the number of bodies being received. Clients send them within milliseconds, so few arrive at the same time.
 */
const MAX_RECEIVING = 1_000;

/** Limits on calls in progress. A call that exceeds one is refused at once: nothing is sent and no key is claimed. */
export type AdmissionLimits = ShareLimits & {
  /**
   * Maximum number of calls in flight. A call is in flight from the end of its request body until the client has
   * received the response, and takes memory. As many calls again, up to `MAX_RECEIVING`, may still be sending their
   * bodies.
   */
  readonly maxInFlight: number;
  /**
   * Maximum number of calls in flight that are working rather than waiting for a provider, for another call with the
   * same key, or for the client to receive the response. Key look-ups count too. Calls beyond the number of database
   * connections queue for a connection.
   */
  readonly maxAtWork: number;
};

/** The limit that refused a call. */
export type RefusedBy = 'receiving' | 'in_flight' | 'at_work';

/** A call that has arrived. */
export type Arrival = {
  /** Returns the client's address. */
  address(): string;
  /** Called with the limit that refused the call, on arrival or later. */
  refused(limit: RefusedBy): void;
};

/** Decides which calls to accept, and counts them until they end. */
export type Admission = {
  /**
   * Begins a call. It holds no slot yet.
   *
   * @returns the call's ticket, or undefined if the service can accept no call now.
   */
  admit(arrival: Arrival): Ticket | undefined;
  /** Takes the place of the process's only larger body, for a form. @returns undefined if another body has it. */
  takeLarge(): Release | undefined;
  /** Runs a wait that uses no CPU time. Meanwhile, the call does not count as working. */
  pauseWork<T>(wait: () => Promise<T>): Promise<T>;
  counts(): { readonly receiving: number; readonly inFlight: number; readonly atWork: number };
};

/** Counts one call. The methods are called in this order, and the call may end after any of them. */
export type Ticket = {
  /**
   * Looks up the call's keys.
   *
   * @param recalled the credentials last found for these keys, if any.
   * @throws ServiceError SERVICE_UNAVAILABLE, without a look-up, if too many calls are working.
   */
  lookUp<T>(recalled: Credentials | undefined, run: () => Promise<T>): Promise<T>;
  /**
   * Starts receiving the call's body.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE if there is no room for the body or, at present, for the call's work.
   */
  receive(credentials: Credentials): void;
  /**
   * Admits a body that is larger than most, when it is known to be. The process has one such call at a time.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE if there is another one.
   */
  receiveLarge(): void;
  /**
   * Runs the call's work. The call stays in flight until both the work and the response are complete, even if nothing
   * awaits the work any longer.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE, without running the work, if too many calls are in flight or working.
   */
  work<T>(run: () => Promise<T>): Promise<T>;
  /** Marks the response as complete, because the client received it or the connection was lost. */
  close(): void;
};

/**
 * Creates the admission control for one replica. It queues nothing: a caller rejected at once can try another replica,
 * and a caller that waits in vain delays the others.
 */
export function createAdmission(limits: AdmissionLimits): Admission {
  const receiving = createSlots(Math.min(limits.maxInFlight, MAX_RECEIVING));
  const inFlight = createSlots(limits.maxInFlight);
  const atWork = createSlots(limits.maxAtWork);
  const large = createSlots(1);
  const work = trackWork(atWork);

  function ticket({ address, refused }: Arrival): Ticket {
    const refusal = (limit: RefusedBy) => {
      refused(limit);
      return overloaded();
    };
    let shares: readonly Share[] = [];
    let leave: Release = () => {};
    let leaveLarge: Release = () => {};
    const end = () => {
      leave();
      leaveLarge();
    };
    let isWorking = false;
    let isClosed = false;
    return {
      async lookUp(recalled, run) {
        const ofLookUp = sharesOf(recalled, address, limits);
        const slot = atWork.take(ofLookUp);
        if (!slot) throw refusal('at_work');
        return work.run(slot, ofLookUp, run);
      },
      receive(credentials) {
        shares = sharesOf(credentials, address, limits);
        // Under overload, most calls end here: reading the body would cost several times as much.
        if (!atWork.hasRoom(shares)) throw refusal('at_work');
        if (!inFlight.hasRoom(shares)) throw refusal('in_flight');
        const slot = receiving.take(shares);
        if (!slot) throw refusal('receiving');
        leave = slot;
        if (isClosed) leave();
      },
      receiveLarge() {
        const slot = large.take();
        if (!slot) throw refusal('receiving');
        leaveLarge = slot;
        if (isClosed) leaveLarge();
      },
      async work(run) {
        leave();
        if (!inFlight.hasRoom(shares)) throw refusal('in_flight');
        const slot = atWork.take(shares);
        if (!slot) throw refusal('at_work');
        leave = inFlight.occupy(shares);
        isWorking = true;
        try {
          return await work.run(slot, shares, run);
        } finally {
          isWorking = false;
          if (isClosed) end();
        }
      },
      close() {
        isClosed = true;
        if (!isWorking) end();
      },
    };
  }

  return {
    admit(arrival) {
      if (!atWork.hasRoom([])) arrival.refused('at_work');
      else if (!inFlight.hasRoom([])) arrival.refused('in_flight');
      else return ticket(arrival);
      return undefined;
    },
    takeLarge: () => large.take(),
    pauseWork: work.pause,
    counts: () => ({ receiving: receiving.count(), inFlight: inFlight.count(), atWork: atWork.count() }),
  };
}

/** The work of one call, kept in an AsyncLocalStorage. */
type Work = {
  readonly shares: readonly Share[];
  /** Releases the slot that it has, if it has one. */
  release: Release;
  /** Number of waits in progress. Any wait pauses the work. */
  pauses: number;
  isOver: boolean;
};

/** Counts calls as working while their work runs. */
type WorkTracker = {
  /** Runs work that has a slot, and releases the slot during pauses and when the work is done. */
  run<T>(slot: Release, shares: readonly Share[], run: () => Promise<T>): Promise<T>;
  /** Runs a wait, during which the calling work is paused. */
  pause<T>(wait: () => Promise<T>): Promise<T>;
};

function trackWork(atWork: Pick<Slots, 'occupy'>): WorkTracker {
  const current = new AsyncLocalStorage<Work>();
  return {
    async run(slot, shares, run) {
      const work: Work = { shares, release: slot, pauses: 0, isOver: false };
      try {
        return await current.run(work, run);
      } finally {
        work.isOver = true;
        work.release();
      }
    },
    async pause(wait) {
      const work = current.getStore();
      // Background checks, and work that outlives its call, belong to no call.
      if (!work || work.isOver) return wait();
      if (work.pauses++ === 0) work.release();
      try {
        return await wait();
      } finally {
        if (--work.pauses === 0 && !work.isOver) work.release = atWork.occupy(work.shares);
      }
    },
  };
}

/** Returns the refusal for a call that is not admitted. */
export const overloaded = overloadErrors('the service is overloaded; nothing was sent; retry later');
