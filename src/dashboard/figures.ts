import { type Payment, type Transaction, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { OpenOutcomes } from '#src/payments/open-outcomes.ts';

/** Results of attempts. */
export type Tally = {
  approved: number;
  declined: number;
  /** Certainly not sent, or expired before the payer acted. */
  failed: number;
  /** Waiting for the payer, for the provider, or for an unknown outcome. Counted again once the outcome is known. */
  waiting: number;
};

/** A minute of payments. */
export type Minute = Tally & { readonly startMs: number };

/** Counts of this replica's last hour. */
export type FiguresReading = {
  /** Oldest first; the last one is still running. */
  readonly minutes: readonly Minute[];
  /** Over the last minute. */
  readonly paymentsPerS: number;
  readonly byConnection: ReadonlyMap<string, Tally>;
  readonly byBrand: ReadonlyMap<string, Tally>;
  readonly byCountry: ReadonlyMap<string, Tally>;
  /** Declines by response code. */
  readonly declines: ReadonlyMap<string, number>;
  /** Attempts to deliver an event, by result. */
  readonly deliveries: ReadonlyMap<string, number>;
  /** Unknown outcomes of the whole installation, as last counted. */
  readonly open: (OpenOutcomes & { readonly countedAtMs: number }) | undefined;
};

/** Counts what the service does, for the dashboard. Each replica keeps its own counts in memory. */
export type Figures = {
  /** Counts a payment that was made, or whose outcome was learned later. */
  paid(payment: Payment, isLearnedLater: boolean): void;
  /** Counts an attempt to deliver an event. */
  delivered(result: string): void;
  /** Takes over the latest count of unknown outcomes. */
  counted(outcomes: OpenOutcomes): void;
  read(): FiguresReading;
};

const MINUTES = 60;
const MINUTE_MS = 60_000;
/** Most names that one minute tells apart: more than there are connections, countries or codes. */
const MAX_NAMES = 1_000;

type Counts = {
  startMs: number;
  tally: Tally;
  byConnection: Map<string, Tally>;
  byBrand: Map<string, Tally>;
  byCountry: Map<string, Tally>;
  declines: Map<string, number>;
  deliveries: Map<string, number>;
};

/** Makes empty figures. @param nowMs the time of day. */
export function createFigures(nowMs: () => number = Date.now): Figures {
  const ring: Counts[] = [];
  /** Payments in each of the last 60 seconds, by the second. */
  const seconds = new Map<number, number>();
  let open: FiguresReading['open'];

  function current(): Counts {
    const startMs = Math.floor(nowMs() / MINUTE_MS) * MINUTE_MS;
    const last = ring.at(-1);
    if (last && last.startMs >= startMs) return last;
    const fresh = noCounts(startMs);
    ring.push(fresh);
    while (ring.length > MINUTES) ring.shift();
    return fresh;
  }

  function countSecond(): void {
    const second = Math.floor(nowMs() / 1000);
    seconds.set(second, (seconds.get(second) ?? 0) + 1);
    for (const old of seconds.keys()) {
      if (old > second - 60) break;
      seconds.delete(old);
    }
  }

  return {
    paid(payment, isLearnedLater) {
      const attempts = payment.transactionsHistory.filter(({ parentTransactionId: of }) => of === '');
      // Operations and disputes arrive here as well, but the payment was counted when it was made.
      if (isLearnedLater && payment.transactionsHistory.at(-1)?.parentTransactionId) return;
      if (!isLearnedLater) countSecond();
      const last = attempts.at(-1);
      if (!last) return;
      const counts = current();
      counts.tally[resultOf(last)] += 1;
      add(counts.byBrand, brandOf(payment), resultOf(last));
      add(counts.byCountry, payment.country, resultOf(last));
      for (const attempt of isLearnedLater ? [last] : attempts) {
        add(counts.byConnection, attempt.connectionData?.id ?? '', resultOf(attempt));
        if (resultOf(attempt) === 'declined') increase(counts.declines, attempt.responseCode);
      }
    },
    delivered: (result) => increase(current().deliveries, result),
    counted(outcomes) {
      open = { ...outcomes, countedAtMs: nowMs() };
    },
    read() {
      const now = nowMs();
      const first = Math.floor(now / MINUTE_MS) * MINUTE_MS - (MINUTES - 1) * MINUTE_MS;
      const recent = ring.filter(({ startMs }) => startMs >= first);
      const minutes = Array.from({ length: MINUTES }, (_, i) => {
        const startMs = first + i * MINUTE_MS;
        return { startMs, ...(recent.find((one) => one.startMs === startMs)?.tally ?? noTally()) };
      });
      const sinceS = Math.floor(now / 1000) - 60;
      const lastMinute = [...seconds].filter(([second]) => second > sinceS);
      return {
        minutes,
        paymentsPerS: lastMinute.reduce((sum, [, count]) => sum + count, 0) / 60,
        byConnection: tallies(recent.map((one) => one.byConnection)),
        byBrand: tallies(recent.map((one) => one.byBrand)),
        byCountry: tallies(recent.map((one) => one.byCountry)),
        declines: sums(recent.map((one) => one.declines)),
        deliveries: sums(recent.map((one) => one.deliveries)),
        open,
      };
    },
  };
}

function resultOf({ status }: Transaction): keyof Tally {
  switch (status) {
    case Transaction_Status.SUCCEEDED:
      return 'approved';
    case Transaction_Status.DECLINED:
      return 'declined';
    case Transaction_Status.ERROR:
    case Transaction_Status.EXPIRED:
      return 'failed';
    default:
      return 'waiting';
  }
}

function brandOf({ paymentMethod }: Payment): string {
  const kind = paymentMethod?.paymentMethodDetail?.kind;
  const brand = kind?.case === 'card' ? kind.value.cardData?.brand : undefined;
  return brand || (paymentMethod?.type ?? '');
}

/** Adds up tallies. */
export function sumOf(tallies: readonly Tally[]): Tally {
  const sum = noTally();
  for (const one of tallies)
    for (const result of ['approved', 'declined', 'failed', 'waiting'] as const) sum[result] += one[result];
  return sum;
}

function noTally(): Tally {
  return { approved: 0, declined: 0, failed: 0, waiting: 0 };
}

function noCounts(startMs: number): Counts {
  const names = { byConnection: new Map(), byBrand: new Map(), byCountry: new Map() };
  return { startMs, tally: noTally(), ...names, declines: new Map(), deliveries: new Map() };
}

function add(to: Map<string, Tally>, name: string, result: keyof Tally): void {
  const tally = to.get(name) ?? noTally();
  tally[result] += 1;
  if (to.has(name) || to.size < MAX_NAMES) to.set(name, tally);
}

function increase(to: Map<string, number>, name: string): void {
  if (to.has(name) || to.size < MAX_NAMES) to.set(name, (to.get(name) ?? 0) + 1);
}

function tallies(all: readonly ReadonlyMap<string, Tally>[]): Map<string, Tally> {
  const total = new Map<string, Tally>();
  for (const [name, one] of all.flatMap((map) => [...map])) {
    total.set(name, sumOf([total.get(name) ?? noTally(), one]));
  }
  return total;
}

function sums(all: readonly ReadonlyMap<string, number>[]): Map<string, number> {
  const total = new Map<string, number>();
  for (const [name, count] of all.flatMap((map) => [...map])) total.set(name, (total.get(name) ?? 0) + count);
  return total;
}
