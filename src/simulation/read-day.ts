import { isNode } from 'yaml';
import { type SimulatedDay, SimulatedDaySchema } from '#gen/payments/config/simulation_pb.js';
import { ServiceError } from '#src/service-error.ts';
import { validate } from '#src/wire/validate.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { parseYaml, readTextFile, type YamlFile } from '#src/wire/yaml-file.ts';
import { checkDay, type DayFault } from './check-day.ts';

/** A simulation that cannot run: its file is invalid, or does not match the catalogue. */
export class SimulationError extends Error {
  override readonly name = 'SimulationError';
}

const decode = jsonDecoder(SimulatedDaySchema, { unknownFields: 'reject' });
const check = validate(SimulatedDaySchema);
const refuse = (message: string) => new SimulationError(message);

/**
 * Reads a scenario: YAML (or JSON, which is YAML), whose keys are the field names of simulation.proto.
 *
 * @throws SimulationError that names every line and field at fault.
 */
export function readDay(file: string): SimulatedDay {
  return parseDay(readTextFile(file, refuse), file);
}

/** Parses and checks the text of a scenario; `file` is for messages. @throws SimulationError. */
export function parseDay(text: string, file: string): SimulatedDay {
  const yaml = parseYaml(text, file, refuse);
  const refuseAll = (faults: readonly DayFault[]) =>
    refuse(
      faults.map(({ field, message }) => `${file}:${lineOf(yaml, field)}: ${field} ${message}`).join('\n'),
    );
  let day: SimulatedDay;
  try {
    day = decode(yaml.document.toJS({ maxAliasCount: 100 }));
  } catch (error) {
    if (error instanceof ServiceError && error.fields.length > 0) throw refuseAll(error.fields);
    // The yaml package throws a ReferenceError for aliases that would grow without end.
    if (!(error instanceof ServiceError || error instanceof ReferenceError)) throw error;
    throw new SimulationError(`${file}: must be fields, as in config/simulation.yaml`);
  }
  const faults = [...check(day), ...checkDay(day)];
  if (faults.length > 0) throw refuseAll(faults);
  return day;
}

/** Returns the line of a field, or of the nearest enclosing field that exists. */
function lineOf({ document, lineCounter }: YamlFile, field: string): number {
  const path = [...field.matchAll(/[^.[\]]+/g)].map(([step]) => (/^\d+$/.test(step) ? Number(step) : step));
  for (let length = path.length; length > 0; length--) {
    const node = document.getIn(path.slice(0, length), true);
    if (isNode(node) && node.range) return lineCounter.linePos(node.range[0]).line;
  }
  return 1;
}
