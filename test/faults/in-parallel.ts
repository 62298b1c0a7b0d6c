/** Runs jobs in order, up to `atOnce` at a time. */
export async function inParallel<T>(jobs: readonly (() => Promise<T>)[], atOnce: number): Promise<T[]> {
  const results: T[] = [];
  let next = 0;
  const work = async () => {
    for (let i = next++; i < jobs.length; i = next++) {
      const job = jobs[i];
      if (job) results.push(await job());
    }
  };
  await Promise.all(Array.from({ length: atOnce }, work));
  return results;
}
