import { type FieldCode, MAX_FIELD_ERRORS } from '#src/service-error.ts';

/**
 * Faults found in a body so far. A fault is recorded without a path; each enclosing level then prepends its name, so
 * that no paths are built for a body without faults. Messages never contain a value.
 */
export type Faults = { field: string; readonly code: FieldCode; readonly message: string }[] & {
  /** Number of arbitrary JSON values in the body so far. The limits on lists bound everything else. */
  freeValues?: number;
};

/**
 * Reads a JSON value. The value is null only where null is allowed. If it is faulty, records the fault, and returns
 * undefined, or a message or list of the readable parts.
 */
export type Read = (json: unknown, faults: Faults) => unknown;

/** Records a fault, and returns the reader's result. */
export function noteFault(faults: Faults, code: FieldCode, message: string): undefined {
  if (!isFull(faults)) faults.push({ field: '', code, message });
}

/** Prepends a name, or an index such as `[0]`, to the paths of all faults after the first `count`. */
export function locateFaults(faults: Faults, count: number, segment: string): void {
  for (let i = count; i < faults.length; i++) {
    const fault = faults[i] as Faults[number];
    const { field } = fault;
    fault.field = field === '' || field.startsWith('[') ? segment + field : `${segment}.${field}`;
  }
}

/** Reports whether there are so many faults that reading stops. */
export function isFull(faults: Faults): boolean {
  return faults.length >= MAX_FIELD_ERRORS;
}
