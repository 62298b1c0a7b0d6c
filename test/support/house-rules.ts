import { posix } from 'node:path';
import { DOORS } from './rooms.ts';

/** Source text, keyed by the path relative to the checkout's root, such as src/api/rest.ts. */
export type Sources = ReadonlyMap<string, string>;

/**
 * Checks sources against the house rules.
 *
 * @returns one line per violation, such as `src/api/rest.ts: has 505 lines: split it by idea, at most 500 a file`, sorted; empty if there are
 *   none.
 */
export function breaches(sources: Sources): string[] {
  const found: string[] = [...cycles(sources)];
  for (const [path, text] of sources) {
    const rules = OURS.some((folder) => path.startsWith(folder))
      ? [size, fileName, order, doors, places, purity, documentation, openings, refusals, words]
      : [size, fileName, openings];
    const code = withoutComments(text);
    for (const rule of rules) {
      for (const breach of rule(path, text, code)) found.push(`${path}: ${breach}`);
    }
  }
  return found.sort();
}

/** The folders to which all rules apply: the service, its simulated provider, its tools and examples. */
const OURS = ['src/', 'sandbox/', 'tools/', 'examples/'];

type Rule = (path: string, text: string, code: string) => string[];

/**
 * The order of imports: a part may import from a line above and from itself. Parts on the same line never import each
 * other. A part is a file, or a folder with all its contents.
 */
const LAYERS: readonly (readonly string[])[] = [
  ['gen', 'src/machine', 'src/variables'],
  [
    'src/money',
    'src/luhn',
    'src/card-number',
    'src/secret',
    'src/clock',
    'src/new-id',
    'src/keyed-hash',
    'src/public-address',
    'src/repeat',
    'src/token-buckets',
    'src/slots',
    'src/rename-durably',
    'src/service-error',
    'src/config',
  ],
  ['src/wire'],
  ['src/connectors/port'],
  ['src/payments/model'],
  [
    'src/connectors',
    'src/store',
    'src/postgres',
    'src/vault',
    'src/routing',
    'src/listener',
    'sandbox',
    'src/web',
  ],
  ['src/payments'],
  ['src/webhooks', 'src/customers', 'src/catalogue', 'src/exports', 'src/settlement'],
  ['src/api'],
  ['src/observe', 'src/dashboard', 'src/workers'],
  ['src/server'],
  ['src/commands'],
  ['tools', 'examples'],
  ['src/main'],
];

const order: Rule = (path, _text, code) => {
  const own = placeOf(path);
  if (!own) return ['has no place in the order of imports: give it one in test/support/house-rules.ts'];
  return imports(path, code).flatMap((target) => {
    const other = placeOf(target);
    const provider = providerOf(target);
    if (provider && providerOf(path) && provider !== providerOf(path)) {
      return [`imports ${target} of another provider: move what both need to src/connectors/kit`];
    }
    const few = FEW_IMPORTS[own.part];
    if (few && ![own.part, ...few].includes(other?.part ?? ''))
      return [`imports ${target}: ${own.part} may import only ${few.join(', ')}`];
    if (other && (other.layer < own.layer || other.part === own.part)) return [];
    return [`imports ${target}, which is not below it: see LAYERS in test/support/house-rules.ts`];
  });
};

const doors: Rule = (path, _text, code) =>
  imports(path, code).flatMap((target) => {
    const room = posix.dirname(target);
    const own = DOORS[room];
    if (!own || posix.dirname(path) === room || own.includes(posix.basename(target, '.ts'))) return [];
    return [
      `imports ${target}, which is private to its folder: import one of DOORS in test/support/rooms.ts`,
    ];
  });

/** The parts that may import less than everything below them. */
const FEW_IMPORTS: Readonly<Record<string, readonly string[]>> = {
  // The simulated provider stands for another company: it shares nothing with us except the format of money.
  sandbox: ['src/money'],
  // Decisions depend only on facts: messages, money, and the port's view of a provider.
  'src/payments/model': ['gen', 'src/money', 'src/service-error', 'src/connectors/port'],
};

