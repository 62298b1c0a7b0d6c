import { type LookUpSchedule, variedPauseS } from '../model/schedule.ts';

/** Returns the pause before the next look-up of a transaction of an age, in seconds, varied by chance. */
export function lookUpPauseS(schedule: LookUpSchedule, ageMs: number): number {
  return variedPauseS(schedule, ageMs, Math.random());
}
