import { type DescField, type DescMessage, type DescMethod, getOption, hasOption } from '@bufbuild/protobuf';
import { http } from '#gen/google/api/annotations_pb.js';
import type { HttpRule } from '#gen/google/api/http_pb.js';

/** A way to call an rpc by HTTP. */
export type HttpBinding = {
  readonly verb: 'GET' | 'PUT' | 'POST' | 'DELETE' | 'PATCH';
  /** The path in Fastify's syntax. The variables are named p0, p1 and so on, so that equal paths are equal strings. */
  readonly url: string;
  /** The request field that each path variable sets. */
  readonly variables: readonly FieldPath[];
  /** The request's body: '*' for the whole message, the name of one of its fields, or '' for no body. */
  readonly body: string;
  /** Response field sent as the body; undefined if the body is the whole response. */
  readonly responseBody: DescField | undefined;
};

/** Path to a field of a message or of a nested message: the fields, from the outermost to the field itself. */
export type FieldPath = readonly DescField[];

/**
 * Returns the HTTP bindings of an rpc (google.api.http); none without an annotation. Each segment of a path template
 * must be a literal or a `{field_path}`.
 *
 * @throws Error for any other annotation, and for an unknown request field.
 */
export function httpBindings(method: DescMethod): HttpBinding[] {
  if (!hasOption(method, http)) return [];
  if (method.methodKind !== 'unary')
    throw new Error(`${method}: google.api.http on a stream is not supported`);
  const rule = getOption(method, http);
  return [rule, ...rule.additionalBindings].map((binding) => readRule(binding, method));
}

const VERBS = { get: 'GET', put: 'PUT', post: 'POST', delete: 'DELETE', patch: 'PATCH' } as const;

function readRule({ pattern, body, responseBody }: HttpRule, method: DescMethod): HttpBinding {
  if (pattern.case === undefined || pattern.case === 'custom') {
    throw new Error(`${method}: this kind of google.api.http rule is not supported`);
  }
  if (body !== '' && body !== '*' && fieldPath(method.input, body)?.length !== 1) {
    throw new Error(`${method}: the request has no field "${body}" to use as the body`);
  }
  const responseField = method.output.fields.find(({ name }) => name === responseBody);
  if (responseBody !== '' && (!responseField || responseField.oneof)) {
    throw new Error(`${method}: the response has no field "${responseBody}" to use as the body`);
  }
  const variables: FieldPath[] = [];
  const segments = pattern.value.split('/').map((segment, i) => {
    if (i === 0 ? segment === '' : /^[\w.~-]+$/.test(segment)) return segment;
    const path = /^\{([\w.]+)\}$/.exec(segment)?.[1];
    if (path === undefined) throw new Error(`${method}: path "${pattern.value}" is not supported`);
    const variable = fieldPath(method.input, path);
    const kind = variable?.at(-1)?.fieldKind;
    if (!variable || (kind !== 'scalar' && kind !== 'enum')) {
      throw new Error(`${method}: the request has no scalar field "${path}" for path "${pattern.value}"`);
    }
    return `:p${variables.push(variable) - 1}`;
  });
  const url = segments.join('/');
  return { verb: VERBS[pattern.case], url, variables, body, responseBody: responseField };
}

/** Finds a field by its dotted path of .proto names; undefined if there is none. */
export function fieldPath(desc: DescMessage, path: string): FieldPath | undefined {
  const fields: DescField[] = [];
  let within: DescMessage | undefined = desc;
  for (const name of path.split('.')) {
    const field: DescField | undefined = within?.fields.find((candidate) => candidate.name === name);
    if (!field) return undefined;
    fields.push(field);
    within = field.fieldKind === 'message' ? field.message : undefined;
  }
  return fields;
}
