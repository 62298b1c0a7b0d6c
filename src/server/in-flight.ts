/** Work under way: a shutdown waits for it, and so does the closing of a connection that left the catalogue. */
export type InFlight = {
  /** Remembers work until it ends. @returns the work. */
  track<Work extends Promise<unknown>>(work: Work): Work;
  /** Resolves when what is under way now has ended, whatever became of it. */
  settled(): Promise<unknown>;
};

/** Creates a record of work under way. */
export function createInFlight(): InFlight {
  const open = new Set<Promise<unknown>>();
  return {
    track(work) {
      open.add(work);
      const forget = () => open.delete(work);
      work.then(forget, forget);
      return work;
    },
    settled: () => Promise.allSettled(open),
  };
}
