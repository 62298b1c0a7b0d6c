import { readPeriod } from '#src/exports/period.ts';
import { requireZone } from '#src/payments/read/list-times.ts';
import { ServiceError } from '#src/service-error.ts';
import type { TotalsPeriod } from '#src/store/tables/payment-totals.ts';

type Moment = Temporal.ZonedDateTime;

/** Time from a moment to another, which is not in it. */
export type Stretch = { readonly from: Moment; readonly before: Moment };

/** The period of the figures, in parts, and the time before it. All moments are whole hours (UTC), since totals are. */
export type FiguresPeriod = Stretch & {
  readonly zone: string;
  /** The stretch of each part, in order. */
  readonly parts: readonly Stretch[];
  /** The length of a part, such as "an hour". */
  readonly partName: string;
  readonly past: Stretch;
  /** Says in words which hours it has. */
  readonly covers: string;
  /** Says why it is not the period that was asked for; undefined if it is. */
  readonly fault: string | undefined;
};

/** The periods to choose. */
export const SPANS = {
  '1h': 'Last whole hour',
  '24h': '24 hours',
  '7d': '7 days',
  '30d': '30 days',
} as const;
type Span = keyof typeof SPANS;
/** The period if none is chosen. */
export const USUAL_SPAN: Span = '24h';

/** Limit on the parts of a period. A day or a week more fits: the first part may be cut. */
const MAX_PARTS = 32;

/**
 * Reads the period: one of SPANS, or a range in a time zone.
 *
 * @param query returns the value of a parameter; "" if it is absent.
 */
export function readFiguresPeriod(query: (name: string) => string, now: Date): FiguresPeriod {
  const span = Object.hasOwn(SPANS, query('span')) ? (query('span') as Span) : USUAL_SPAN;
  const faults: string[] = [];
  const attempt = <T>(read: () => T): T | undefined => {
    try {
      return read();
    } catch (error) {
      if (!(error instanceof ServiceError)) throw error;
      faults.push(error.message);
      return undefined;
    }
  };
  const zone = attempt(() => requireZone('zone', query('zone') || 'UTC')) ?? 'UTC';
  const [from, before] = [query('from') || undefined, query('before') || undefined];
  const range =
    from === undefined && before === undefined
      ? undefined
      : attempt(() => readPeriod({ from, before, zone }));
  const found = range ? rangeOf(range) : spanOf(span, instantOf(now).toZonedDateTimeISO(zone));
  const fault =
    faults.length > 0
      ? `${faults.join('; ')}. These are the figures of: ${SPANS[span]}, ${zone}.`
      : undefined;
  return { ...found, ...partsOf(found), zone, fault };
}

/** Returns the period as the totals need it. */
export function totalsPeriodOf({ parts, before, past }: FiguresPeriod): TotalsPeriod {
  return {
    starts: parts.map(({ from }) => dateOf(from)),
    before: dateOf(before),
    past: { from: dateOf(past.from), before: dateOf(past.before) },
  };
}

/** Reports whether a period and the time before it lie in the two days of which there are totals by country and code. */
export function isRecent({ from, past }: FiguresPeriod, now: Date): boolean {
  const end = endOfHour(instantOf(now).toZonedDateTimeISO('UTC'));
  const reaches = (moment: Moment, hours: number) =>
    Temporal.Instant.compare(moment.toInstant(), end.subtract({ hours }).toInstant()) >= 0;
  return reaches(from, 24) && reaches(past.from, 48);
}

type Found = Stretch & Pick<FiguresPeriod, 'past' | 'covers'>;

function spanOf(span: Span, now: Moment): Found {
  const end = endOfHour(now);
  const days = (n: number) => ({
    from: startOfHour(now.startOfDay().subtract({ days: n - 1 })),
    before: end,
  });
  switch (span) {
    case '1h': {
      const before = startOfHour(now);
      return {
        ...againstBefore({ from: before.subtract({ hours: 1 }), before }, { hours: 1 }),
        covers: 'the last whole hour: the overview has the running one',
      };
    }
    case '24h':
      return {
        ...againstBefore({ from: end.subtract({ hours: 24 }), before: end }, { hours: 24 }),
        covers: 'the running hour and the 23 before it',
      };
    case '7d':
      return { ...againstBefore(days(7), { days: 7 }), covers: 'today so far and the 6 days before' };
    case '30d':
      return { ...againstBefore(days(30), { days: 30 }), covers: 'today so far and the 29 days before' };
  }
}

function rangeOf({ from, before }: Stretch): Found {
  const stretch = { from: startOfHour(from), before: startOfHour(before.add({ minutes: 59, seconds: 59 })) };
  const covers = 'whole hours (UTC), so that it may begin and end up to an hour outside the range';
  const isWhole = stretch.from.equals(from) && stretch.before.equals(before);
  return {
    ...againstBefore(stretch, from.until(before, { largestUnit: 'days' })),
    covers: isWhole ? 'the range' : covers,
  };
}

function againstBefore({ from, before }: Stretch, length: Temporal.Duration | Temporal.DurationLike) {
  const past = { from: startOfHour(from.subtract(length)), before: startOfHour(before.subtract(length)) };
  return { from, before, past };
}

function partsOf({ from, before }: Stretch): Pick<FiguresPeriod, 'parts' | 'partName'> {
  const hours = from.until(before).total('hours');
  const days = Math.ceil(hours / 24 / MAX_PARTS);
  const [step, partName]: readonly [Temporal.DurationLike, string] =
    hours <= MAX_PARTS
      ? [{ hours: 1 }, 'an hour']
      : hours <= 6 * MAX_PARTS
        ? [{ hours: 6 }, '6 hours']
        : [{ days }, days === 1 ? 'a day' : `${days} days`];
  const starts: Moment[] = [];
  for (let n = 0, at = from; Temporal.ZonedDateTime.compare(at, before) < 0; n++) {
    starts.push(at);
    const next = Object.fromEntries(
      Object.entries(step).map(([unit, size]) => [unit, Number(size) * (n + 1)]),
    );
    at = startOfHour(from.add(next));
  }
  return { parts: starts.map((start, i) => ({ from: start, before: starts[i + 1] ?? before })), partName };
}

/** Returns the beginning of a moment's hour in UTC: some zones differ from it by half an hour. */
function startOfHour(moment: Moment): Moment {
  const hour = moment.toInstant().round({ smallestUnit: 'hour', roundingMode: 'floor' });
  return hour.toZonedDateTimeISO(moment.timeZoneId);
}

const endOfHour = (moment: Moment) => startOfHour(moment).add({ hours: 1 });
const instantOf = (date: Date) => Temporal.Instant.fromEpochMilliseconds(date.getTime());
const dateOf = (moment: Moment) => new Date(moment.epochMilliseconds);
