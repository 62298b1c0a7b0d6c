import { isScalar } from 'yaml';
import { type Catalogue, CatalogueSchema } from '#gen/payments/config/catalogue_pb.js';
import { describeFields, ServiceError } from '#src/service-error.ts';
import { validate } from '#src/wire/validate.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { parseYaml, readTextFile, type YamlFile } from '#src/wire/yaml-file.ts';
import { CatalogueError } from './catalogue-error.ts';
import { checkCatalogue, type Locate } from './check-catalogue.ts';

const MAX_FILE_BYTES = 16 * 1024 * 1024;
const decode = jsonDecoder(CatalogueSchema, { unknownFields: 'reject' });
const check = validate(CatalogueSchema);
const refuse = (message: string) => new CatalogueError(message);

/**
 * Reads a catalogue file: YAML (or JSON, a subset of YAML) with the field names of catalogue.proto as keys.
 *
 * @throws CatalogueError.
 */
export function readCatalogue(file: string): Catalogue {
  return parseCatalogue(readTextFile(file, refuse), file);
}

/** Parses and checks the contents of a catalogue file. @param file path for messages. @throws CatalogueError. */
export function parseCatalogue(text: string, file: string): Catalogue {
  if (text.length > MAX_FILE_BYTES)
    throw new CatalogueError(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  const yaml = parseYaml(text, file, refuse);
  let catalogue: Catalogue;
  try {
    catalogue = decode(yaml.document.toJS({ maxAliasCount: 100 }));
  } catch (error) {
    // The yaml package throws a ReferenceError for aliases that would expand endlessly.
    const isOfTheFile = error instanceof ServiceError || error instanceof ReferenceError;
    throw isOfTheFile ? new CatalogueError(`${file}: ${error.message}`) : error;
  }
  const faults = check(catalogue);
  if (faults.length === 0) faults.push(...checkCatalogue(catalogue, locateIn(yaml, text)));
  if (faults.length === 0) return catalogue;
  throw new CatalogueError(`${file}: ${describeFields(faults)}`);
}

/**
 * Returns a function that finds a position within a condition in the file. If YAML folds or escapes the condition, its
 * text in the file differs, and the position within the condition is returned.
 */
function locateIn({ document, lineCounter }: YamlFile, text: string): Locate {
  return (route, line, column) => {
    const node = document.getIn(['routes', route, 'condition'], true);
    const within = `line ${line}, column ${column} of the condition`;
    if (!isScalar(node) || !node.range || typeof node.value !== 'string') return within;
    const wanted = node.value.split('\n')[line - 1] ?? '';
    let from = node.range[0];
    for (let earlier = 1; earlier < line; earlier++) from = text.indexOf('\n', from) + 1;
    const at = text.indexOf(wanted, from);
    if (at < 0 || at + wanted.length > node.range[2]) return within;
    const { line: fileLine, col } = lineCounter.linePos(at + column - 1);
    return `line ${fileLine}, column ${col}`;
  };
}
