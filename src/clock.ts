import { create } from '@bufbuild/protobuf';
import { type Timestamp, TimestampSchema } from '@bufbuild/protobuf/wkt';

/** Difference from the wall clock at which the steady clock is reset. */
const MAX_DRIFT_MS = 20;

/**
 * Creates the clock for records: the wall clock with the steady clock's microseconds. Reads never go back unless the
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
