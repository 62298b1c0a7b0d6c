import { createHash } from 'node:crypto';
import { readdirSync, readFileSync } from 'node:fs';
import { join } from 'node:path';
import type { DescMethod } from '@bufbuild/protobuf';
import { wordsOf } from './descriptors.ts';
import { type Exchange, readExchanges } from './exchanges.ts';
import type { Json } from './field-rules.ts';

/** Examples of calls: the tests' requests and expected responses. */
export type Examples = {
  /** References to an rpc's example requests, by name; empty if there are none. */
  requests(method: DescMethod): Json;
  responses(method: DescMethod): Json;
  /** An rpc's first request: sample values for the path and query variables, and the body, if any. */
  first(method: DescMethod): {
    readonly parameters: Readonly<Record<string, string>>;
    readonly body: unknown;
  };
  /** All referenced examples, by name. */
  readonly components: Readonly<Record<string, Json>>;
};

/** The parts of an exchange that the document shows. */
type Shown = Pick<Exchange, 'summary' | 'body' | 'response'> & Partial<Pick<Exchange, 'parameters'>>;

/**
 * Reads the exchanges that the tests check: test/scenarios for creating payments, test/examples for every other rpc.
 *
 * @param directory the checkout's test/.
 */
export function readExamples(directory: string): Examples {
  const exchanges = new Map<string, Record<string, Shown>>([
    ['CreatePayment', readScenarios(join(directory, 'scenarios'))],
  ]);
  for (const { rpc, name, ...exchange } of readExchanges(join(directory, 'examples'))) {
    const shown = JSON.parse(JSON.stringify(exchange)) as Shown;
    exchanges.set(rpc, { ...exchanges.get(rpc), [name]: shown });
  }
  const components: Record<string, Json> = {};
  const refer = ({ name: rpc }: DescMethod, part: 'body' | 'response') =>
    Object.fromEntries(
      Object.entries(exchanges.get(rpc) ?? {})
        .filter(([, exchange]) => (exchange[part] ?? undefined) !== undefined)
        .map(([name, exchange]) => {
          const component = [rpc, name, part === 'body' ? 'request' : 'response'].filter(Boolean).join('.');
          const value = fill(exchange[part], `${rpc} ${name}`);
          components[component] = { summary: exchange.summary, value };
          return [name || 'example', { $ref: `#/components/examples/${component}` }];
        }),
    );
  return {
    requests: (method) => refer(method, 'body'),
    responses: (method) => refer(method, 'response'),
    first({ name: rpc }) {
      const { parameters = {}, body } = Object.values(exchanges.get(rpc) ?? {})[0] ?? {};
      const values = Object.entries(parameters).map(([name, text]) => [
        name,
        text.replace(/^\{.+\}$/, uuid(`${rpc} ${name}`)),
      ]);
      return { parameters: Object.fromEntries(values), body };
    },
    components,
  };
}

function readScenarios(directory: string): Record<string, Shown> {
  const scenarios = readdirSync(directory).sort();
  return Object.fromEntries(
    scenarios.map((name) => {
      const title = name.replace(/^\d+-/, '');
      const read = (file: string) => JSON.parse(readFileSync(join(directory, name, file), 'utf8'));
      const summary = wordsOf(title.replaceAll('-', ' '));
      return [title, { summary, body: read('request.json'), response: read('response.json') }];
    }),
  );
}

const FILLINGS: Readonly<Record<string, string>> = {
  '<timestamp>': '2026-01-31T09:08:07.123456Z',
  '<provider timestamp>': '2026-01-31T09:08:07.123Z',
  '<host>': '127.0.0.1:8080',
  '<6 letters or digits>': 'XCYJYO',
  '<12 digits>': '603109080712',
  '<secret>': 'whsec_MfKQ9r8GKYqrTwjUPD8ILPZIo2LaLaSw',
};

/** Replaces placeholders with constant sample values, so that the generated document does not change. */
function fill(value: unknown, place: string): unknown {
  if (value === '<number>') return 1;
  if (typeof value === 'string') {
    return value.replaceAll(/<[^>]*>/g, (one) => (one === '<uuid>' ? uuid(place) : (FILLINGS[one] ?? one)));
  }
  if (Array.isArray(value)) return value.map((item, i) => fill(item, `${place}.${i}`));
  if (typeof value !== 'object' || value === null) return value;
  return Object.fromEntries(
    Object.entries(value).map(([name, member]) => [name, fill(member, `${place}.${name}`)]),
  );
}

/** Derives an id from a path, the same for each path of a transaction. */
function uuid(place: string): string {
  const digits = createHash('sha256')
    .update(place.replace('.transactions_history.0', '.transactions'))
    .digest('hex');
  return `019af0c5-${digits.slice(0, 4)}-7${digits.slice(4, 7)}-8${digits.slice(7, 10)}-${digits.slice(10, 22)}`;
}
