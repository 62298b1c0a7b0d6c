/** Work in flight. It delays a shutdown, and the closing of a connection that was removed from the catalogue. */
export type InFlight = {
  /** Tracks work until it ends. @returns the work. */
  track<Work extends Promise<unknown>>(work: Work): Work;
  /** Resolves when all work now in flight has ended, successfully or not. */
  settled(): Promise<unknown>;
};

/** Creates the tracker of work in flight, initially without any. */
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
