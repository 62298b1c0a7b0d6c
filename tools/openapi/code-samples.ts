import type { Json } from './field-rules.ts';

/** A call to show as code. */
export type SampleCall = {
  /** Name of the TypeScript client's method. */
  readonly operationId: string;
  readonly verb: string;
  /** Path with the names of its variables, such as /v1/payments/{id}. */
  readonly path: string;
  /** Sample values of the path's variables. */
  readonly variables: Readonly<Record<string, string>>;
  readonly query: Readonly<Record<string, string>>;
  readonly body: unknown;
  /** true if the call is refused without an idempotency key. */
  readonly needsKey: boolean;
  readonly isForOperators: boolean;
};

const ADDRESS = 'http://127.0.0.1:8080';
const KEY = 'order-1001';

/** Writes a call in Python and with the TypeScript client, as the extension `x-codeSamples` that viewers show. */
export function codeSamples(call: SampleCall): readonly Json[] {
  return [
    { lang: 'TypeScript', label: 'TypeScript client', source: typescriptSample(call) },
    { lang: 'Python', label: 'Python', source: pythonSample(call) },
  ];
}

function typescriptSample(call: SampleCall): string {
  const keys = call.isForOperators
    ? ["operatorKey: 'op_sandbox'"]
    : ["publicApiKey: 'pk_sandbox_one'", "privateSecretKey: 'sk_sandbox_one'"];
  const request = { ...call.variables, ...call.query, ...(call.body as object | undefined) };
  const options = call.needsKey ? `, { idempotencyKey: ${typescript(KEY)} }` : '';
  return `import { createPaymentsClient } from 'payments-client';

const client = createPaymentsClient({
${[`baseUrl: '${ADDRESS}'`, ...keys].map((line) => `  ${line},\n`).join('')}});
${commentOnKey(call, '//')}const response = await client.${call.operationId}(${typescript(request)}${options});
console.log(response);
`;
}

function pythonSample(call: SampleCall): string {
  const path = call.path.replaceAll(/\{([^}]+)\}/g, (_, name) => call.variables[name] ?? '');
  const headers = call.isForOperators
    ? { 'operator-key': 'op_sandbox' }
    : { 'public-api-key': 'pk_sandbox_one', 'private-secret-key': 'sk_sandbox_one' };
  const key = call.needsKey && { 'x-idempotency-key': KEY };
  const args = [
    python(`${ADDRESS}${path}`),
    `headers=${python({ ...headers, ...key }, '    ')}`,
    ...(Object.keys(call.query).length > 0 ? [`params=${python(call.query, '    ')}`] : []),
    ...(call.body === undefined ? [] : [`json=${python(call.body, '    ')}`]),
    'timeout=30',
  ];
  return `import requests

${commentOnKey(call, '#')}response = requests.${call.verb.toLowerCase()}(
${args.map((argument) => `    ${argument},\n`).join('')})
if not response.ok:
    raise SystemExit(response.json()["detail"])
print(response.text)
`;
}

function commentOnKey({ needsKey }: SampleCall, mark: string): string {
  if (!needsKey) return '';
  return `${mark} A key for each order: a repeat with the same key gets the first response, and charges nothing again.\n`;
}

const IDENTIFIER = /^[A-Za-z_$][\w$]*$/;

/** Writes a JSON value as TypeScript. */
function typescript(value: unknown, indent = ''): string {
  if (typeof value === 'string')
    return `'${JSON.stringify(value).slice(1, -1).replaceAll('\\"', '"').replaceAll("'", "\\'")}'`;
  return literal(value, indent, {
    step: '  ',
    name: (name) => (IDENTIFIER.test(name) ? name : typescript(name)),
    value: typescript,
    atom: (atom) => JSON.stringify(atom),
  });
}

const PYTHON_ATOMS = new Map<unknown, string>([
  [true, 'True'],
  [false, 'False'],
  [null, 'None'],
]);

/** Writes a JSON value as Python. JSON strings and numbers are valid Python. */
function python(value: unknown, indent = ''): string {
  return literal(value, indent, {
    step: '    ',
    name: (name) => JSON.stringify(name),
    value: python,
    atom: (atom) => PYTHON_ATOMS.get(atom) ?? JSON.stringify(atom),
  });
}

type Language = {
  /** Indentation of a level. */
  readonly step: string;
  readonly name: (name: string) => string;
  readonly value: (value: unknown, indent: string) => string;
  readonly atom: (value: unknown) => string;
};

function literal(value: unknown, indent: string, language: Language): string {
  if (typeof value !== 'object' || value === null) return language.atom(value);
  const deeper = indent + language.step;
  const [open, close] = Array.isArray(value) ? '[]' : '{}';
  const lines = Array.isArray(value)
    ? value.map((item) => language.value(item, deeper))
    : Object.entries(value).map(
        ([name, member]) => `${language.name(name)}: ${language.value(member, deeper)}`,
      );
  if (lines.length === 0) return `${open}${close}`;
  return `${open}\n${lines.map((line) => `${deeper}${line},\n`).join('')}${indent}${close}`;
}
