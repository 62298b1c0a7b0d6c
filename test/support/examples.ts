import { readdirSync, readFileSync, writeFileSync } from 'node:fs';
import { fileURLToPath } from 'node:url';

/** An example call of an rpc and its expected response: a file of test/examples, named for the rpc. */
export type Example = {
  readonly rpc: string;
  readonly summary: string;
  /** Variables in the path and the query string; `{webhook}` stands for the object that `givens` creates. */
  readonly parameters: Readonly<Record<string, string>>;
  /** Name of another required object. */
  readonly given: string;
  readonly body: unknown;
  /** The response body, with the placeholders of `differences`; undefined if there is no body. */
  readonly response: string | undefined;
  /** True if the response is recorded; false while the file has `"response": null`. */
  readonly isRecorded: boolean;
};

const DIRECTORY = fileURLToPath(new URL('../examples/', import.meta.url));

/** Reads every example. */
export function loadExamples(): Example[] {
  return readdirSync(DIRECTORY).map((file) => {
    const text = readFileSync(DIRECTORY + file, 'utf8');
    const { summary, parameters = {}, given = '', body, response } = JSON.parse(text);
    // Numbers are compared as written.
    const written = /^ {2}"response": ([\s\S]*)\n\}\n$/m.exec(text)?.[1];
    return {
      rpc: file.replace('.json', ''),
      summary,
      parameters,
      given,
      body,
      response: response === undefined ? undefined : written,
      isRecorded: response !== null,
    };
  });
}

const RECORDED: readonly (readonly [pattern: RegExp, placeholder: string])[] = [
  [/[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}/g, '<uuid>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z/g, '<timestamp>'],
  [/\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{3}Z/g, '<provider timestamp>'],
  [/127\.0\.0\.1:\d+/g, '<host>'],
  [/whsec_[A-Za-z0-9+/=]+/g, '<secret>'],
  [/(?<="(?:authorization_code|auth_code)":")[0-9A-Z]{6}(?=")/g, '<6 letters or digits>'],
  [/(?<="(?:retrieval_reference_number|rrn)":")\d{12}(?=")/g, '<12 digits>'],
];
/** The sandbox's fixed ids. */
const KNOWN = /11111111-1111-4111-8111-111111111111|c0000000-|5e550000-|70ce0000-/;

/** Writes an example with its actual response, for review and commit: `RECORD=1 vitest run …`. */
export function record({ rpc, summary, parameters, given, body }: Example, text: string): void {
  let response = text;
  for (const [pattern, placeholder] of RECORDED)
    response = response.replaceAll(pattern, (one) => (KNOWN.test(one) ? one : placeholder));
  const rest = JSON.stringify({ summary, ...(given && { given }), parameters, body }, null, 2).slice(0, -2);
  const told = response === '' ? '' : `,\n  "response": ${indented(response)}`;
  writeFileSync(`${DIRECTORY}${rpc}.json`, `${rest}${told}\n}\n`);
}

/** Returns a JSON text over several lines, with unchanged numbers. */
function indented(text: string): string {
  const numbers: string[] = [];
  const kept = text.replaceAll(
    /(?<=[:[,])-?\d+(?:\.\d+)?(?=[,\]}])/g,
    (number) => `"#${numbers.push(number) - 1}#"`,
  );
  const lines = JSON.stringify(JSON.parse(kept), null, 2).replaceAll('\n', '\n  ');
  return lines.replaceAll(/"#(\d+)#"/g, (_, i) => numbers[Number(i)] ?? '');
}
