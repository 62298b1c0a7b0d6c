import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';
import { invalidField } from '#src/service-error.ts';
import { timestampText } from '#src/wire/wire-json-encode.ts';
import { parseTimestamp } from '#src/wire/wire-json-well-known.ts';

const UTC = 'UTC';
/** The name of a zone, or an offset. Temporal would also take the offset of a whole time. */
const ZONE = /^(?:[A-Za-z][A-Za-z0-9_+\-/]{0,63}|[+-]\d\d(?::?\d\d)?)$/;
const DATE = /^\d{4}-\d\d-\d\d$/;
const SECONDS_A_DAY = 86_400n;
const YEAR_ONE_MS = Date.parse('0001-01-01T00:00:00Z');
const LAST_SECOND = 253_402_300_799n;

/**
 * Returns the first moment of a date or time; undefined for "". @param zone of a date, as `zoneOf` returns it.
 *
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function firstTime(field: string, text: string, zone = UTC): string | undefined {
  if (text === '') return undefined;
  const time = parseTime(field, text);
  return DATE.test(text) && zone !== UTC ? dayIn(zone, text, 0) : timestampText(time);
}

/**
 * Returns the moment just after a date or time: a day later for a date, a microsecond later for a time; undefined for
 * "" and after the year 9999.
 *
 * @param zone of a date, as `zoneOf` returns it.
 * @throws ServiceError INVALID_PARAMETERS.
 */
export function timeAfter(field: string, text: string, zone = UTC): string | undefined {
  if (text === '') return undefined;
  const time = parseTime(field, text);
  if (DATE.test(text) && zone !== UTC) return dayIn(zone, text, 1);
  const micros = DATE.test(text) ? 0 : Math.trunc(time.nanos / 1000) + 1;
  const seconds = time.seconds + (DATE.test(text) ? SECONDS_A_DAY : BigInt(Math.trunc(micros / 1e6)));
  if (seconds > LAST_SECOND) return undefined;
  return timestampText(create(TimestampSchema, { seconds, nanos: (micros % 1e6) * 1000 }));
}

/** Checks the name of a time zone as `requireZone`; "" is UTC. */
export function zoneOf(field: string, text: string): string {
  return text === '' ? UTC : requireZone(field, text);
}

/**
 * Checks the name of a time zone.
 *
 * @param text an IANA name, or an offset such as -05:00.
 * @throws ServiceError INVALID_PARAMETERS for an unknown zone.
 */
export function requireZone(field: string, text: string): string {
  // In a query string, an unescaped plus sign decodes to a space.
  const zone = text.replace(/^ /, '+');
  try {
    if (ZONE.test(zone)) return Temporal.Instant.fromEpochMilliseconds(0).toZonedDateTimeISO(zone).timeZoneId;
  } catch {
    // The zone is unknown.
  }
  const message = 'must be a time zone such as America/Bogota, or an offset from UTC such as -05:00';
  throw invalidField(field, 'INVALID_FORMAT', message);
}

/** Returns the first moment of a day in a zone: if it has no midnight, the first moment after; undefined after 9999. */
function dayIn(zone: string, date: string, daysLater: number): string | undefined {
  const day = Temporal.PlainDate.from(date).add({ days: daysLater });
  if (day.year > 9999) return undefined;
  const firstMs = day.toZonedDateTime(zone).toInstant().epochMilliseconds;
  const lastMs = Number(LAST_SECOND) * 1000;
  if (firstMs > lastMs) return undefined;
  // PostgreSQL has no year 0.
  return `${new Date(Math.max(firstMs, YEAR_ONE_MS)).toISOString().slice(0, -1)}000Z`;
}

function parseTime(field: string, text: string): Timestamp {
  // In a query string, an unescaped plus sign decodes to a space.
  const spelled = DATE.test(text) ? `${text}T00:00:00Z` : text.replace(/(T.*) (\d\d:\d\d)$/, '$1+$2');
  const time = parseTimestamp(spelled);
  if (time) return time;
  const message = 'must be a time such as 2026-01-31T09:08:07Z (RFC 3339) or a date such as 2026-01-31';
  throw invalidField(field, 'INVALID_FORMAT', message);
}
