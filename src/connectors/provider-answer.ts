import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import { type Money, parseMoney } from '#src/money.ts';
import type { HttpResult } from './http-client.ts';
import type { Outcome } from './outcome.ts';

/** Greatest depth of nesting in an answer; the providers' own reach eight. */
const MAX_DEPTH = 64;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Reads an answer's body; undefined if it is not a JSON object in UTF-8, or nested more than 64 deep. */
export function readJsonObject(body: Uint8Array): JsonObject | undefined {
  try {
    const value: unknown = JSON.parse(UTF8.decode(body));
    return isJsonObject(value) && !isDeeper(value, MAX_DEPTH) ? value : undefined;
  } catch {
    return undefined;
  }
}

/** Returns true if a value is a JSON object, not a list. */
export function isJsonObject(value: unknown): value is JsonObject {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}

/** Copies an object without the fields of some names, at any depth: those that are not for the merchant. */
export function withoutFields(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const kept = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(kept);
    return isJsonObject(value) ? withoutFields(value, names) : value;
  };
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => (names.has(name) ? [] : [[name, kept(value)]])),
  );
}

/** Returns the object in an answer of the given status; undefined for any other result. */
export function bodyOf(result: HttpResult, status = 200): JsonObject | undefined {
  return result.kind === 'answer' && result.status === status ? readJsonObject(result.body) : undefined;
}

function isDeeper(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/**
 * Reads the value of a field in an answer. Never fails: a value of another kind is read as if the field were absent. Each
 * provider's answers.ts names the fields that are read, and how, so that the rest of the connector has typed answers.
 */
export type Reader<T> = (value: JsonValue | undefined) => T;

/** An object, as `fields` reads it. */
export type Read<Of extends Reader<unknown>> = ReturnType<Of>;

/** Fields to read of an object whose type the provider publishes: the compiler refuses a name that it lacks. */
export type FieldsOf<Published> = { readonly [Name in keyof Published]?: Reader<unknown> };

/** Makes the reader of an object; of one that is absent, all fields are absent. */
export function fields<Shape extends Readonly<Record<string, Reader<unknown>>>>(
  shape: Shape,
): Reader<{ readonly [Name in keyof Shape]: ReturnType<Shape[Name]> }> {
  const readers = Object.entries(shape);
  return (value) => {
    const object = isJsonObject(value) ? value : {};
    const read = readers.map(([name, reader]) => [name, reader(object[name])]);
    return Object.fromEntries(read) as { readonly [Name in keyof Shape]: ReturnType<Shape[Name]> };
  };
}

/** Reads several fields of an object in the same way. */
export function each<T, Name extends string>(
  reader: Reader<T>,
  ...names: readonly Name[]
): { readonly [At in Name]: Reader<T> } {
  return Object.fromEntries(names.map((name) => [name, reader])) as { readonly [At in Name]: Reader<T> };
}

/** Makes a reader that puts the whole object, as it came, beside the fields that another reads. */
export function withRaw<T>(reader: Reader<T>): Reader<T & { readonly raw: JsonObject }> {
  return (value) => ({ ...reader(value), raw: isJsonObject(value) ? value : {} });
}

/** Makes the reader of an object that may be absent. */
export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value) => (isJsonObject(value) ? reader(value) : undefined);
}

/** Makes the reader of a list of objects; of one that is absent, an empty list. */
export function listOf<T>(reader: Reader<T>): Reader<readonly T[]> {
  return (value) => (Array.isArray(value) ? value.filter(isJsonObject).map(reader) : []);
}

/** Makes the reader of a text that `pattern` matches as a whole. */
export function textLike(pattern: RegExp): Reader<string | undefined> {
  return (value) => (isTextLike(value, pattern) ? value : undefined);
}

/** Reads an id of ours. */
export const uuidOf: Reader<string | undefined> = (value) => (isUuid(value) ? value : undefined);

/** Reads a number. */
export const numberOf: Reader<number | undefined> = (value) =>
  typeof value === 'number' ? value : undefined;

/** Reads a value as it is, of whatever kind: one that is compared with what was asked must not pass for absent. */
export const asIs: Reader<JsonValue | undefined> = (value) => value;

/** Reads the address of a page to which a browser can be sent. */
export const pageAddress: Reader<string | undefined> = (value) => (isHttpUrl(value) ? value : undefined);

const UUID = /^[0-9a-f]{8}(-[0-9a-f]{4}){3}-[0-9a-f]{12}$/;

