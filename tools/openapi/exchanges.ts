import { readdirSync, readFileSync } from 'node:fs';
import { basename, join } from 'node:path';

/**
 * An example call of an rpc with its response: a file of test/examples, named `<rpc>.json` or `<rpc>.<name>.json`. The
 * response contains placeholders such as "<uuid>".
 */
export type Exchange = {
  readonly rpc: string;
  /** "" for an rpc's first example. */
  readonly name: string;
  readonly summary: string;
  /** Variables in the path and the query string. `{webhook}` is replaced by the id of a resource. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Name of another required object. */
  readonly given: string;
  readonly body: unknown;
  /** The file without `.json` whose response this one repeats, apart from the members at the paths in the file. */
  readonly like: string;
  /** The response, with numbers as the service writes them; undefined if there is no body, null if none is recorded. */
  readonly response: unknown;
};

/** Reads every example, an rpc's first one before its others. */
export function readExchanges(directory: string): Exchange[] {
  const names = readdirSync(directory).map((file) => basename(file, '.json'));
  return names.sort().map((file) => {
    const [rpc = '', name = ''] = file.split('.');
    const { summary, parameters = {}, given = '', like = '', body } = readFile(directory, file);
    const asked = body === undefined ? undefined : JSON.parse(JSON.stringify(body));
    return {
      rpc,
      name,
      summary,
      parameters,
      given,
      like,
      body: asked,
      response: responseOf(directory, file),
    };
  });
}

/** Reads the response in a file of test/examples. */
export function responseOf(directory: string, file: string): unknown {
  const { like, response } = readFile(directory, file);
  if (like === undefined || response === null) return response;
  const whole = responseOf(directory, like);
  for (const [path, value] of Object.entries(response)) setMember(whole, path.split('.'), value);
  return whole;
}

/** Returns the members in which a JSON value differs from another, by path; a member that only one has belongs to its parent. */
export function changesOf(base: unknown, value: unknown, path = ''): Record<string, unknown> {
  if (!haveSameMembers(base, value)) {
    return JSON.stringify(base) === JSON.stringify(value) ? {} : { [path]: value };
  }
  const names = Object.keys(value);
  return Object.assign(
    {},
    ...names.map((name) => changesOf((base as Members)[name], value[name], path ? `${path}.${name}` : name)),
  );
}

/** Parses JSON whose numbers JSON.stringify writes again as they were: 60.00 stays 60.00. */
export function parseAsWritten(text: string): unknown {
  return JSON.parse(text, keepNumber as Parameters<typeof JSON.parse>[1]);
}

/** A member's value with its text. TypeScript does not know `JSON.rawJSON` yet. */
const keepNumber = (_name: string, value: unknown, { source }: { readonly source: string }): unknown =>
  typeof value === 'number' ? (JSON as unknown as { rawJSON(text: string): unknown }).rawJSON(source) : value;

// biome-ignore lint/suspicious/noExplicitAny: the files have any content.
function readFile(directory: string, file: string): any {
  return parseAsWritten(readFileSync(join(directory, `${file}.json`), 'utf8'));
}

type Members = Record<string, unknown>;

function haveSameMembers(base: unknown, value: unknown): value is Members {
  const isParent = (one: unknown): one is Members =>
    typeof one === 'object' &&
    one !== null &&
    !(JSON as unknown as { isRawJSON(v: unknown): boolean }).isRawJSON(one);
  if (!isParent(base) || !isParent(value) || Array.isArray(base) !== Array.isArray(value)) return false;
  return `${Object.keys(base).sort()}` === `${Object.keys(value).sort()}`;
}

function setMember(whole: unknown, path: readonly string[], value: unknown): void {
  const [name = '', ...rest] = path;
  const parent = whole as Members;
  if (rest.length === 0) parent[name] = value;
  else setMember(parent[name], rest, value);
}
