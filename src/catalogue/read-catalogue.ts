import { readFileSync } from 'node:fs';
import { type Document, isCollection, isNode, isScalar, LineCounter, parseDocument } from 'yaml';
import { type Catalogue, CatalogueSchema } from '#gen/payments/v1/catalogue_pb.js';
import { type FieldCode, ServiceError } from '#src/service-error.ts';
import { jsonDecoder } from '#src/wire/wire-json-decode.ts';
import { CatalogueError } from './catalogue-error.ts';
import { type CatalogueFault, checkCatalogue } from './check-catalogue.ts';

const MAX_FILE_BYTES = 16 * 1024 * 1024;

/** A fault with its place in a text, counted from 1; 0 if there is no text or no place. */
export type PlacedFault = {
  /** Path of the field, as in a file; "" for a text that is not YAML. */
  readonly path: string;
  readonly code: FieldCode;
  readonly message: string;
  readonly line: number;
  readonly column: number;
  readonly severity: 'ERROR' | 'WARNING';
};

/** A catalogue with everything that is wrong. `catalogue` is absent if the text cannot be read as one. */
export type CheckedCatalogue = {
  readonly catalogue?: Catalogue;
  readonly faults: readonly PlacedFault[];
};

/**
 * Reads a catalogue file: YAML (or JSON, a subset of YAML) with the field names of catalogue.proto as keys.
 *
 * @throws CatalogueError.
 */
export function readCatalogue(file: string): Catalogue {
  return parseCatalogue(readTextFile(file), file);
}

/** Reads the text of a catalogue file. @throws CatalogueError. */
export function readTextFile(file: string): string {
  try {
    return readFileSync(file, 'utf8');
  } catch (error) {
    throw new CatalogueError(`${file} cannot be read (${(error as NodeJS.ErrnoException).code})`);
  }
}

/** Parses and checks the contents of a catalogue file. @param file path for messages. @throws CatalogueError. */
export function parseCatalogue(text: string, file: string): Catalogue {
  if (text.length > MAX_FILE_BYTES)
    throw new CatalogueError(`${file} is larger than ${MAX_FILE_BYTES} bytes`);
  const { catalogue, faults } = checkCatalogueText(text);
  if (catalogue && faults.length === 0) return catalogue;
  const listed = faults.map(({ path, message }) => (path === '' ? message : `${path}: ${message}`));
  throw new CatalogueError(`${file}: ${listed.join('; ')}`);
}

/** Checks a catalogue that is no text. */
export function checkCatalogueMessage(catalogue: Catalogue): CheckedCatalogue {
  return { catalogue, faults: placeFaults(undefined, checkCatalogue(catalogue)) };
}

/** Reads and checks a catalogue's text: YAML with the field names of catalogue.proto as keys. */
export function checkCatalogueText(text: string): CheckedCatalogue {
  const lineCounter = new LineCounter();
  const document = parseDocument(text, { prettyErrors: true, lineCounter });
  const yaml = { document, lineCounter, text };
  if (document.errors.length > 0) {
    const faults = document.errors.map(({ message, pos: [at] }) => unreadable(message, position(yaml, at)));
    return { faults };
  }
  try {
    const read = decode(document.toJS({ maxAliasCount: 100 }));
    return { catalogue: read, faults: checkCatalogue(read).map((fault) => placedIn(yaml, fault)) };
  } catch (error) {
    // The yaml package throws a ReferenceError for aliases that would expand endlessly.
    if (error instanceof ReferenceError) return { faults: [unreadable(error.message)] };
    if (!(error instanceof ServiceError)) throw error;
    if (error.fields.length === 0) return { faults: [unreadable(error.message)] };
    return { faults: error.fields.map((fault) => placedIn(yaml, { ...fault, severity: 'ERROR' })) };
  }
}

/** Returns the faults of a catalogue with their places in its text, if it has one. */
export function placeFaults(text: string | undefined, faults: readonly CatalogueFault[]): PlacedFault[] {
  if (text === undefined) {
    return faults.map((fault) => {
      const { within } = fault;
      return placed(fault, within ? ofCondition(within) : '', { line: 0, column: 0 });
    });
  }
  const lineCounter = new LineCounter();
  const yaml = { document: parseDocument(text, { lineCounter }), lineCounter, text };
  return faults.map((fault) => placedIn(yaml, fault));
}

// A text that cannot be read whole is checked as far as it can be read.
const decode = jsonDecoder(CatalogueSchema, {
  unknownFields: 'reject',
  check: checkCatalogue,
});

type Place = { readonly line: number; readonly column: number };

function unreadable(message: string, place: Place = { line: 1, column: 1 }): PlacedFault {
  return { path: '', code: 'INVALID_FORMAT', message, ...place, severity: 'ERROR' };
}

function placed(
  { field: path, code, message, severity }: CatalogueFault,
  suffix: string,
  place: Place,
): PlacedFault {
  return { path, code, message: message + suffix, ...place, severity };
}

function ofCondition({ line, column }: Place): string {
  return `, at line ${line}, column ${column} of the condition`;
}

/** A YAML document (JSON is YAML too), with a counter that maps positions to lines. */
type YamlText = { readonly document: Document; readonly lineCounter: LineCounter; readonly text: string };

function placedIn(yaml: YamlText, fault: CatalogueFault): PlacedFault {
  const { field, within } = fault;
  const inCondition = within && placeInCondition(yaml, field, within);
  if (inCondition) {
    return placed(fault, `, at line ${inCondition.line}, column ${inCondition.column}`, inCondition);
  }
  return placed(fault, within ? ofCondition(within) : '', placeOf(yaml, field));
}

/** Returns the place of the value with this path or, if it is missing, of what should contain it. */
function placeOf(yaml: YamlText, path: string): Place {
  const keys = keysOf(path);
  let node: unknown = yaml.document.contents;
  for (const key of keys) {
    const inner: unknown = isCollection(node) ? node.get(key, true) : undefined;
    if (!isNode(inner)) break;
    node = inner;
  }
  return position(yaml, (isNode(node) && node.range?.[0]) || 0);
}

/** Splits a path such as `routes[2].targets`. */
function keysOf(path: string): (string | number)[] {
  const keys = path.match(/[^.[\]]+/g) ?? [];
  return keys.map((key) => (/^\d+$/.test(key) ? Number(key) : key));
}

/**
 * Returns the position in the text of a place within a condition; undefined if YAML folds or escapes the condition, whose
 * text in the file then differs.
 */
function placeInCondition(yaml: YamlText, path: string, { line, column }: Place): Place | undefined {
  const { document, text } = yaml;
  const node = document.getIn(keysOf(path), true);
  if (!isScalar(node) || !node.range || typeof node.value !== 'string') return undefined;
  const wanted = node.value.split('\n')[line - 1] ?? '';
  let from = node.range[0];
  for (let earlier = 1; earlier < line; earlier++) from = text.indexOf('\n', from) + 1;
  const at = text.indexOf(wanted, from);
  if (at < 0 || at + wanted.length > node.range[2]) return undefined;
  return position(yaml, at + column - 1);
}

function position({ lineCounter }: Pick<YamlText, 'lineCounter'>, at: number): Place {
  const { line, col } = lineCounter.linePos(at);
  return { line, column: col };
}
