import { domainToASCII } from 'node:url';
import {
  clearField,
  type DescField,
  type DescMessage,
  fromJson,
  getOption,
  hasOption,
  isFieldSet,
  type JsonObject,
  type Message,
} from '@bufbuild/protobuf';
import { StructSchema, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import { field as fieldRules } from '#gen/buf/validate/validate_pb.js';
import { FieldBehavior, field_behavior } from '#gen/google/api/field_behavior_pb.js';
import { DecimalSchema } from '#gen/google/type/decimal_pb.js';
import {
  done_anyway,
  empty_is_absent,
  empty_is_refused,
  fraction_of,
  not_supported,
} from '#gen/payments/v1/json_options_pb.js';
import { canonicalDecimal } from './canonical-decimal.ts';

/**
 * Converts a request message to its canonical form, in place, so that requests with the same meaning are equal.
 * Decimals become canonical (malformed ones stay, for validation to refuse), and a whole decimal becomes the integer
 * that it represents (`fraction_of`). An internationalized domain of an e-mail address becomes ASCII. Fields that a
 * request cannot set are cleared: OUTPUT_ONLY fields, as AIP-203 prescribes, and unsupported fields that set nothing
 * (`asksForNothing`). An empty string is cleared if its field requires a format or has the option `empty_is_absent`, and
 * so is an empty message with that option; other text stays as sent. Any change to this form changes hashes and needs another `CANONICAL_FORM` (payments/keys/request-hash).
 */
export function canonicalize(desc: DescMessage, message: Message): void {
  walker(desc)?.(message as AnyMessage);
}

type AnyMessage = Message & Record<string, unknown>;
type Walk = (message: AnyMessage) => void;

const walkers = new WeakMap<DescMessage, Walk | 'in the making' | 'nothing to do'>();

/** Returns the walk over messages of a type, built once; undefined if no field of the type needs a change. */
function walker(desc: DescMessage): Walk | undefined {
  if (desc.typeName === DecimalSchema.typeName) return canonicalizeDecimal;
  // Arbitrary JSON is recursive, and has no canonical form.
  if (desc.typeName.startsWith('google.protobuf.')) return undefined;
  const known = walkers.get(desc);
  if (known === 'in the making') throw new Error(`${desc} refers to itself, which is not supported`);
  if (known !== undefined) return known === 'nothing to do' ? undefined : known;
  walkers.set(desc, 'in the making');
  const steps = desc.fields.flatMap((field) => fieldStep(field) ?? []);
  const walk: Walk = (message) => {
    for (const step of steps) step(message);
  };
  walkers.set(desc, steps.length > 0 ? walk : 'nothing to do');
  return steps.length > 0 ? walk : undefined;
}

function fieldStep(field: DescField): Walk | undefined {
  const { localName, oneof } = field;
  if (isOutputOnly(field)) return (message) => clearField(message, field);
  if (getOption(field, not_supported)) {
    const doneAnyway = getOption(field, done_anyway);
    const onlyNull = doneAnyway === 'true' || getOption(field, empty_is_refused);
    const isObject = field.message?.typeName === StructSchema.typeName;
    return (message) => {
      const sent = message[localName] as Value | JsonObject | undefined;
      const value =
        isObject && sent ? fromJson(ValueSchema, sent as JsonObject) : (sent as Value | undefined);
      const isNothing = onlyNull ? (value?.kind.case ?? 'nullValue') === 'nullValue' : asksForNothing(value);
      if (isNothing || textOf(value) === doneAnyway) clearField(message, field);
    };
  }
  const whole = field.parent.fields.find(({ name }) => name === getOption(field, fraction_of));
  if (whole) return (message) => wholeNumber(message, field, whole);
  if (isTextAbsentIfEmpty(field)) {
    const isEmail = isEmailField(field);
    return (message) => {
      if (message[localName] === '') clearField(message, field);
      else if (isEmail && message[localName] !== undefined) {
        message[localName] = withAsciiDomain(String(message[localName]));
      }
    };
  }
  const walk = field.fieldKind === 'map' || !field.message ? undefined : walker(field.message);
  if (field.message && getOption(field, empty_is_absent)) return emptyStep(field, field.message, walk);
  if (!walk) return undefined;
  return (message) => {
    const holder = oneof ? (message[oneof.localName] as { case?: string; value?: unknown }) : undefined;
    const value = holder ? (holder.case === localName ? holder.value : undefined) : message[localName];
    if (Array.isArray(value)) for (const element of value) walk(element);
    else if (value) walk(value as AnyMessage);
  };
}

/** Returns the walk into a message, which also clears the message if nothing is set in it. */
function emptyStep(field: DescField, { fields }: DescMessage, walk: Walk | undefined): Walk {
  return (message) => {
    const value = message[field.localName] as AnyMessage | undefined;
    if (!value) return;
    walk?.(value);
    if (!fields.some((inner) => isFieldSet(value, inner))) clearField(message, field);
  };
}

/** A currency without an amount asks for nothing. */
const CURRENCY = 'currency';
const ZERO = /^(?:0(?:\.0*)?)?$/;

/** Reports whether arbitrary JSON is null, false, "", zero, [] or {}, or an object of such values and a currency. */
export function asksForNothing(value: Value | undefined): boolean {
  const kind = value?.kind;
  switch (kind?.case) {
    case 'listValue':
      return kind.value.values.length === 0;
    case 'structValue':
      return Object.entries(kind.value.fields).every(
        ([name, member]) => name === CURRENCY || asksForNothing(member),
      );
    case 'stringValue':
      return ZERO.test(kind.value);
    case 'numberValue':
    case 'boolValue':
      return !kind.value;
    default:
      return true;
  }
}

/** Returns a string, number or boolean in arbitrary JSON as a string; undefined for anything else. */
function textOf(value: Value | undefined): string | undefined {
  const kind = value?.kind;
  const isScalar = kind?.case === 'numberValue' || kind?.case === 'stringValue' || kind?.case === 'boolValue';
  return isScalar ? String(kind.value) : undefined;
}

/** Reports whether an empty string counts as absent in a text field. */
export function isTextAbsentIfEmpty(field: DescField): boolean {
  return hasForm(field) || (!field.message && getOption(field, empty_is_absent));
}

/** Reports whether a text field's .proto rule requires a format, which an empty string never has. */
function hasForm(field: DescField): boolean {
  const rules = textRules(field);
  return rules !== undefined && (rules.pattern !== '' || rules.wellKnown.case !== undefined);
}

function isEmailField(field: DescField): boolean {
  return textRules(field)?.wellKnown.case === 'email';
}

function textRules(field: DescField) {
  if (field.fieldKind !== 'scalar' || field.oneof || !hasOption(field, fieldRules)) return undefined;
  const { type } = getOption(field, fieldRules);
  return type.case === 'string' ? type.value : undefined;
}

/**
 * Returns an e-mail address with its internationalized domain in the ASCII form that mail servers and providers accept
 * (IDNA: münchen.de is xn--mnchen-3ya.de). Any other address stays as sent, for validation to refuse.
 */
function withAsciiDomain(email: string): string {
  const domainAt = email.lastIndexOf('@') + 1;
  const domain = email.slice(domainAt);
  const ascii = domainAt > 0 && /\P{ASCII}/u.test(domain) ? domainToASCII(domain) : '';
  return ascii === '' ? email : email.slice(0, domainAt) + ascii;
}

function isOutputOnly(field: DescField): boolean {
  return (
    hasOption(field, field_behavior) && getOption(field, field_behavior).includes(FieldBehavior.OUTPUT_ONLY)
  );
}

/** Moves a whole decimal to the field for integers, if that field is not set. */
function wholeNumber(message: AnyMessage, field: DescField, whole: DescField): void {
  const decimal = message[field.localName] as AnyMessage | undefined;
  if (!decimal) return;
  canonicalizeDecimal(decimal);
  const number = Number(decimal.value) | 0;
  if (String(number) !== decimal.value || isFieldSet(message, whole)) return;
  message[whole.localName] = number;
  clearField(message, field);
}

function canonicalizeDecimal(decimal: AnyMessage): void {
  decimal.value = canonicalDecimal(String(decimal.value)) ?? decimal.value;
}
