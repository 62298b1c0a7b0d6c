import { vi } from 'vitest';

/*
 * A wait ends as soon as its condition holds; its limit only catches hanging tests. Vitest's default of one second is
 * too short on a busy machine. The limit of `expect.poll` is in vitest.config.ts.
 */
const PATIENCE_MS = 60_000;
const { waitFor } = vi;
type WaitFor = typeof waitFor & { isPatient?: true };

// Several files share a worker, and this runs once per file.
if (!(waitFor as WaitFor).isPatient) {
  const patient: WaitFor = (callback, options = {}) =>
    waitFor(callback, typeof options === 'number' ? options : { timeout: PATIENCE_MS, ...options });
  patient.isPatient = true;
  vi.waitFor = patient;
}
