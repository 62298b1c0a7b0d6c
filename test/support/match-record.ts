/** A JSON value that keeps numbers as written, since JSON.parse does not distinguish 3000.00 from 3000. */
type ExactJson = null | boolean | string | WrittenNumber | ExactJson[] | { [name: string]: ExactJson };

/** The form that each placeholder in an expected string, such as "<uuid>", stands for: a closed set. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  '<uuid>': '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  // ISO 8601 in UTC, with exactly six fractional digits.
  '<timestamp>': '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z',
  // The sandbox provider's form, with three.
  '<provider timestamp>': '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z',
  '<host>': '[a-z0-9.-]+(?::\\d+)?',
  // ISO 8583 fields 38 (authorization code) and 37 (retrieval reference number).
  '<6 letters or digits>': '[0-9A-Z]{6}',
  '<12 digits>': '\\d{12}',
  // A SHA-256.
  '<64 hexadecimal digits>': '[0-9a-f]{64}',
  // The sandbox's id of a transaction at a card scheme.
  '<12 letters or digits>': '[0-9A-Z]{12}',
  // References, accounts and barcodes of local methods.
  ...Object.fromEntries([7, 10, 14, 18, 44, 47].map((count) => [`<${count} digits>`, `\\d{${count}}`])),
  '<pix code>': '000201[0-9A-Za-z.*/ -]+6304[0-9A-F]{4}',
  // A webhook secret, as Standard Webhooks writes it.
  '<secret>': 'whsec_[A-Za-z0-9+/]+=*',
};

/** Stands for a number that another process may have incremented in the meantime. */
const ANY_NUMBER = '<number>';

/**
 * Compares a record with the expected one. Both are JSON texts; numbers are compared as written, so that 1 and 1.0
 * differ, the order of an object's fields does not matter, and placeholders ("reference-<uuid>") match by form.
 *
 * @returns one line per difference, starting with the path: `amount.value: expected 10.00, got 10`; empty if they
 *   match.
 * @throws Error if either text is not JSON, or if `expected` contains an unknown placeholder.
 */
export function differences(expected: string, actual: string): string[] {
  return compare(parseExactly(expected), parseExactly(actual), '');
}

function compare(expected: ExactJson, actual: ExactJson, path: string): string[] {
  if (expected === ANY_NUMBER && actual instanceof WrittenNumber) return [];
  if (typeof expected === 'string' && typeof actual === 'string' && expected.includes('<')) {
    return form(expected).test(actual) ? [] : [`${path}: expected ${print(expected)}, got ${print(actual)}`];
  }
  if (Array.isArray(expected) && Array.isArray(actual)) return compareLists(expected, actual, path);
  if (isObject(expected) && isObject(actual)) return compareObjects(expected, actual, path);
  return print(expected) === print(actual)
    ? []
    : [`${path}: expected ${print(expected)}, got ${print(actual)}`];
}

function compareLists(expected: ExactJson[], actual: ExactJson[], path: string): string[] {
  if (expected.length !== actual.length) {
    return [`${path}: expected ${expected.length} elements, got ${actual.length}`];
  }
  return expected.flatMap((element, i) => compare(element, actual[i] as ExactJson, `${path}[${i}]`));
}

function compareObjects(
  expected: Record<string, ExactJson>,
  actual: Record<string, ExactJson>,
  path: string,
): string[] {
  const names = new Set([...Object.keys(expected), ...Object.keys(actual)]);
  return [...names].flatMap((name) => {
    const at = path === '' ? name : `${path}.${name}`;
    const wanted = expected[name];
    const given = actual[name];
    if (given === undefined) return [`${at}: missing`];
    if (wanted === undefined) return [`${at}: not expected, got ${print(given)}`];
    return compare(wanted, given, at);
  });
}

/** A pattern for the strings that match an expected string with placeholders. */
function form(expected: string): RegExp {
  const parts = expected.split(/(<[^>]*>)/).map((part) => {
    if (!part.startsWith('<')) return RegExp.escape(part);
    const known = PLACEHOLDERS[part];
    if (known !== undefined) return known;
    throw new Error(`${part} is not a placeholder: ${Object.keys(PLACEHOLDERS).join(' ')}`);
  });
  return new RegExp(`^${parts.join('')}$`);
}

/** A number in a JSON text, exactly as written. */
class WrittenNumber {
  readonly text: string;

  constructor(text: string) {
    this.text = text;
  }
}

function parseExactly(text: string): ExactJson {
  // TypeScript does not know the reviver's third parameter yet (ECMAScript's JSON.parse source text access).
  return JSON.parse(text, (_name, value: unknown, context?: { source: string }) =>
    typeof value === 'number' && context ? new WrittenNumber(context.source) : value,
  );
}

function print(value: ExactJson): string {
  if (value instanceof WrittenNumber) return value.text;
  if (Array.isArray(value)) return `a list of ${value.length}`;
  if (isObject(value)) return `an object with ${Object.keys(value).join(', ') || 'no fields'}`;
  return JSON.stringify(value);
}

function isObject(value: ExactJson): value is Record<string, ExactJson> {
  return (
    typeof value === 'object' && value !== null && !Array.isArray(value) && !(value instanceof WrittenNumber)
  );
}
