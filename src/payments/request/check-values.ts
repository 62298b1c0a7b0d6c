import {
  create,
  type DescField,
  type DescMessage,
  getOption,
  type JsonValue,
  type Message,
  ScalarType,
  toJson,
} from '@bufbuild/protobuf';
import { type ListValue, type Timestamp, type Value, ValueSchema } from '@bufbuild/protobuf/wkt';
import type { Decimal } from '#gen/google/type/decimal_pb.js';
import { not_supported, sensitive } from '#gen/payments/v1/json_options_pb.js';
import type { Report } from '#src/service-error.ts';
import { memberOf } from '#src/wire/wire-json-encode.ts';

/**
 * Rejects values that no field may hold: a NUL character, which databases and providers handle differently; characters
 * that nobody sees in an identifier; a google.protobuf.Timestamp, Value or Struct without a JSON form, which only the
 * binary protocols can send; any value of an unsupported field; and the message's own card number in a field that is
 * stored and shown.
 *
 * @param cardNumber the card number in its own field of the message; '' if it has none.
 */
export function checkValues(desc: DescMessage, message: Message, report: Report, cardNumber = ''): void {
  walker(desc)(message as AnyMessage, '', { report, cardNumber });
}

type AnyMessage = Message & Record<string, unknown>;
type Check = { readonly report: Report; readonly cardNumber: string };
type Walk<T> = (value: T, path: string, check: Check) => void;

const walkers = new WeakMap<DescMessage, Walk<AnyMessage>>();

/** Returns the cached walk of a message type, and builds it on first use. */
function walker(desc: DescMessage): Walk<AnyMessage> {
  const known = walkers.get(desc);
  if (known) return known;
  const steps: Walk<AnyMessage>[] = [];
  const walk: Walk<AnyMessage> = (message, path, check) => {
    for (const step of steps) step(message, path, check);
  };
  // Registered before its fields are walked, so that a recursive type finds itself.
  walkers.set(desc, walk);
  for (const field of desc.fields) {
    const walkField = walkOf(field);
    if (walkField) steps.push(fieldStep(field, walkField));
  }
  return walk;
}

function walkOf(field: DescField): Walk<never> | undefined {
  if (getOption(field, not_supported)) return refuseUnsupported;
  if (field.fieldKind === 'map') return undefined;
  if (IDENTIFIERS.has(field.name)) return checkIdentifier;
  if (field.scalar === ScalarType.STRING) return getOption(field, sensitive) ? checkText : checkShownText;
  switch (field.message?.typeName) {
    case undefined:
      return undefined;
    case 'google.protobuf.Struct':
      return checkJson;
    case 'google.protobuf.ListValue':
      return checkList;
    case 'google.protobuf.Timestamp':
      return checkTimestamp;
    case 'google.protobuf.Value':
      return checkValue;
    case 'google.type.Decimal':
      return checkDecimal;
    default:
      return walker(field.message as DescMessage);
  }
}

function fieldStep(field: DescField, walk: Walk<never>): Walk<AnyMessage> {
  const { localName, oneof } = field;
  const name = memberOf(field);
  return (message, path, check) => {
    const holder = oneof ? (message[oneof.localName] as { case?: string; value?: unknown }) : undefined;
    const value = holder ? (holder.case === localName ? holder.value : undefined) : message[localName];
    if (value === undefined || value === '') return;
    const at = path === '' ? name : `${path}.${name}`;
    if (!Array.isArray(value)) walk(value as never, at, check);
    else for (const [i, element] of value.entries()) walk(element as never, `${at}[${i}]`, check);
  };
}

function refuseUnsupported(_value: unknown, path: string, { report }: Check): void {
  report(path, 'NOT_SUPPORTED', 'is not supported');
}

function checkText(text: string, path: string, { report }: Check): void {
  const fault = textFault(text);
  if (fault) report(path, 'INVALID_FORMAT', fault);
}

/** Checks a string that is stored and shown. */
function checkShownText(text: string, path: string, check: Check): void {
  checkText(text, path, check);
  if (holdsNumber(text, check.cardNumber)) check.report(path, 'NOT_ALLOWED', NO_CARD_NUMBER);
}

/** The merchant's own identifiers, by which people and programs find orders. */
const IDENTIFIERS: ReadonlySet<string> = new Set([
  'merchant_order_id',
  'merchant_reference',
  'merchant_customer_id',
]);

