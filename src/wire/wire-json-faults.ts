import type { FieldCode } from '#src/service-error.ts';

/** Number of faults after which reading stops looking for more. */
const MAX_FAULTS = 20;

/**
 * Faults found in a body so far. A fault is noted where it is found, without a path, and each level on the way out
 * puts its name before: paths cost nothing while nothing is wrong. Messages never hold a value.
 */
export type Faults = { field: string; readonly code: FieldCode; readonly message: string }[] & {
  /** Number of values of free JSON in the body so far: everything else is bounded by the limits on lists. */
  freeValues?: number;
};

/**
 * Reads a JSON value, which is null only where null is a value. When the value is at fault that is noted, and the
 * result means nothing.
 */
export type Read = (json: unknown, faults: Faults) => unknown;

/** Records a fault, and returns what a reader returns for it. */
export function noteFault(faults: Faults, code: FieldCode, message: string): undefined {
  if (!isFull(faults)) faults.push({ field: '', code, message });
}

/** Puts a name, or an index as `[0]`, before the paths of the faults noted since there were `count`. */
export function locateFaults(faults: Faults, count: number, segment: string): void {
  for (let i = count; i < faults.length; i++) {
    const fault = faults[i] as Faults[number];
    const { field } = fault;
    fault.field = field === '' || field.startsWith('[') ? segment + field : `${segment}.${field}`;
  }
}

/** Returns true once there are so many faults that no more are looked for. */
export function isFull(faults: Faults): boolean {
  return faults.length >= MAX_FAULTS;
}