/** Returns true if a value has the form of our transactions' ids. */
export function isUuid(value: JsonValue | undefined): value is string {
  return isTextLike(value, UUID);
}

/** Returns a value if it is a string; else ''. */
export function textOf(value: JsonValue | undefined): string {
  return typeof value === 'string' ? value : '';
}

/** Returns true if a value is a string that `pattern` matches as a whole. */
export function isTextLike(value: JsonValue | undefined, pattern: RegExp): value is string {
  return typeof value === 'string' && pattern.test(value);
}

const MAX_URL_LENGTH = 2_048;

/** Returns true if a value is a URL to which a browser can be sent. */
export function isHttpUrl(value: JsonValue | undefined): value is string {
  if (typeof value !== 'string' || value.length > MAX_URL_LENGTH) return false;
  const protocol = URL.parse(value)?.protocol;
  return protocol === 'http:' || protocol === 'https:';
}

/**
 * Reads an amount of money in an answer.
 *
 * @param amount in `minor_units` a JSON integer; as a `decimal` a string or a JSON number in the currency's major unit.
 * @param currency an ISO 4217 code, in either case.
 * @returns undefined if it is not an exact, nonnegative amount with a currency.
 */
export function readMoney(
  amount: JsonValue | undefined,
  currency: JsonValue | undefined,
  unit: 'minor_units' | 'decimal',
): Money | undefined {
  if (typeof currency !== 'string') return undefined;
  const code = currency.toUpperCase();
  if (unit === 'minor_units') {
    if (typeof amount !== 'number' || !Number.isSafeInteger(amount) || amount < 0) return undefined;
    return { minorUnits: BigInt(amount), currency: code };
  }
  if (typeof amount !== 'string' && typeof amount !== 'number') return undefined;
  const money = parseMoney(String(amount), code);
  return money && money.minorUnits >= 0n ? money : undefined;
}

/**
 * Compares the money in an answer with the requested money. If a provider counts a currency in other units than ISO
 * 4217, both are in the provider's.
 *
 * @returns the field that differs; undefined if they are equal.
 */
export function differingMoney(answered: Money | undefined, asked: Money): 'amount' | 'currency' | undefined {
  if (!answered) return 'amount';
  if (answered.currency !== asked.currency) return 'currency';
  return answered.minorUnits === asked.minorUnits ? undefined : 'amount';
}

type Answer = Extract<HttpResult, { kind: 'answer' }>;

/** Reads the result of a request that may move money: `read` gets a JSON object, whatever the answer's status. */
export function fromResult(result: HttpResult, read: (body: JsonObject, answer: Answer) => Outcome): Outcome {
  if (result.kind === 'not_sent') return result;
  if (result.kind === 'unknown') return unknownOutcome(result.detail);
  const body = readJsonObject(result.body);
  return body ? read(body, result) : unknownOutcome(`the answer cannot be read: ${result.status}`);
}

/** Returns true for a status of success: the body says what happened. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Makes the outcome of success. @param authorizationCode '' if the provider reports none. */
export function approvedOutcome(
  reported: {
    readonly providerData: ProviderData;
    readonly reference?: string;
    readonly alarm?: true;
    readonly corrects?: true;
  },
  authorizationCode = '',
): Outcome {
  return { kind: 'approved', ...reported, authorizationCode, retrievalReferenceNumber: '' };
}

/** Makes the outcome of the provider's word that the transaction did not happen and never will. */
export function neverHappens(detail: string): Outcome {
  return { kind: 'not_sent', detail, because: 'turned_away' };
}

/** Makes the outcome of an attempt that the connector itself turned away: nothing was sent. */
export function turnedAway(detail: string): Outcome {
  return { kind: 'not_sent', detail: `nothing was sent to the provider: ${detail}`, because: 'turned_away' };
}

/** Makes the unknown outcome. */
export function unknownOutcome(detail: string, providerData?: ProviderData): Outcome {
  return { kind: 'unknown', detail, providerData };
}

/** Makes the unknown outcome in which money that nobody asked for may have moved: an operator has to investigate. */
export function alarmingOutcome(detail: string, providerData?: ProviderData): Outcome {
  return { kind: 'unknown', detail: `alarm: ${detail}`, providerData, alarm: true };
}

/**
 * Makes the outcome if an answer is about something other than the request: another amount, currency or reference.
 *
 * @param what the field that differs, in the provider's words; never its value.
 */
export function answeredAboutAnother(what: string): Outcome {
  return alarmingOutcome(`the provider's answer is not about this attempt: its ${what} differs`);
}