/** Characters that are not seen, or change how the text around them reads: two different ids would look the same. */
const UNSEEN = /[\p{Cc}\p{Cf}\p{Zl}\p{Zp}]/u;

function checkIdentifier(text: string, path: string, check: Check): void {
  if (text.includes('\0') || !UNSEEN.test(text)) checkShownText(text, path, check);
  else check.report(path, 'INVALID_FORMAT', 'must not contain control, direction or zero-width characters');
}

/** Checks a decimal. Reports faults at the field itself, since in JSON a decimal has no members. */
function checkDecimal({ value }: Decimal, path: string, check: Check): void {
  checkShownText(value, path, check);
}

const NO_CARD_NUMBER = 'must not contain the card number, which would be stored and shown';
/** Characters that people and programs put between the digits of card numbers. */
const BETWEEN_DIGITS = /[\s.-]+/g;

/** Shorter digits are no card number, and other fields may contain them by chance. */
const SHORTEST_NUMBER = 8;

function holdsNumber(text: string, cardNumber: string): boolean {
  if (cardNumber.length < SHORTEST_NUMBER) return false;
  // This rules out most strings, because few contain the first digits of the number.
  if (!text.includes(cardNumber.slice(0, 3))) return false;
  return text.replace(BETWEEN_DIGITS, '').includes(cardNumber);
}

// 0001-01-01T00:00:00Z and 9999-12-31T23:59:59Z, the bounds of google.protobuf.Timestamp.
const FIRST_SECOND = -62_135_596_800n;
const LAST_SECOND = 253_402_300_799n;

function checkTimestamp({ seconds, nanos }: Timestamp, path: string, { report }: Check): void {
  if (seconds >= FIRST_SECOND && seconds <= LAST_SECOND && nanos >= 0 && nanos <= 999_999_999) return;
  report(path, 'OUT_OF_RANGE', 'must be a timestamp in the years 1 to 9999');
}

function checkValue(value: Value, path: string, check: Check): void {
  const fault = valueFault(value);
  if (fault) check.report(path, 'INVALID_FORMAT', fault);
  else checkJson(toJson(ValueSchema, value), path, check);
}

/** Checks a list of free-form JSON as a Value. */
function checkList(list: ListValue, path: string, check: Check): void {
  checkValue(create(ValueSchema, { kind: { case: 'listValue', value: list } }), path, check);
}

function checkJson(json: JsonValue, path: string, { report, cardNumber }: Check): void {
  const fault = jsonFault(json);
  if (fault) report(path, 'INVALID_FORMAT', fault);
  else if (cardNumber && holdsNumber(JSON.stringify(json), cardNumber))
    report(path, 'NOT_ALLOWED', NO_CARD_NUMBER);
}

/** Describes why a google.protobuf.Struct, which the library reads as an object, is not valid JSON. */
function jsonFault(json: JsonValue): string | undefined {
  if (typeof json === 'string') return textFault(json);
  if (typeof json === 'number' && !Number.isFinite(json)) return 'must not contain NaN or an infinite number';
  if (typeof json !== 'object' || json === null) return undefined;
  const names = Array.isArray(json) ? undefined : textFault(Object.keys(json).join());
  return names ?? firstFault(Object.values(json), jsonFault);
}

/**
 * Describes why a value is not valid JSON. The fault is reported at the whole value, since the names within it are the
 * sender's own.
 */
function valueFault({ kind }: Value): string | undefined {
  switch (kind.case) {
    case undefined:
      return 'must have a value';
    case 'numberValue':
      return Number.isFinite(kind.value) ? undefined : 'must not contain NaN or an infinite number';
    case 'stringValue':
      return textFault(kind.value);
    case 'listValue':
      return firstFault(kind.value.values, valueFault);
    case 'structValue':
      return (
        firstFault(Object.values(kind.value.fields), valueFault) ??
        textFault(Object.keys(kind.value.fields).join())
      );
    default:
      return undefined;
  }
}

function firstFault<T>(values: readonly T[], faultOf: (value: T) => string | undefined): string | undefined {
  return values.map(faultOf).find((fault) => fault !== undefined);
}

function textFault(text: string): string | undefined {
  return text.includes('\0') ? 'must not contain a NUL character' : undefined;
}
