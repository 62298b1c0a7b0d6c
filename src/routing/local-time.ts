/** A time, and its local time in a zone. */
type Reading = { readonly atMs: number; readonly local: Temporal.PlainDateTime };

// Reading a zone's rules takes longer than a condition, and a payment's conditions all ask for the same time.
const lastReadings = new Map<string, Reading>();

/**
 * Returns the local time in a zone: a name of the IANA database, or an offset such as +02:00.
 *
 * @throws RangeError if there is no such zone.
 */
export function localTime(time: Date, zone: string): Temporal.PlainDateTime {
  const atMs = time.getTime();
  const last = lastReadings.get(zone);
  if (last?.atMs === atMs) return last.local;
  const local = Temporal.Instant.fromEpochMilliseconds(atMs).toZonedDateTimeISO(zone).toPlainDateTime();
  lastReadings.set(zone, { atMs, local });
  return local;
}
