import type { Timestamp } from '@bufbuild/protobuf/wkt';

type Clock = { readonly format: Intl.DateTimeFormat; second: number; local: number };

// A formatter takes longer to make than all conditions take, and the conditions of a payment all ask for one time.
const clocks = new Map<string, Clock>();

/** A date whose UTC is the local time; without a zone, UTC. */
export function localTime({ seconds, nanos }: Timestamp, zone: string | undefined): Date {
  const second = Number(seconds);
  const milliseconds = Math.floor(nanos / 1e6);
  if (zone === undefined) return new Date(second * 1000 + milliseconds);
  const clock = clocks.get(zone) ?? { format: formatOf(zone), second: Number.NaN, local: 0 };
  clocks.set(zone, clock);
  if (clock.second !== second) {
    const parts = clock.format.formatToParts(second * 1000);
    const part = (name: string) => Number(parts.find(({ type }) => type === name)?.value);
    const day = [part('year'), part('month') - 1, part('day')] as const;
    clock.local = Date.UTC(...day, part('hour'), part('minute'), part('second'));
    clock.second = second;
  }
  return new Date(clock.local + milliseconds);
}

function formatOf(timeZone: string): Intl.DateTimeFormat {
  const date = { year: 'numeric', month: 'numeric', day: 'numeric' } as const;
  const time = { hour: 'numeric', minute: 'numeric', second: 'numeric', hourCycle: 'h23' } as const;
  return new Intl.DateTimeFormat('en-US', { ...date, ...time, timeZone });
}
