/** A JSON value whose numbers are kept as they are written, since 3000.00 and 3000 are the same to JSON.parse. */
type ExactJson = null | boolean | string | WrittenNumber | ExactJson[] | { [name: string]: ExactJson };

/** The form of what a placeholder such as "<uuid>" stands for in an expected text: a closed set. */
const PLACEHOLDERS: Readonly<Record<string, string>> = {
  '<uuid>': '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  // ISO 8601 in UTC, with exactly six fractional digits.
  '<timestamp>': '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{6}Z',
  // The same as the sandbox provider writes it, with three.
  '<provider timestamp>': '\\d{4}-\\d{2}-\\d{2}T\\d{2}:\\d{2}:\\d{2}\\.\\d{3}Z',
  '<host>': '[a-z0-9.-]+(?::\\d+)?',
  // ISO 8583 fields 38 (authorization code) and 37 (retrieval reference number).
  '<6 letters or digits>': '[0-9A-Z]{6}',
  '<12 digits>': '\\d{12}',
  // The secret of a webhook, as Standard Webhooks writes it.
  '<secret>': 'whsec_[A-Za-z0-9+/]+=*',
};

/** Stands for a number that another process may have counted up meanwhile. */
const ANY_NUMBER = '<number>';

/**
 * Compares a record with what is expected of it. Both are JSON texts; numbers are compared as written, so that 1 and 1.0
 * differ, the order of an object's fields does not matter, and placeholders ("reference-<uuid>") match by form.
 *
 * @returns one line a difference, each beginning with the path: `amount.value: expected 10.00, got 10`; empty when they match.
 * @throws Error when either text is no JSON, or `expected` holds a placeholder that is not in the closed set.
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

/** The texts that an expected text with placeholders stands for. */
function form(expected: string): RegExp {
  const parts = expected.split(/(<[^>]*>)/).map((part) => {
    if (!part.startsWith('<')) return RegExp.escape(part);
    const known = PLACEHOLDERS[part];
    if (known !== undefined) return known;
    throw new Error(`${part} is no placeholder: ${Object.keys(PLACEHOLDERS).join(' ')}`);
  });
  return new RegExp(`^${parts.join('')}$`);
}

/** A number of a JSON text, as written there. */
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
