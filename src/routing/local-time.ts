/** The time zone UTC. */
export const UTC: Intl.DateTimeFormat = timeZone('UTC');

type Reading = { readonly second: number; readonly local: number };

// Formatting takes longer than a hundred conditions, and the conditions of a payment all ask for the same time.
const lastReadings = new WeakMap<Intl.DateTimeFormat, Reading>();

/** Returns a time zone of the IANA database, or an offset such as +02:00. @throws RangeError when there is none. */
export function timeZone(name: string): Intl.DateTimeFormat {
  const date = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  const time = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
  return new Intl.DateTimeFormat('en-US', { ...date, ...time, timeZone: name });
}

/** Returns a date whose UTC fields hold the local time in a zone. */
export function localTime(time: Date, zone: Intl.DateTimeFormat): Date {
  if (zone === UTC) return time;
  const milliseconds = time.getUTCMilliseconds();
  const second = time.getTime() - milliseconds;
  let reading = lastReadings.get(zone);
  if (reading?.second !== second) {
    const parts = zone.formatToParts(second);
    const part = (name: string) => Number(parts.find(({ type }) => type === name)?.value);
    const day = [part('year'), part('month') - 1, part('day')] as const;
    reading = { second, local: Date.UTC(...day, part('hour'), part('minute'), part('second')) };
    lastReadings.set(zone, reading);
  }
  return new Date(reading.local + milliseconds);
}
