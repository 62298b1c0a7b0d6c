import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import type { ProviderData } from '#gen/payments/v1/payment_pb.js';
import { type Money, parseMoney } from '#src/money.ts';
import type { ReportProblem } from '../port/connector.ts';
import type { Outcome } from '../port/outcome.ts';
import type { HttpResult } from './http-client.ts';

/** Maximum nesting depth of a response; real responses reach eight. */
const MAX_DEPTH = 64;
const UTF8 = new TextDecoder('utf-8', { fatal: true });

/** Parses a response body; undefined unless it is a JSON object in UTF-8, nested at most 64 levels deep. */
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

/** Copies an object, leaving out the named fields at any depth, because merchants must not see them. */
export function withoutFields(object: JsonObject, names: ReadonlySet<string>): JsonObject {
  const kept = (value: JsonValue): JsonValue => {
    if (Array.isArray(value)) return value.map(kept);
    return isJsonObject(value) ? withoutFields(value, names) : value;
  };
  return Object.fromEntries(
    Object.entries(object).flatMap(([name, value]) => (names.has(name) ? [] : [[name, kept(value)]])),
  );
}

/** Returns the object in a response with the given status; undefined for any other result. */
export function bodyOf(result: HttpResult, status = 200): JsonObject | undefined {
  return result.kind === 'answer' && result.status === status ? readJsonObject(result.body) : undefined;
}

function isDeeper(value: JsonValue, levels: number): boolean {
  if (typeof value !== 'object' || value === null) return false;
  return levels === 0 || Object.values(value).some((inner) => isDeeper(inner, levels - 1));
}

/**
 * Reads the value of a response field. Never fails: a value of another type counts as absent. Each provider's
 * answers.ts declares the fields to read, so that the rest of the connector has typed responses.
 */
export type Reader<T> = (value: JsonValue | undefined) => T;

/** An object, as `fields` reads it. */
export type Read<Of extends Reader<unknown>> = ReturnType<Of>;

/** Fields to read from an object whose type the provider publishes: the compiler rejects unknown names. */
export type FieldsOf<Published> = { readonly [Name in keyof Published]?: Reader<unknown> };

/** Creates a reader for an object. All fields of an absent object are absent. */
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

/** Creates a reader that adds the unchanged object to the fields that `reader` returns. */
export function withRaw<T>(reader: Reader<T>): Reader<T & { readonly raw: JsonObject }> {
  return (value) => ({ ...reader(value), raw: isJsonObject(value) ? value : {} });
}

/** Creates a reader for an object that may be absent. */
export function optional<T>(reader: Reader<T>): Reader<T | undefined> {
  return (value) => (isJsonObject(value) ? reader(value) : undefined);
}

/** Creates a reader for a list of objects. An absent list is empty. */
export function listOf<T>(reader: Reader<T>): Reader<readonly T[]> {
  return (value) => (Array.isArray(value) ? value.filter(isJsonObject).map(reader) : []);
}

/** Reads a string. */
export const stringOf: Reader<string | undefined> = (value) =>
  typeof value === 'string' ? value : undefined;

/** Creates a reader for a string that `pattern` matches entirely. */
export function textLike(pattern: RegExp): Reader<string | undefined> {
  return (value) => (isTextLike(value, pattern) ? value : undefined);
}

/** Reads one of our ids. */
export const uuidOf: Reader<string | undefined> = (value) => (isUuid(value) ? value : undefined);

/** Reads a number. */
export const numberOf: Reader<number | undefined> = (value) =>
  typeof value === 'number' ? value : undefined;

/** Reads any value unchanged: a value that is compared with the request must not count as absent. */
export const asIs: Reader<JsonValue | undefined> = (value) => value;

/** Reads the URL of a page to which a browser can be sent. */
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

/** Returns true if a value is a string that `pattern` matches entirely. */
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
 * Reads an amount of money in a response.
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
 * Compares the money in a response with the requested money. If a provider's units differ from ISO 4217, both amounts
 * are in the provider's units.
 *
 * @returns the field that differs; undefined if they are equal.
 */
export function differingMoney(answered: Money | undefined, asked: Money): 'amount' | 'currency' | undefined {
  if (!answered) return 'amount';
  if (answered.currency !== asked.currency) return 'currency';
  return answered.minorUnits === asked.minorUnits ? undefined : 'amount';
}

type Answer = Extract<HttpResult, { kind: 'answer' }>;

/**
 * Reads the result of a request that may move money. `read` gets a JSON object, regardless of the response's status.
 */
