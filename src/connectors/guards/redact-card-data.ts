import type { JsonObject, JsonValue } from '@bufbuild/protobuf';
import { passesLuhn } from '#src/luhn.ts';
import type { Secret } from '#src/secret.ts';
import type { AttemptCard } from '../port/attempt.ts';

/** Functions that remove card data from a provider's data and limit its size. */
export type Redactor = {
  /** Returns a string without card data, cut to 1,024 characters. */
  text(value: string): string;
  /**
   * Returns an identifier without the attempt's own card data. Keeps digits that resemble other card numbers, since one
   * identifier in ten may do so.
   */
  identifier(value: string): string;
  /** Returns true if a string of any length contains no card data. */
  isClean(value: string): boolean;
  /**
   * Returns a copy of an object with card data removed from its keys and values; a number that contains card data
   * becomes "[removed]".
   */
  json(value: JsonObject): JsonObject;
};

const REMOVED = '[removed]';
const MAX_TEXT_LENGTH = 1_024;
/** In an object, deeper values and values beyond MAX_VALUES are removed. */
const MAX_DEPTH = 12;
const MAX_VALUES = 1_000;

/**
 * Number of consecutive card digits that must not be shown; for a shorter number, all digits. The issuer's number and
 * the last four digits may be shown.
 */
const PIECE_LENGTH = 12;

/**
 * Creates the functions that remove card data from a provider's data. For the attempt's own card, `card`, if any:
 *
 * - its number, and every piece of 12 or more of its digits, regardless of separators and even across a list (a piece
 *   that repeats one digit reveals nothing and stays);
 * - its security code, standing alone or after a label such as CVV.
 *
 * For the attempt's own token of a wallet, `token`, if any: every piece of 16 or more of its characters.
 *
 * For any card:
 *
 * - 13 to 19 digits that begin like the cards of a known scheme and pass the Luhn check, grouped or not;
 * - three or four digits after a label for a security code.
 *
 * Text is searched both as is and percent-decoded. Other encodings are not decoded: no known provider responds with an
 * encoded card number, and every provider already has the number.
 *
 * UUIDs, digests and ISO 8601 times pass unchanged. So do Unix timestamps in milliseconds, microseconds or nanoseconds,
 * because no card scheme's numbers begin with 1. One in ten provider identifiers of 13 to 19 digits that begin with 3
 * to 6 looks like a card number and is removed: losing it does less harm than showing a card number.
 */
export function createRedactor(
  card?: Pick<AttemptCard, 'number' | 'securityCode'>,
  token?: Secret,
): Redactor {
  const withoutToken = tokenRemover(token?.reveal() ?? '');
  const pieces = piecesOf(card?.number.reveal() ?? '');
  const code = card?.securityCode?.reveal();
  const codeAlone = code ? codePattern(code) : undefined;

  function withoutOwn(value: string): string {
    const shown = withoutPieces(withoutToken(value), pieces);
    if (!code || !codeAlone || !shown.includes(code)) return shown;
    return outsideOfKept(shown, (part) => part.replace(codeAlone, REMOVED));
  }

  function withoutAny(value: string): string {
    const shown = withoutOwn(value);
    if (!NAMED_CODE.test(shown) && digitCount(shown) < MIN_NUMBER_LENGTH) return shown;
    return outsideOfKept(shown, (part) => withoutLookalikes(part.replace(NAMED_CODES, `$1${REMOVED}`)));
  }

  /** Applies `remove` to the text, or removes the whole text if its percent-decoded form contains card data. */
  function redact(value: string, remove: (text: string) => string): string {
    if (WORD.test(value)) return withoutToken(value);
    if (ALL_KEPT.test(value)) return withoutPieces(withoutToken(value), pieces);
    const decoded = percentDecoded(value);
    return decoded !== value && remove(decoded) !== decoded ? REMOVED : remove(value);
  }

  const text = (value: string) => redact(value, withoutAny).slice(0, MAX_TEXT_LENGTH).toWellFormed();
  const isClean = (value: string) => redact(value, withoutAny) === value;
  const identifier = (value: string) => redact(value, withoutOwn);

  function json(value: JsonObject): JsonObject {
    let valuesLeft = MAX_VALUES;

    function shownObject(object: JsonObject, depth: number): JsonObject {
      return Object.fromEntries(
        Object.entries(object).map(([key, inner]) => {
          const isCode = CODE_KEY.test(key) && /^\d{3,4}$/.test(String(inner));
          return [text(key), isCode ? REMOVED : shown(inner, depth + 1)];
        }),
      );
    }

    function shown(inner: JsonValue, depth: number): JsonValue {
      valuesLeft -= 1;
      if (valuesLeft < 0 || depth > MAX_DEPTH) return REMOVED;
      if (typeof inner === 'string') return text(inner);
      if (typeof inner === 'number') {
        const written = String(inner);
        return Number.isFinite(inner) && text(written) === written ? inner : REMOVED;
      }
      if (typeof inner !== 'object' || inner === null) return inner;
      if (!Array.isArray(inner)) return shownObject(inner, depth);
      const list = inner.map((element) => shown(element, depth + 1));
      const written = list.filter((element) => typeof element !== 'object').join(' ');
      return withoutPieces(written, pieces) === written ? list : REMOVED;
    }

    return shownObject(value, 1);
  }

  return { text, identifier, isClean, json };
}

