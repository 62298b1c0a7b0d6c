import { requireZone } from '#src/payments/read/list-times.ts';
import { invalidField, notAllowed } from '#src/service-error.ts';

/** A period in a time zone. */
export type Period = {
  /** An IANA name, or an offset such as -05:00. */
  readonly zone: string;
  /** The first moment. */
  readonly from: Temporal.ZonedDateTime;
  /** The end, which is not in the period. */
  readonly before: Temporal.ZonedDateTime;
};

/** The longest period: a year, in days of its zone. */
export const MAX_DAYS = 366;

const MONTH = /^2\d{3}-(?:0[1-9]|1[0-2])$/;
const DATE = /^2\d{3}-\d\d-\d\d$/;
const LOCAL = /^2\d{3}-\d\d-\d\dT\d\d:\d\d(?::\d\d)?$/;
const TIME = /^2\d{3}-\d\d-\d\dT\d\d:\d\d:\d\d(?:\.\d{1,6})?(?:Z|[+-]\d\d:\d\d)$/;

/**
 * Reads a period: `month`, or `from` and `before`, in a zone, by default UTC. A time without an offset is local. A date
 * is its first instant in the zone, even if the zone has no midnight on that day.
 *
 * @throws ServiceError INVALID_PARAMETERS, which names the parameter.
 */
export function readPeriod(given: {
  readonly month?: string | undefined;
  readonly from?: string | undefined;
  readonly before?: string | undefined;
  readonly zone?: string | undefined;
}): Period {
  const { month, from, before } = given;
  const zone = requireZone('zone', given.zone ?? 'UTC');
  if (month !== undefined) {
    const [other] = Object.entries({ from, before }).find(([, value]) => value !== undefined) ?? [];
    if (other !== undefined) throw notAllowed(other, 'must be absent with month');
    return monthIn(month, zone);
  }
  if (from === undefined) throw invalidField('from', 'REQUIRED', 'is required, or month=2026-09');
  if (before === undefined)
    throw invalidField('before', 'REQUIRED', 'is required: the end, which is excluded');
  const period = { zone, from: momentIn('from', from, zone), before: momentIn('before', before, zone) };
  const days = period.from.until(period.before, { largestUnit: 'days' });
  if (days.sign <= 0) throw invalidField('before', 'OUT_OF_RANGE', 'must be later than from');
  if (Temporal.Duration.compare(days, { days: MAX_DAYS }, { relativeTo: period.from }) > 0) {
    throw invalidField('before', 'OUT_OF_RANGE', `must be at most ${MAX_DAYS} days after from`);
  }
  return period;
}

/** Names a moment for a file: its date, with the time of day if the day has already begun. */
export function momentName(moment: Temporal.ZonedDateTime): string {
  const date = moment.toPlainDate().toString();
  return moment.equals(moment.startOfDay())
    ? date
    : `${date}T${moment.toPlainTime().toString({ smallestUnit: 'second' }).replaceAll(':', '')}`;
}

function monthIn(text: string, zone: string): Period {
  if (!MONTH.test(text)) throw invalidField('month', 'INVALID_FORMAT', 'must be a month such as 2026-09');
  const first = Temporal.PlainDate.from(`${text}-01`);
  return { zone, from: first.toZonedDateTime(zone), before: first.add({ months: 1 }).toZonedDateTime(zone) };
}

function momentIn(field: string, text: string, zone: string): Temporal.ZonedDateTime {
  // In a query string, an unescaped plus sign decodes to a space.
  const spelled = text.replace(/(T.*) (\d\d:\d\d)$/, '$1+$2');
  try {
    if (DATE.test(spelled)) return Temporal.PlainDate.from(spelled).toZonedDateTime(zone);
    if (LOCAL.test(spelled)) return Temporal.PlainDateTime.from(spelled).toZonedDateTime(zone);
    if (TIME.test(spelled)) return Temporal.Instant.from(spelled).toZonedDateTimeISO(zone);
  } catch {
    // A day or an hour that no calendar has.
  }
  const message = 'must be a date such as 2026-09-01, or a time such as 2026-09-01T05:00:00Z (RFC 3339)';
  throw invalidField(field, 'INVALID_FORMAT', message);
}
