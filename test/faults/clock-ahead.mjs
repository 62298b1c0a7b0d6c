// Loaded into a replica with --import: sets its wall clock ahead of all others by CLOCK_AHEAD_MS.
const AHEAD_MS = Number(process.env.CLOCK_AHEAD_MS);
const RealDate = Date;
const now = () => RealDate.now() + AHEAD_MS;

globalThis.Date = class AheadDate extends RealDate {
  constructor(...values) {
    super(...(values.length > 0 ? values : [now()]));
  }
  static now() {
    return now();
  }
};
