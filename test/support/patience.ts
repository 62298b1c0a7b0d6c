import { vi } from 'vitest';

/*
 * A wait ends as soon as its condition holds; its limit is for what hangs. Vitest's own limit of a second is not enough on
 * a busy machine. `expect.poll` has its limit in vitest.config.ts.
 */
const PATIENCE_MS = 60_000;
const { waitFor } = vi;
type WaitFor = typeof waitFor & { isPatient?: true };

// Files share a worker, in which this runs once for each.
if (!(waitFor as WaitFor).isPatient) {
  const patient: WaitFor = (callback, options = {}) =>
    waitFor(callback, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
  patient.isPatient = true;
  vi.waitFor = patient;
}
