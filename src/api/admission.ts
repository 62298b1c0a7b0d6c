import { ServiceError } from '#src/service-error.ts';

/** How much is taken on at once. What exceeds either is refused at once: nothing is sent, no key is claimed. */
export type AdmissionLimits = {
  /** Calls from their headers to the end of their work, whatever they wait for. Each costs memory. */
  readonly maxInFlight: number;
  /**
   * Of those, the ones that cost us time now: not those that wait for their body, for a provider, or for another call
   * with their key. What it exceeds the database's connections by is the queue for them.
   */
  readonly maxAtWork: number;
};

/** Which limit a call was refused by. */
export type RefusedBy = 'in_flight' | 'at_work';

/** Decides which calls are taken on, and counts them until their work has ended. */
export type Admission = {
  /** @returns the call's ticket; undefined when it is refused. */
  admit(): Ticket | undefined;
  /** Awaits what costs us nothing meanwhile, in the work of a call: a provider's answer. */
  aside<T>(wait: () => Promise<T>): Promise<T>;
  counts(): { readonly inFlight: number; readonly atWork: number };
};

/** What an admitted call is counted by: at work from its beginning. */
export type Ticket = {
  /** The call waits for its body. */
  receive(): void;
  /**
   * Runs the call's work, and gives the ticket back when that ends, whether or not anybody waits for it still.
   *
   * @throws ServiceError SERVICE_UNAVAILABLE, without running it, when too much is at work by now.
   */
  work<T>(run: () => Promise<T>): Promise<T>;
  /** The call's response is over: gives the ticket back, unless work is running. */
  close(): void;
};

/**
 * Makes the admission of a replica's calls. There is no queue beside the limits: who is refused at once can try
 * elsewhere, and who waits for nothing keeps others waiting.
 */
export function createAdmission(
  limits: AdmissionLimits,
  refused: (limit: RefusedBy) => void = () => {},
): Admission {
  let inFlight = 0;
  let atWork = 0;

  function ticket(): Ticket {
    let counted = { inFlight: 0, atWork: 0 };
    let working = false;
    const count = (now: typeof counted) => {
      inFlight += now.inFlight - counted.inFlight;
      atWork += now.atWork - counted.atWork;
      counted = now;
    };
    const giveBack = () => count({ inFlight: 0, atWork: 0 });
    count({ inFlight: 1, atWork: 1 });
    return {
      receive() {
        if (!working) count({ ...counted, atWork: 0 });
      },
      async work(run) {
        if (counted.atWork === 0 && atWork >= limits.maxAtWork) {
          giveBack();
          refused('at_work');
          throw anyOf(OVERLOADED);
        }
        count({ inFlight: 1, atWork: 1 });
        working = true;
        try {
          return await run();
        } finally {
          working = false;
          giveBack();
        }
      },
      close() {
        if (!working) giveBack();
      },
    };
  }

  return {
    admit() {
      if (atWork >= limits.maxAtWork) refused('at_work');
      else if (inFlight >= limits.maxInFlight) refused('in_flight');
      else return ticket();
      return undefined;
    },
    async aside(wait) {
      atWork -= 1;
      try {
        return await wait();
      } finally {
        atWork += 1;
      }
    },
    counts: () => ({ inFlight, atWork }),
  };
}

/** Jittered, so that those who were refused together do not come back together. */
const RETRY_AFTER_S = [1, 2, 3] as const;

/** Every refusal there is, one for each pause that it asks for. */
export const OVERLOADED: readonly ServiceError[] = RETRY_AFTER_S.map(
  (retryAfterS) =>
    new ServiceError(
      'SERVICE_UNAVAILABLE',
      'too much is under way; the call was not accepted and nothing was sent; try again',
      { retryAfterS },
    ),
);

/** One of several, at random. */
export function anyOf<T>(items: readonly T[]): T {
  return items[Math.floor(Math.random() * items.length)] as T;
}
