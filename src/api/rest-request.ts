import { type DescField, type DescMessage, getOption, ScalarType } from '@bufbuild/protobuf';
import type { FastifyRequest } from 'fastify';
import { not_supported } from '#gen/payments/v1/json_options_pb.js';
import { type FieldError, invalidParameters, MAX_FIELD_ERRORS } from '#src/service-error.ts';
import { isTextAbsentIfEmpty } from '#src/wire/canonical-message.ts';
import { isJsonObject, RawNumber } from '#src/wire/parse-json.ts';
import { type FieldPath, fieldPath, type HttpBinding } from './http-rule.ts';

/**
 * Builds a call's request message, as REST JSON, from the body, the path and the query string, as google.api.http
 * prescribes: the body is the message or one of its fields; the path's variables override both. Unless the body is the
 * whole message, query parameters set fields by name (`page_size=2`, `filter.country=CO`). An absent body is an empty
 * message.
 *
 * @throws ServiceError INVALID_PARAMETERS that names each unknown query parameter: a list that ignored a filter would
 * return what the caller did not ask for.
 */
export function requestJson(request: FastifyRequest, binding: HttpBinding, input: DescMessage): unknown {
  const { body, variables } = binding;
  const sent = request.body === undefined ? {} : request.body;
  if (body === '*' && (variables.length === 0 || !isJsonObject(sent))) return sent;
  const json: JsonMembers = body === '*' ? { ...(sent as JsonMembers) } : queryJson(request, binding, input);
  if (body !== '' && body !== '*') json[body] = sent;
  const params = request.params as Record<string, string>;
  const mask = binding.verb === 'PATCH' ? updateMask(json, binding, input) : undefined;
  if (mask !== undefined) json.update_mask ??= mask;
  for (const [i, path] of variables.entries()) setField(json, path, params[`p${i}`] ?? '');
  return json;
}

/**
 * Lists the fields in a PATCH body, including those that are `null`, if the request has an `update_mask`. The mask
 * distinguishes a field to clear from an absent field, since both are unset in the message. It omits an empty string
 * that counts as absent.
 */
function updateMask(json: JsonMembers, { variables }: HttpBinding, input: DescMessage): string | undefined {
  const mask = input.fields.find(({ name }) => name === 'update_mask');
  if (mask?.message?.typeName !== 'google.protobuf.FieldMask') return undefined;
  // The path's variables only identify the object, and unsupported fields are refused or have no effect.
  const others = [mask, ...variables.map(([field]) => field)];
  return input.fields
    .filter((field) => !others.includes(field) && !isUnsupported(field))
    .filter((field) => Object.hasOwn(json, field.name))
    .filter((field) => json[field.name] !== '' || !isTextAbsentIfEmpty(field))
    .map(({ name }) => name)
    .join();
}

/** Reports whether a field, or every field of its message, is unsupported. */
function isUnsupported(field: DescField): boolean {
  const within = field.message?.fields ?? [];
  return getOption(field, not_supported) || (within.length > 0 && within.every(isUnsupported));
}

type JsonMembers = Record<string, unknown>;

function queryJson(request: FastifyRequest, { variables }: HttpBinding, input: DescMessage): JsonMembers {
  const json: JsonMembers = {};
  const unknown: FieldError[] = [];
  const inPath = variables.map(nameOf);
  for (const [name, value] of Object.entries(request.query as Record<string, string | string[]>)) {
    const path = inPath.includes(name) ? undefined : fieldPath(input, name);
    if (path) setField(json, path, value);
    else unknown.push(unknownParameter(name));
  }
  if (unknown.length > 0) throw invalidParameters(unknown.slice(0, MAX_FIELD_ERRORS));
  return json;
}

/** Returns a field's dotted path of .proto names. */
function nameOf(path: FieldPath): string {
  return path.map(({ name }) => name).join('.');
}

/** Names that a refusal may repeat. Others might hold a card number. */
const PLAIN_NAME = /^(?!.*\d{5})[\w.[\]-]{1,64}$/;

function unknownParameter(name: string): FieldError {
  const message = 'is not a query parameter of this call';
  if (PLAIN_NAME.test(name)) return { field: name, code: 'NOT_ALLOWED', message };
  return { field: '?', code: 'NOT_ALLOWED', message: 'contains a parameter that this call does not have' };
}

function setField(json: JsonMembers, path: FieldPath, value: string | readonly string[]): void {
  let within = json;
  for (const { name } of path.slice(0, -1)) {
    const inner = within[name];
    const copy: JsonMembers = isJsonObject(inner) ? { ...inner } : {};
    within[name] = copy;
    within = copy;
  }
  const field = path.at(-1) as DescField;
  const values = [value].flat();
  const read = values.map((text) => textToJson(field, text));
  // Several values for a non-list field stay an array, which the decoder refuses.
  within[field.name] = field.fieldKind === 'list' || read.length !== 1 ? read : read[0];
}

const NUMBER = /^-?\d+(?:\.\d+)?(?:[eE][+-]?\d+)?$/;

/**
 * Converts a value from a path or query string to JSON. A value that does not match the field's type stays a string.
 */
function textToJson(field: DescField, text: string): unknown {
  switch (field.fieldKind === 'map' ? undefined : field.scalar) {
    case undefined:
    case ScalarType.STRING:
    case ScalarType.BYTES:
      return text;
    case ScalarType.BOOL:
      return text === 'true' ? true : text === 'false' ? false : text;
    default:
      return NUMBER.test(text) ? new RawNumber(text) : text;
  }
}