/** Number of consecutive characters of a wallet's token that must not be shown; for a shorter token, all. */
const TOKEN_PIECE_LENGTH = 16;

/** Creates the function that removes every piece of a wallet's token from a string. @param token '' if there is none. */
function tokenRemover(token: string): (value: string) => string {
  const length = Math.min(TOKEN_PIECE_LENGTH, token.length);
  if (length === 0) return (value) => value;
  const pieces = new Set<string>();
  for (let i = 0; i + length <= token.length; i++) pieces.add(token.slice(i, i + length));
  return (value) => {
    let shown = '';
    let shownTo = 0;
    for (let i = 0; i + length <= value.length; i++) {
      if (!pieces.has(value.slice(i, i + length))) continue;
      let end = i + length;
      while (end < value.length && pieces.has(value.slice(end + 1 - length, end + 1))) end += 1;
      shown += value.slice(shownTo, i) + REMOVED;
      shownTo = end;
      i = end - 1;
    }
    return shown + value.slice(shownTo);
  };
}

/** Returns all pieces of a number of one length, except pieces that repeat one digit. */
function piecesOf(number: string): readonly string[] {
  const pieces: string[] = [];
  const length = Math.min(PIECE_LENGTH, number.length);
  for (let i = 0; length > 0 && i + length <= number.length; i++) {
    const piece = number.slice(i, i + length);
    if (!/^(\d)\1*$/.test(piece)) pieces.push(piece);
  }
  return pieces;
}

function digitCount(value: string): number {
  let count = 0;
  for (let i = 0; i < value.length; i++) {
    const code = value.charCodeAt(i);
    if (code >= 48 && code <= 57) count += 1;
  }
  return count;
}

/** Removes every stretch of a string whose digits, regardless of separators, form a piece. */
function withoutPieces(value: string, pieces: readonly string[]): string {
  const digits = value.replace(/\D+/g, '');
  if (!pieces.some((piece) => digits.includes(piece))) return value;
  const pieceLength = pieces[0]?.length ?? 0;
  const places = [...value.matchAll(/\d/g)].map(({ index }) => index);
  const placeOf = (i: number) => places[i] ?? 0;
  let shown = '';
  let shownTo = 0;
  for (let i = 0; i + pieceLength <= digits.length; i++) {
    if (!pieces.includes(digits.slice(i, i + pieceLength))) continue;
    let last = i + pieceLength - 1;
    // Extends the stretch over further pieces that overlap it, and over digits that follow it directly.
    while (
      pieces.includes(digits.slice(last - pieceLength + 2, last + 2)) ||
      (last + 1 < digits.length && placeOf(last + 1) === placeOf(last) + 1)
    ) {
      last += 1;
    }
    shown += value.slice(shownTo, placeOf(i)) + REMOVED;
    shownTo = placeOf(last) + 1;
    i = last;
  }
  // Without the removed digits, the rest may form another piece.
  return shownTo === 0 ? value : withoutPieces(shown + value.slice(shownTo), pieces);
}

/**
 * Builds a pattern that matches a security code, standing alone or right after a label, but not in a decimal number or
 * an IPv4 address.
 */
