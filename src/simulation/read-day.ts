import { readFileSync } from 'node:fs';
import { type Document, isNode, LineCounter, parseDocument } from 'yaml';
import { type SimulatedDay, SimulatedDaySchema } from '../../gen/payments/config/simulation_pb.js';
import { validate } from '../api/validate.ts';
import { jsonDecoder } from '../api/wire-json-decode.ts';
import { PaymentError } from '../payments/payment-error.ts';
import { checkDay, type DayFault } from './check-day.ts';

/** A simulation that cannot be run: its file is wrong, or does not go with the catalogue. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError';
}

const decode = jsonDecoder(SimulatedDaySchema, { unknownFields: 'reject' });
const check = validate(SimulatedDaySchema);

/**
 * Reads a scenario: YAML (or JSON, which is YAML), whose keys are the field names of simulation.proto.
 *
 * @throws SimulationError that names each place at fault.
 */
export function readDay(file: string): SimulatedDay {
  let text: string;
  try {
    text = readFileSync(file, 'utf8');
  } catch (error) {
    throw new SimulationError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
  return parseDay(text, file);
}

/** Parses and checks the text of a scenario; `file` is for messages. @throws SimulationError. */
export function parseDay(text: string, file: string): SimulatedDay {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, lineCounter });
  const [syntaxError] = document.errors;
  if (syntaxError) throw new SimulationError(`${file}: ${syntaxError.message}`);
  const refuse = (faults: readonly DayFault[]) =>
    new SimulationError(
      faults
        .map(({ field, message }) => `${file}:${lineOf(document, lineCounter, field)}: ${field} ${message}`)
        .join('\n'),
    );
  let day: SimulatedDay;
  try {
    day = decode(document.toJS({ maxAliasCount: 100 }));
  } catch (error) {
    if (error instanceof PaymentError && error.fields.length > 0) throw refuse(error.fields);
    // The yaml package throws a ReferenceError for aliases that would grow without end.
    if (!(error instanceof PaymentError || error instanceof ReferenceError)) throw error;
    throw new SimulationError(`${file}: must be fields, as in config/simulation.yaml`);
  }
  const faults = [...check(day), ...checkDay(day)];
  if (faults.length > 0) throw refuse(faults);
  return day;
}

/** The line of a field, or of the nearest that is there of those around it. */
function lineOf(document: Document, lineCounter: LineCounter, field: string): number {
  const path = [...field.matchAll(/[^.[\]]+/g)].map(([step]) => (/^\d+$/.test(step) ? Number(step) : step));
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line;
  }
  return 1;
}
