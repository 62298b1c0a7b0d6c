import type { DescMessage, MessageShape } from '@bufbuild/protobuf';
import { createValidator, type Violation } from '@bufbuild/protovalidate';
import { type FieldCode, type FieldError, MAX_FIELD_ERRORS } from '#src/service-error.ts';

const validator = createValidator({
  // Our patterns match in linear time, so the platform's engine is safe, and it is faster than RE2 in JavaScript.
  regexMatch: (pattern, against) => compiled(pattern).test(against),
});

/**
 * Creates a function that checks messages of a type against the rules in its .proto (buf.validate). The errors name
 * fields and rules, never values.
 *
 * @param limit maximum number of errors.
 */
export function validate<Desc extends DescMessage>(
  schema: Desc,
  limit = MAX_FIELD_ERRORS,
): (message: MessageShape<Desc>) => FieldError[] {
  return (message) => {
    const result = validator.validate(schema, message);
    if (result.kind === 'error') throw result.error;
    return result.kind === 'valid' ? [] : result.violations.slice(0, limit).map(fieldError);
  };
}

const CODES: readonly [rule: RegExp, code: FieldCode][] = [
  [/^required$/, 'REQUIRED'],
  [/\.(max_len|max_bytes)$/, 'TOO_LONG'],
  [/\.max_(items|pairs)$/, 'TOO_MANY'],
  [/\.(gte?|lte?|gte?_lte?|min_items|min_len|defined_only)$/, 'OUT_OF_RANGE'],
];

function fieldError(violation: Violation): FieldError {
  const code = CODES.find(([rule]) => rule.test(violation.ruleId))?.[1] ?? 'INVALID_FORMAT';
  return { field: fieldPath(violation), code, message: messageOf(violation) };
}

/** Describes the patterns in our .proto files, so that merchants' engineers need not read regular expressions. */
const FORMS: ReadonlyMap<string, string> = new Map([
  ['^[A-Z]{2}$', 'an ISO 3166-1 alpha-2 country code, in upper case'],
  ['^[A-Z]{3}$', 'an ISO 4217 currency code, in upper case'],
  ['^[0-9]{4}-(0[1-9]|1[0-2])-(0[1-9]|[12][0-9]|3[01])$', 'a date in the form YYYY-MM-DD'],
  ['^[0-9]{8,19}$', '8 to 19 digits, without spaces or dashes'],
  ['^[0-9]{4,8}$', '4 to 8 digits'],
  ['^[0-9]{3,4}$', '3 or 4 digits'],
  ['^[0-9]{4}$', '4 digits'],
  ['^[0-9]{1,2}$', '1 or 2 digits'],
  ['^[+]?[0-9]{1,7}$', '1 to 7 digits, with or without a leading plus sign'],
  ['^[A-Z][A-Z0-9_]{0,254}$', 'up to 255 capital letters, digits and underscores, beginning with a letter'],
  ['^[a-z][a-z0-9_]{0,99}$', 'up to 100 lower-case letters, digits and underscores, beginning with a letter'],
]);

function messageOf({ message }: Violation): string {
  const pattern = /regex pattern `(.*)`/s.exec(message)?.[1];
  // Like our own messages, the library's follow the field's name: `country: is required`.
  if (pattern === undefined) return message.replace(/^value (?=is |must )/, '') || 'is not valid';
  const form = FORMS.get(pattern);
  return form === undefined ? 'does not have the documented format' : `must be ${form}`;
}

/** Returns the path in our notation: additional_data.order.items[0].quantity. */
function fieldPath(violation: Violation): string {
  let path = '';
  for (const step of violation.field) {
    if (step.kind === 'field') path += path ? `.${step.name}` : step.name;
    else if (step.kind === 'list_sub') path += `[${step.index}]`;
    else if (step.kind === 'map_sub') path += `[${String(step.key)}]`;
  }
  return path;
}

const patterns = new Map<string, RegExp>();

function compiled(pattern: string): RegExp {
  return patterns.getOrInsertComputed(pattern, () => new RegExp(pattern, 'u'));
}