export function fromResult(result: HttpResult, read: (body: JsonObject, answer: Answer) => Outcome): Outcome {
  if (result.kind === 'not_sent') return result;
  if (result.kind === 'unknown') return unknownOutcome(result.detail);
  const body = readJsonObject(result.body);
  if (body) return read(body, result);
  return unknownOutcome(`${isPage(result) ? 'an HTML page as' : 'unreadable'} response: ${result.status}`);
}

/** Returns true for a page for people, which something other than a provider's API sent, such as a proxy. */
function isPage({ headers }: Answer): boolean {
  return headers['content-type']?.startsWith('text/html') ?? false;
}

/** Describes why a probe failed: what came instead of the response that a working connection gets. */
export function probeProblem(result: HttpResult): string {
  if (result.kind === 'not_sent') return `nothing was sent (${result.detail})`;
  if (result.kind === 'unknown') return `no complete response arrived (${result.detail})`;
  const { status, body } = result;
  if (isPage(result)) {
    return `the response is an HTML page (HTTP ${status}): a proxy's or another server's, not the provider's`;
  }
  if (status === 401 || status === 403) return `the credentials are refused (HTTP ${status})`;
  if (!readJsonObject(body)) return `the response is unreadable (HTTP ${status})`;
  return `the response is not the expected one (HTTP ${status})`;
}

/** Returns `isWell`, and reports the problem of a probe that is not. */
export function judgeProbe(result: HttpResult, isWell: boolean, report?: ReportProblem): boolean {
  if (!isWell) report?.(probeProblem(result));
  return isWell;
}

/** Returns true for a success status, for which the body determines the outcome. */
export function isSuccess(status: number): boolean {
  return status >= 200 && status < 300;
}

/** Builds an approved outcome. @param authorizationCode '' if the provider reports none. */
export function approvedOutcome(
  reported: {
    readonly providerData: ProviderData;
    readonly reference?: string;
    readonly providerPaymentId?: string;
    readonly alarm?: true;
    readonly corrects?: readonly string[];
    readonly isAnyTry?: true;
  },
  authorizationCode = '',
): Outcome {
  return { kind: 'approved', ...reported, authorizationCode, retrievalReferenceNumber: '' };
}

/** Returns the field of an outcome that names the earlier reports which a report corrects. @param row by later report. */
export function correcting(
  row: Readonly<Record<string, readonly string[]>>,
  later: string,
): { readonly corrects?: readonly string[] } {
  const corrects = Object.hasOwn(row, later) ? row[later] : undefined;
  return corrects ? { corrects } : {};
}

/** Builds the outcome of a transaction that, according to the provider, did not happen and never will. */
export function neverHappens(detail: string): Outcome {
  return { kind: 'not_sent', detail, because: 'turned_away' };
}

/** Builds the outcome of an attempt that the connector itself turned away: nothing was sent. */
export function turnedAway(detail: string): Outcome {
  return { kind: 'not_sent', detail: `nothing was sent to the provider: ${detail}`, because: 'turned_away' };
}

/** Builds an unknown outcome. */
export function unknownOutcome(detail: string, providerData?: ProviderData): Outcome {
  return { kind: 'unknown', detail, providerData };
}

/** Builds an unknown outcome that needs manual review because money may have moved without a request. */
export function alarmingOutcome(detail: string, providerData?: ProviderData): Outcome {
  return { kind: 'unknown', detail: `alarm: ${detail}`, providerData, alarm: true };
}

/**
 * Returns the outcome of a capture or a refund whose answer names other money than was requested: the operation has taken
 * place with that money, and needs manual review. An operation that has moved nothing has no money to compare.
 *
 * @param difference the provider's name of the differing field; undefined if nothing differs.
 * @param moved the money in the answer; undefined if it is unreadable, which leaves the outcome unknown.
 */
export function withMovedMoney(
  outcome: Outcome,
  difference: string | undefined,
  moved: Money | undefined,
): Outcome {
  if (difference === undefined || outcome.kind !== 'approved') return outcome;
  if (!moved) return answeredAboutAnother(difference);
  const responseMessage = `alarm: the ${difference} that was moved is not the requested one`;
  return {
    ...outcome,
    providerData: { ...outcome.providerData, responseMessage },
    alarm: true,
    money: moved,
  };
}

/**
 * Builds the outcome of a response that does not match the request: a different amount, currency or reference.
 *
 * @param what the provider's name of the differing field; never its value.
 */
export function answeredAboutAnother(what: string): Outcome {
  return alarmingOutcome(`the provider's response is not about this attempt: its ${what} differs`);
}
