import { type DescField, type DescMethod, type DescService, getOption } from '@bufbuild/protobuf';
import { EmptySchema } from '@bufbuild/protobuf/wkt';
import {
  for_operators,
  IdempotencyKey,
  idempotency_key,
  public_key_can_suffice,
} from '#gen/payments/v1/call_options_pb.js';
import { not_supported } from '#gen/payments/v1/json_options_pb.js';
import { type HttpBinding, httpBindings } from '#src/api/http-rule.ts';
import { codeSamples, type SampleCall } from './code-samples.ts';
import { commentOf, wordsOf } from './descriptors.ts';
import { errorResponseName } from './error-responses.ts';
import type { Examples } from './examples.ts';
import { isRequired, type Json } from './field-rules.ts';
import type { MessageSchemas } from './message-schemas.ts';

/** Returns the paths of the services' REST bindings (google.api.http). */
export function pathsOf(
  services: readonly DescService[],
  schemas: MessageSchemas,
  examples: Examples,
): Record<string, Json> {
  const paths: Record<string, Record<string, Json>> = {};
  for (const service of services) {
    for (const method of service.methods) {
      // The path with the fewest variables is the rpc's plain path.
      const bindings = httpBindings(method).sort(
        (one, other) => one.variables.length - other.variables.length,
      );
      for (const binding of bindings) {
        const path = pathOf(binding);
        const operation = writeOperation({ method, binding, bindings, schemas, examples });
        paths[path] = { ...paths[path], [binding.verb.toLowerCase()]: operation };
      }
    }
  }
  return paths;
}

/** Returns the tag of a service: "WebhookService" becomes "Webhooks". */
export function tagOf(service: DescService): string {
  return `${wordsOf(service.name.replace(/Service$/, ''))}s`;
}

type Operation = {
  readonly method: DescMethod;
  readonly binding: HttpBinding;
  readonly bindings: readonly HttpBinding[];
  readonly schemas: MessageSchemas;
  readonly examples: Examples;
};

function writeOperation(operation: Operation): Json {
  const { method, binding } = operation;
  const comment = commentOf(method);
  const parameters = [...keyParameters(method), ...pathParameters(operation), ...queryParameters(operation)];
  const requestBody = body(operation);
  return {
    operationId: operationId(operation),
    tags: [tagOf(method.parent)],
    summary: wordsOf(operationId(operation)),
    ...(comment && { description: comment }),
    'x-rpc': `${method.parent.typeName}/${method.name}`,
    security: securityOf(method),
    ...(parameters.length > 0 && { parameters }),
    ...(requestBody && { requestBody }),
    'x-codeSamples': codeSamples(sampleOf(operation)),
    responses: {
      ...success(operation),
      ...Object.fromEntries(
        refusals(method, binding).map((status) => [
          String(status),
          { $ref: `#/components/responses/${errorResponseName(status)}` },
        ]),
      ),
    },
  };
}

/** Returns the operation's first example, as a call of the rpc's plain path. */
function sampleOf({ method, bindings, examples }: Operation): SampleCall {
  const [binding] = bindings;
  if (!binding) throw new Error(`${method} has no path`);
  const { parameters, body } = examples.first(method);
  const inPath = new Set(binding.variables.map(pathName));
  const of = (isWanted: (name: string) => boolean) =>
    Object.fromEntries(Object.entries(parameters).filter(([name]) => isWanted(name)));
  const others = of((name) => !inPath.has(name));
  const hasBody = binding.body !== '';
  return {
    operationId: method.localName,
    verb: binding.verb,
    path: pathOf(binding),
    variables: of((name) => inPath.has(name)),
    query: hasBody ? {} : others,
    body: hasBody ? { ...others, ...(body as object | undefined) } : undefined,
    needsKey: getOption(method, idempotency_key) === IdempotencyKey.REQUIRED,
    isForOperators: getOption(method.parent, for_operators),
  };
}

/** Returns the path of a binding with named variables: /v1/payments/{id}. */
function pathOf({ url, variables }: HttpBinding): string {
  const names = variables.map((path) => `{${pathName(path)}}`);
  return url.replaceAll(/:p(\d+)/g, (_, i) => names[Number(i)] ?? '');
}

/** Returns the rpc's name for its plain path; other paths append the names of their additional variables. */
function operationId({ method, binding, bindings }: Operation): string {
  const plain = new Set(bindings[0]?.variables.map(pathName));
  const others = binding.variables.map(pathName).filter((name) => !plain.has(name));
  if (binding === bindings[0]) return method.localName;
  return `${method.localName}By${others.map(pascalCase).join('And')}`;
}

function pascalCase(name: string): string {
  return name.replaceAll(/(?:^|[_.])(.)/g, (_, first) => first.toUpperCase());
}

function pathName(path: readonly DescField[]): string {
  return path.map((field) => field.name).join('.');
}

