import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';

/** The steady clock is reset if it differs from the wall clock by this much. */
const MAX_DRIFT_MS = 20;

/**
 * Creates the clock for records: the wall clock's time, with the microseconds of a steady clock. Its time never goes
 * back unless the wall clock is set back.
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
