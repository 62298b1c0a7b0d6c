import { readFileSync } from 'node:fs';
import { Ajv2020, type ValidateFunction } from 'ajv/dist/2020.js';
import addFormats from 'ajv-formats';

const DOCUMENT_FILE = new URL('../../gen/openapi.json', import.meta.url);

// biome-ignore lint/suspicious/noExplicitAny: an OpenAPI document, walked by name.
type Json = any;

/** An operation in the document, with its position. */
export type Operation = {
  readonly verb: string;
  readonly path: string;
  readonly id: string;
  /** The rpc's name, such as CreatePayment. */
  readonly rpc: string;
  readonly pointer: string;
  readonly json: Json;
};

/** A response as a client sees it. */
export type Seen = { readonly status: number; readonly headers: Headers; readonly text: string };

/** The OpenAPI document as a validator of requests and responses. */
export type Contract = {
  readonly operations: readonly Operation[];
  /** Returns the operation for the method and path of a call. */
  find(verb: string, url: string): Operation;
  /** Finds faults in a request body; empty if it is valid. */
  requestFaults(operation: Operation, body: unknown): string[];
  /** Finds faults in a response: an undocumented status, or headers or a body that differ from the documentation. */
  responseFaults(operation: Operation, seen: Seen): string[];
  /** Finds faults in a value according to a schema in the document's components. */
  schemaFaults(name: string, value: unknown): string[];
};

/** Reads gen/openapi.json. */
export function readContract(): Contract {
  const document: Json = JSON.parse(readFileSync(DOCUMENT_FILE, 'utf8'));
  const ajv = new Ajv2020({ strict: false, allErrors: true });
  addFormats.default(ajv);
  // Number formats, which `type` and the rules already express.
  ajv.addFormat('int32', true);
  ajv.addSchema(document, 'openapi');
  const compiled = new Map<string, ValidateFunction>();
  const faults = (pointer: string, value: unknown): string[] => {
    const validate = compiled.get(pointer) ?? ajv.compile({ $ref: `openapi#${pointer}` });
    compiled.set(pointer, validate);
    if (validate(value)) return [];
    return (validate.errors ?? []).map(({ instancePath, message }) => `${instancePath || '/'} ${message}`);
  };
  const resolve = (node: Json, pointer: string): { node: Json; pointer: string } => {
    if (node?.$ref === undefined) return { node, pointer };
    const target: string = node.$ref.slice(1);
    return {
      node: target
        .slice(1)
        .split('/')
        .reduce((within, name) => within[name], document),
      pointer: target,
    };
  };

  const operations = Object.entries<Json>(document.paths).flatMap(([path, item]) =>
    Object.entries<Json>(item).map(([verb, json]) => ({
      verb: verb.toUpperCase(),
      path,
      id: json.operationId as string,
      rpc: json['x-rpc'].split('/')[1] as string,
      pointer: `/paths/${pointerSegment(path)}/${verb}`,
      json,
    })),
  );

  return {
    operations,
    find(verb, url) {
      const [path = ''] = url.split('?');
      const fits = operations.filter((one) => one.verb === verb && patternOf(one.path).test(path));
      const [best] = fits.sort((one, other) => variables(one.path) - variables(other.path));
      if (!best) throw new Error(`${verb} ${path} is not in the document`);
      return best;
    },
    requestFaults(operation, body) {
      if (!operation.json.requestBody) return body === undefined ? [] : ['takes no body'];
      if (body === undefined) return operation.json.requestBody.required ? ['a body is required'] : [];
      return faults(`${operation.pointer}/requestBody/content/application~1json/schema`, body);
    },
    responseFaults(operation, { status, headers, text }) {
      const documented = operation.json.responses[status];
      if (!documented) return [`${operation.id}: status ${status} is not documented`];
      const { node, pointer } = resolve(documented, `${operation.pointer}/responses/${status}`);
      const found: string[] = [];
      for (const [name, given] of Object.entries<Json>(node.headers ?? {})) {
        const header = resolve(given, '');
        const value = headers.get(name);
        if (value === null && header.node.required) found.push(`header ${name} is missing`);
        if (value !== null) {
          const read = header.node.schema.type === 'integer' ? Number(value) : value;
          found.push(...faults(`${header.pointer}/schema`, read).map((fault) => `header ${name}: ${fault}`));
        }
      }
      if (!node.content) return text === '' ? found : [...found, 'has a body'];
      const [type = ''] = Object.keys(node.content);
      if (headers.get('content-type') !== type) found.push(`is ${headers.get('content-type')}, not ${type}`);
      return [...found, ...faults(`${pointer}/content/${pointerSegment(type)}/schema`, JSON.parse(text))];
    },
    schemaFaults: (name, value) => faults(`/components/schemas/${name}`, value),
  };
}

function pointerSegment(text: string): string {
  return text.replaceAll('~', '~0').replaceAll('/', '~1').replaceAll('{', '%7B').replaceAll('}', '%7D');
}

function patternOf(path: string): RegExp {
  return new RegExp(`^${path.replaceAll(/\{[^}]+\}/g, '[^/]+')}$`);
}

function variables(path: string): number {
  return path.split('{').length;
}
