import { type FieldCode, MAX_FIELD_ERRORS } from '#src/service-error.ts';

/**
 * Faults found in a body so far. A fault is noted where it is found, without a path, and each level on the way out
 * puts its name in front: paths cost nothing in a body without faults. Messages never contain a value.
 */
export type Faults = { field: string; readonly code: FieldCode; readonly message: string }[] & {
  /** Number of free JSON values in the body so far: limits on lists bound everything else. */
  freeValues?: number;
};

/**
 * Reads a JSON value; it gets null only where null is a value. If the value is faulty, the fault is noted, and the
 * result is undefined, or a message or list of the readable parts.
 */
export type Read = (json: unknown, faults: Faults) => unknown;

/** Records a fault, and returns the reader's result for it. */
export function noteFault(faults: Faults, code: FieldCode, message: string): undefined {
  if (!isFull(faults)) faults.push({ field: '', code, message });
}

/** Puts a name, or an index such as `[0]`, in front of the paths of the faults after the first `count`. */
export function locateFaults(faults: Faults, count: number, segment: string): void {
  for (let i = count; i < faults.length; i++) {
    const fault = faults[i] as Faults[number];
    const { field } = fault;
    fault.field = field === '' || field.startsWith('[') ? segment + field : `${segment}.${field}`;
  }
}

/** Returns true once there are so many faults that reading stops. */
export function isFull(faults: Faults): boolean {
  return faults.length >= MAX_FIELD_ERRORS;
}
