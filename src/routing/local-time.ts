/** A time, and its local time in a zone. */
type Reading = { readonly atMs: number; readonly local: Temporal.PlainDateTime };

// Cached, since reading a zone's rules takes longer than evaluating a condition, and all conditions use the payment's
// time.
const lastReadings = new Map<string, Reading>();

/**
 * Returns the local time in a zone, given as an IANA name or an offset such as +02:00.
 *
 * @throws RangeError for an unknown zone.
 */
export function localTime(time: Date, zone: string): Temporal.PlainDateTime {
  const atMs = time.getTime();
  const last = lastReadings.get(zone);
  if (last?.atMs === atMs) return last.local;
  const local = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(zone).toPlainDateTime();
  lastReadings.set(zone, { atMs, local });
  return local;
}
