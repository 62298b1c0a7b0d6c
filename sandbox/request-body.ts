import { ApiError } from './api-error.ts';

/** A JSON object within the provider's limits on strings, arrays and depth. */
export type JsonRecord = Readonly<Record<string, unknown>>;

const MAX_DEPTH = 16;
const MAX_TEXT_LENGTH = 1_024;
/** A wallet's token, in the field `data`, has up to 16 KiB; a character may count twice. */
const MAX_TOKEN_LENGTH = 32 * 1_024;
const MAX_MEMBERS = 200;

/**
 * Parses a request's body.
 *
 * @throws ApiError 400, which does not quote the body, unlike the engine's own error.
 */
export function parseBody(text: string): JsonRecord {
  let body: unknown;
  try {
    body = JSON.parse(text);
  } catch {
    throw new ApiError(400, 'invalid_request', 'the body is not JSON');
  }
  if (!isRecord(body)) throw new ApiError(400, 'invalid_request', 'the body is not a JSON object');
  checkLimits(body, 1);
  return body;
}

/** Reads the object at a path. The last name of the path is the key in `parent`; messages show the whole path. */
export function object(parent: JsonRecord, path: string): JsonRecord {
  const value = parent[keyOf(path)];
  if (!isRecord(value)) throw invalid(path, 'an object is required');
  return value;
}

/** Reads the object at a path; undefined if it is absent or null. */
export function optionalObject(parent: JsonRecord, path: string): JsonRecord | undefined {
  return isAbsent(parent[keyOf(path)]) ? undefined : object(parent, path);
}

/** Reads the objects in a list; returns none if the list is absent. */
export function objects(parent: JsonRecord, path: string): readonly JsonRecord[] {
  const value = parent[keyOf(path)];
  if (isAbsent(value)) return [];
  if (!Array.isArray(value) || !value.every(isRecord)) throw invalid(path, 'a list of objects is required');
  return value;
}

/** Reads the string at a path, which must match a pattern. */
export function text(parent: JsonRecord, path: string, pattern: RegExp): string {
  const value = parent[keyOf(path)];
  if (typeof value !== 'string' || !pattern.test(value)) throw invalid(path, 'has the wrong format');
  return value;
}

/** Reads the string at a path; undefined if it is absent or null. */
export function optionalText(parent: JsonRecord, path: string, pattern = /(?:)/): string | undefined {
  return isAbsent(parent[keyOf(path)]) ? undefined : text(parent, path, pattern);
}

/** Reads the integer at a path, within a range. */
export function integer(parent: JsonRecord, path: string, range: { min: number; max: number }): number {
  const value = parent[keyOf(path)];
  if (!Number.isSafeInteger(value) || (value as number) < range.min || (value as number) > range.max) {
    throw invalid(path, `an integer from ${range.min} to ${range.max} is required`);
  }
  return value as number;
}

/** Reads the integer at a path; undefined if it is absent or null. */
export function optionalInteger(parent: JsonRecord, path: string, range: { min: number; max: number }) {
  return isAbsent(parent[keyOf(path)]) ? undefined : integer(parent, path, range);
}

/** Reads the boolean at a path. */
export function boolean(parent: JsonRecord, path: string): boolean {
  const value = parent[keyOf(path)];
  if (typeof value !== 'boolean') throw invalid(path, 'true or false is required');
  return value;
}

/** Reads the boolean at a path; undefined if it is absent or null. */
export function optionalBoolean(parent: JsonRecord, path: string): boolean | undefined {
  return isAbsent(parent[keyOf(path)]) ? undefined : boolean(parent, path);
}

function checkLimits(value: unknown, depth: number, name = ''): void {
  const maxLength = name === 'data' ? MAX_TOKEN_LENGTH : MAX_TEXT_LENGTH;
  if (typeof value === 'string' && value.length > maxLength) {
    throw new ApiError(400, 'invalid_request', `a string is longer than ${maxLength} characters`);
  }
  if (typeof value !== 'object' || value === null) return;
  if (depth > MAX_DEPTH)
    throw new ApiError(400, 'invalid_request', `nested more than ${MAX_DEPTH} levels deep`);
  const members = Object.entries(value);
  if (members.length > MAX_MEMBERS) {
    throw new ApiError(400, 'invalid_request', `a list or object has more than ${MAX_MEMBERS} members`);
  }
  for (const [key, member] of members) checkLimits(member, depth + 1, key);
}

function invalid(path: string, message: string): ApiError {
  return new ApiError(422, 'invalid_request', message, path);
}

function keyOf(path: string): string {
  return path.slice(path.lastIndexOf('.') + 1);
}

function isAbsent(value: unknown): boolean {
  return value === undefined || value === null;
}

function isRecord(value: unknown): value is JsonRecord {
  return typeof value === 'object' && value !== null && !Array.isArray(value);
}