function codePattern(code: string): RegExp {
  return new RegExp(`(?:(?<![0-9a-z]|\\d[.,])|(?<=cv[cvn]|cid|csc|code))${code}(?![0-9a-z]|[.,]\\d)`, 'gi');
}

/** Matches names and keys of security codes. */
const NAMED_CODE = /((?:cv[cvn]2?|csc|security[ _-]?code)[^\p{L}\p{Nd}]{0,3})\d{3,4}(?!\d)/iu;
const NAMED_CODES = new RegExp(NAMED_CODE, 'giu');
const CODE_KEY = /^(cv[cvn]2?|csc|cid|(card_?)?(security|verification)_?(code|value))$/i;

/** Matches digits known not to be card data: UUIDs, digests, dates and times of day. */
const KEPT_FORMS = [
  '[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}',
  '(?=\\d*[a-f])[0-9a-f]{32,}',
  '(?:19|20)\\d\\d-[01]\\d-[0-3]\\d(?:[T ][0-2]\\d:[0-5]\\d(?::[0-6]\\d(?:[.,]\\d{1,9})?)?(?:Z|[+-]\\d\\d:?\\d\\d)?)?',
  '[0-2]\\d:[0-5]\\d:[0-6]\\d(?:[.,]\\d{1,9})?Z?',
].join('|');
const KEPT = new RegExp(`((?<![0-9a-z])(?:${KEPT_FORMS})(?![0-9a-z]))`, 'i');
/**
 * Matches a string that consists of one such form, optionally with a prefix of letters, as most strings with many
 * digits do.
 */
const ALL_KEPT = new RegExp(`^(?:[a-z]+_)?(?:${KEPT_FORMS})$`, 'i');

function outsideOfKept(value: string, change: (part: string) => string): string {
  // The pattern has one group, so every second part is a match.
  return value
    .split(KEPT)
    .map((part, i) => (i % 2 === 1 ? part : change(part)))
    .join('');
}

/** Groups of digits, separated by up to three characters other than letters. */
const GROUPED_DIGITS = /\d+(?:[^\p{L}\p{Nd}]{1,3}\d+)*/gu;
/**
 * Matches the first digits of card numbers (ISO/IEC 7812-1: 3 to 6 are banks and travel; Mastercard's 2221 to 2720;
 * RuPay's 81, 82).
 */
const CARD_BEGINNING = /^(?:[3-6]|222[1-9]|22[3-9]|2[3-6]|27[01]|2720|8[12])/;
const MIN_NUMBER_LENGTH = 13;
const MAX_NUMBER_LENGTH = 19;

function withoutLookalikes(value: string): string {
  return value.replace(GROUPED_DIGITS, (run) => {
    if (run.length < MIN_NUMBER_LENGTH) return run;
    const groups = [...run.matchAll(/\d+/g)];
    let shown = '';
    let shownTo = 0;
    for (let i = 0; i < groups.length; i++) {
      const last = endOfLookalike(groups, i);
      if (last === undefined) continue;
      shown += run.slice(shownTo, groups[i]?.index) + REMOVED;
      shownTo = (groups[last]?.index ?? 0) + (groups[last]?.[0].length ?? 0);
      i = last;
    }
    return shown + run.slice(shownTo);
  });
}

/** Returns the last group of the longest number that starts at the group `first` and looks like a card number. */
function endOfLookalike(groups: readonly RegExpExecArray[], first: number): number | undefined {
  let digits = '';
  let end: number | undefined;
  for (let i = first; i < groups.length && digits.length < MAX_NUMBER_LENGTH; i++) {
    digits += groups[i]?.[0];
    if (looksLikeCardNumber(digits.replace(/^0+/, ''))) end = i;
  }
  return end;
}

function looksLikeCardNumber(digits: string): boolean {
  return (
    digits.length >= MIN_NUMBER_LENGTH &&
    digits.length <= MAX_NUMBER_LENGTH &&
    CARD_BEGINNING.test(digits) &&
    passesLuhn(digits)
  );
}

/** Matches a string without digits or escapes, as most strings are. */
const WORD = /^[A-Za-z_ .:-]*$/;

/** Decodes percent-encoded bytes. */
function percentDecoded(value: string): string {
  return value.replace(/%([0-9a-f]{2})/gi, (_escape, hex) => String.fromCharCode(Number.parseInt(hex, 16)));
}