function securityOf(method: DescMethod): readonly Json[] {
  if (getOption(method.parent, for_operators)) return [{ 'operator-key': [] }];
  const both = { 'public-api-key': [], 'private-secret-key': [] };
  return getOption(method, public_key_can_suffice) ? [both, { 'public-api-key': [] }] : [both];
}

function keyParameters(method: DescMethod): readonly Json[] {
  switch (getOption(method, idempotency_key)) {
    case IdempotencyKey.REQUIRED:
      return [{ $ref: '#/components/parameters/IdempotencyKey' }];
    case IdempotencyKey.OPTIONAL:
      return [{ $ref: '#/components/parameters/OptionalIdempotencyKey' }];
    default:
      return [];
  }
}

function pathParameters({ binding, schemas }: Operation): readonly Json[] {
  return binding.variables.map((path) => {
    const schema = schemas.parameter(path.at(-1) as DescField);
    return parameter({ name: pathName(path), in: 'path', required: true }, schema);
  });
}

/** Returns the query parameters: unless the body is the whole message, the query string sets its fields. */
function queryParameters({ method, binding, schemas }: Operation): readonly Json[] {
  if (binding.body === '*') return [];
  const elsewhere = new Set([...binding.variables.map((path) => path[0]?.name), binding.body]);
  return method.input.fields
    .filter((field) => !elsewhere.has(field.name) && !getOption(field, not_supported))
    .map((field) => parameter({ name: field.name, in: 'query' }, schemas.parameter(field)));
}

/** Completes a parameter with its schema, whose description moves to the parameter. */
function parameter(named: Json, { description, ...schema }: Json): Json {
  return { ...named, ...(description !== undefined && { description }), schema };
}

function body({ method, binding, bindings, schemas, examples }: Operation): Json | undefined {
  if (binding.body === '') return undefined;
  const field = method.input.fields.find(({ name }) => name === binding.body);
  // A variable that every path of the rpc contains is never read from a body.
  const everywhere = method.input.fields.filter((one) =>
    bindings.every(({ variables }) => variables.some((path) => path[0] === one)),
  );
  const schema = field ? schemas.field(field, 'request') : schemas.body(method.input, new Set(everywhere));
  const isNeeded = field
    ? isRequired(field)
    : method.input.fields.some((one) => isRequired(one) && !everywhere.includes(one));
  return {
    ...(isNeeded && { required: true }),
    content: { 'application/json': { schema, ...examplesOf(examples.requests(method)) } },
  };
}

function success({ method, binding, schemas, examples }: Operation): Json {
  const headers: Record<string, Json> = { 'x-request-id': { $ref: '#/components/headers/RequestId' } };
  if (getOption(method, idempotency_key) !== IdempotencyKey.UNSPECIFIED) {
    headers['idempotent-replayed'] = { $ref: '#/components/headers/IdempotentReplayed' };
  }
  if (method.output.typeName === EmptySchema.typeName) return { 204: { description: 'Done.', headers } };
  const { responseBody } = binding;
  const isPaged = method.output.fields.some(({ name }) => name === 'next_page_token');
  if (responseBody && isPaged) headers.link = { $ref: '#/components/headers/Link' };
  const isCreated = createsResource(method);
  if (isCreated) headers.location = { $ref: '#/components/headers/Location' };
  const schema = responseBody
    ? schemas.field(responseBody, 'response')
    : schemas.message(method.output, 'response');
  const description = isCreated ? 'Created now, or earlier with the same idempotency key.' : 'OK.';
  return {
    [isCreated ? 201 : 200]: {
      description,
      headers,
      content: { 'application/json': { schema, ...examplesOf(examples.responses(method)) } },
    },
  };
}

/** Reports whether the rpc's name shows that it is a standard method that creates a resource (AIP-133). */
function createsResource(method: DescMethod): boolean {
  return /^(Create|Enroll)/.test(method.name);
}

/** Reports whether the rpc's name shows that it finds one resource by its fields. */
function findsOne(method: DescMethod): boolean {
  return /^Find/.test(method.name);
}

function examplesOf(examples: Json): Json {
  return Object.keys(examples).length > 0 ? { examples } : {};
}

/** Returns the HTTP statuses of an operation's refusals. */
function refusals(method: DescMethod, binding: HttpBinding): number[] {
  const isRead = binding.verb === 'GET';
  const hasBody = binding.body !== '';
  const hasKey = getOption(method, idempotency_key) !== IdempotencyKey.UNSPECIFIED;
  const namesAccount = method.input.fields.some(({ name }) => name === 'account_id');
  return [
    400,
    401,
    ...(namesAccount ? [403] : []),
    ...(binding.variables.length > 0 || findsOne(method) ? [404] : []),
    ...(isRead ? [] : [409]),
    ...(hasBody ? [413, 415] : []),
    ...(hasKey ? [422] : []),
    429,
    500,
    503,
  ];
}
