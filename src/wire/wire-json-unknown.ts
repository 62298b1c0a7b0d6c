import { type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import { asksForNothing } from './canonical-message.ts';
import { isJsonObject } from './parse-json.ts';
import { type Faults, locateFaults, noteFault, type Read } from './wire-json-faults.ts';
import { wellKnownReader } from './wire-json-well-known.ts';

/** Refuses an unknown member. */
export function noteUnknown(name: string, faults: Faults): void {
  const count = faults.length;
  noteFault(faults, 'NOT_ALLOWED', 'is not a known field');
  locateFaults(faults, count, name);
}

/** The names of a message's fields, by what `lettersOf` returns for them. */
export type Spellings = Map<string, string>;

/** Returns a name without what differs between spellings such as final_capture, finalCapture and FinalCapture. */
export function lettersOf(name: string): string {
  return name.replaceAll(/[_-]/g, '').toLowerCase();
}

const LONGEST_NAME = 64;

/**
 * Refuses a member whose name is a field's in another spelling: if `Capture: false` were ignored like any unknown
 * member, the money would be taken.
 *
 * @returns false if the name is no field's in any spelling.
 */
export function refuseSpelling(name: string, json: unknown, spellings: Spellings, faults: Faults): boolean {
  const field = name.length <= LONGEST_NAME ? spellings.get(lettersOf(name)) : undefined;
  if (field === undefined) return false;
  if (json === null || json === '') return true;
  const count = faults.length;
  noteFault(faults, 'NOT_ALLOWED', `must be spelled ${field}`);
  locateFaults(faults, count, name);
  return true;
}

const readValue = wellKnownReader(ValueSchema, false) as Read;
/** Reports whether a value is an object that asks for nothing, such as {"vault_on_success": false}. */
export function isEmptyObject(json: unknown): boolean {
  return isJsonObject(json) && asksForNothing(readValue(json, []) as Value | undefined);
}

/** Names that a refusal may repeat. Others come from the sender, and might be a card number. */
const PLAIN_NAME = /^[A-Za-z_]{1,64}$/;

/** Refuses an unknown member, unless it sets nothing. */
export function refuseIfSet(name: string, json: unknown, faults: Faults): void {
  const count = faults.length;
  const value = readValue(json, faults) as Value | undefined;
  if (faults.length === count && !asksForNothing(value)) {
    const message = PLAIN_NAME.test(name) ? 'is not supported' : 'has a member that is not supported';
    noteFault(faults, 'NOT_SUPPORTED', message);
  }
  if (faults.length > count && PLAIN_NAME.test(name)) locateFaults(faults, count, name);
}
