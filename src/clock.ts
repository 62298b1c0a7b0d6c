import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';

/** Difference from the wall clock that resets the steady clock. */
const MAX_DRIFT_MS = 20;

/**
 * Makes the clock for records: the wall clock with the steady clock's microseconds. Later reads are later, unless the
 * wall clock is set back.
 */
export function systemClock(): () => Timestamp {
  let originMs = Date.now() - performance.now();
  return () => {
    const wallMs = Date.now();
    let nowMs = originMs + performance.now();
    if (Math.abs(nowMs - wallMs) > MAX_DRIFT_MS) {
      originMs += wallMs - nowMs;
      nowMs = wallMs;
    }
    const micros = Math.floor(nowMs * 1000);
    const seconds = Math.floor(micros / 1e6);
    return create(TimestampSchema, { seconds: BigInt(seconds), nanos: (micros - seconds * 1e6) * 1000 });
  };
}