function placeOf(path: string): { layer: number; part: string } | undefined {
  const stem = path.replace(/\.[jt]s$/, '');
  for (const [layer, parts] of LAYERS.entries()) {
    const part = parts.find((name) => stem === name || stem.startsWith(`${name}/`));
    if (part) return { layer, part };
  }
  return undefined;
}

function providerOf(path: string): string | undefined {
  return /^src\/connectors\/(?!port\/|kit\/|guards\/)([^/]+)\//.exec(path)?.[1];
}

/** Code that is allowed only in some places. A place is a file, or a folder that ends with a slash. */
const PLACES: readonly { what: string; pattern: RegExp; places: readonly string[] }[] = [
  { what: 'process.env', pattern: /\bprocess\.env\b/, places: ['src/config.ts', 'tools/check-proto.ts'] },
  {
    what: 'outbound HTTP',
    pattern: /from 'undici'|\bfetch\(|\b(https?|net|tls)\.(request|get|connect)\(|\bhttp2\.connect\(/,
    places: [
      'src/connectors/kit/http-client.ts',
      'src/connectors/kit/proxy-tunnel.ts',
      'sandbox/notifications.ts',
      'src/webhooks/webhook-client.ts',
      'src/commands/webhook-listen.ts',
      'examples/demo-shop/main.ts',
      'examples/demo-shop/demo-shop.ts',
    ],
  },
  {
    what: 'an HTTP server of Node',
    pattern: /^import (?!type).*'node:(http|https|http2)'/m,
    places: ['src/listener/listener.ts', 'src/connectors/kit/proxy-tunnel.ts'],
  },
  {
    what: 'OpenTelemetry',
    pattern: /^import (?!type)[^;]*from '@opentelemetry\//m,
    places: ['src/observe/otlp-tracing.ts'],
  },
  {
    what: 'SQL',
    pattern:
      /\bSELECT\s[\s\S]*?\sFROM\b|\bINSERT INTO\b|\bUPDATE \w+ SET\b|\bDELETE FROM\b|\b(CREATE|ALTER|DROP) (TABLE|SCHEMA)\b|from 'pg'/,
    places: ['src/store/', 'sandbox/ledger.ts'],
  },
  {
    what: 'reveal(',
    pattern: /\.reveal\(/,
    places: ['src/vault/', 'src/connectors/', 'src/webhooks/signing-secret.ts'],
  },
  {
    // Ages and deadlines of transactions come from the database, whose clock all replicas share.
    what: 'Date.now(',
    pattern: /\bDate\.now\(/,
    places: [
      'src/clock.ts',
      'src/store/engine/database-clock.ts',
      'src/connectors/mercado-pago/later-news.ts',
      'src/connectors/mercado-pago/look-up.ts',
      'src/commands/',
      'src/dashboard/',
      'src/observe/',
      'src/postgres/',
      'sandbox/',
      'tools/',
    ],
  },
  {
    what: 'console',
    pattern: /\bconsole\.\w/,
    places: ['src/main.ts', 'src/commands/', 'sandbox/main.ts', 'tools/', 'examples/'],
  },
  {
    what: 'the end of the process',
    pattern: /\bprocess\.(exit\(|exitCode)/,
    places: ['src/main.ts', 'src/commands/', 'sandbox/main.ts', 'tools/', 'examples/'],
  },
  { what: 'a barrel (export … from)', pattern: /^export (\*|\{[^}]*\}|type \{[^}]*\}) from/m, places: [] },
];

const places: Rule = (path, _text, code) =>
  PLACES.filter(
    ({ places }) => !places.some((place) => (place.endsWith('/') ? path.startsWith(place) : path === place)),
  )
    .filter(({ pattern }) => pattern.test(code))
    .map(({ what, places }) => `has ${what}, which belongs in ${places.join(', ') || 'no file'}`);

const IMPURE =
  /\bMath\.random\(|\bnew Date\(\)|\bDate\.now\(|\btimestampNow\(|\bawait\b|\brandomUUID|'node:|\bprocess\./;

/** The model depends only on its arguments: it waits for nothing, and reads neither a clock nor random numbers. */
const purity: Rule = (path, _text, code) =>
  path.startsWith('src/payments/model/') && IMPURE.test(code)
    ? ['waits, or reads a clock or a random number: pass the value to the model as an argument']
    : [];

const MAX_LINES = 500;

const size: Rule = (_path, text) => {
  const lines = text.trimEnd().split('\n').length;
  return lines > MAX_LINES ? [`has ${lines} lines: split it by idea, at most ${MAX_LINES} a file`] : [];
};

const EMPTY_NAMES = /(^|\/|-)(util|utils|helper|helpers|common|types|misc|manager)(\/|-|\.|$)/;

const fileName: Rule = (path) => {
  const named: string[] = [];
  if (EMPTY_NAMES.test(path)) named.push('has a name that says nothing: name it for its main export');
  if (path !== path.toLowerCase()) named.push('is not in kebab-case');
  return named;
};

const EXPORT =
  /^export (?:declare |abstract |async )*(?:function\*?|const|let|class|type|interface|enum) (\w+)/;

const documentation: Rule = (_path, text) => {
  const lines = text.split('\n');
  return lines.flatMap((line, i) => {
    const name = EXPORT.exec(line)?.[1];
    return name && !lines[i - 1]?.endsWith('*/') ? [`exports ${name} without a JSDoc comment`] : [];
  });
};

/** A doc comment that opens like a question instead of stating what the symbol is or does. */
const QUESTION = /\/\*\*\s+(?:\* )?((?:What|How|Whether|Where|Who|Why|Which|Is) \S+)/g;

const openings: Rule = (_path, text) =>
  [...text.matchAll(QUESTION)].map(
    ([, opening]) => `a doc comment opens with the question "${opening}": state what the symbol is or does`,
  );

/** The message of a refusal that starts with a capital or ends with a full stop. */
const SENTENCE =
  /(?:new ServiceError\(\s*'[A-Z_]+',|\bmessage =)\s*(?:(['"`])[A-Z][a-z][^\n]*|(['"`])[^\n]*[^.]\.\2[;,)])/g;

const refusals: Rule = (_path, _text, code) =>
  [...code.matchAll(SENTENCE)].map(
    ([found]) =>
      `a message starts with a capital or ends with a full stop: write it in lower case without one: ${found}`,
  );

/** Words for which this code has another (provider, lease, a key's holder), or that mean nothing. */
const UNUSED_WORDS = /\b(gateways?|psps?(?! Reference)|managers?|helpers?)\b/gi;
const UNUSED_NAMES = /^(held|lots?|place|taken)$|^(Held|Taken)(?=[A-Z])/;
const DECLARED = /\b(?:const|let|function\*?|type|class) (\w+)/g;

const words: Rule = (_path, text, code) => [
  ...[...text.matchAll(UNUSED_WORDS)].map(
    ([word]) => `says ${word}: use the field's word (provider, caller) or name what it does`,
  ),
  ...[...code.matchAll(DECLARED)]
    .filter(([, name = '']) => UNUSED_NAMES.test(name))
    .map(([, name]) => `declares ${name}: name what it is, such as leased, count or claimed`),
];

function cycles(sources: Sources): string[] {
  const found: string[] = [];
  const done = new Set<string>();
  const visit = (path: string, way: readonly string[]): void => {
    const since = way.indexOf(path);
    if (since >= 0) found.push([...way.slice(since), path].join(' → '));
    const text = sources.get(path);
    if (since >= 0 || done.has(path) || text === undefined) return;
    for (const target of imports(path, withoutComments(text))) visit(target, [...way, path]);
    done.add(path);
  };
  for (const path of sources.keys()) visit(path, []);
  return found;
}

const IMPORT = /(?:\bfrom|\bimport)\s*\(?\s*'([.#][^']+)'/g;

/** Returns our files that a file imports, by relative path or subpath import (`#src/…`), including imports of types. */
function imports(path: string, code: string): string[] {
  return [...code.matchAll(IMPORT)].map(([, target = '']) =>
    target.startsWith('#') ? target.slice(1) : posix.join(posix.dirname(path), target),
  );
}

function withoutComments(text: string): string {
  return text.replace(/(^|\s)\/\*[\s\S]*?\*\//g, '$1').replace(/(^|\s)\/\/.*$/gm, '$1');
}
