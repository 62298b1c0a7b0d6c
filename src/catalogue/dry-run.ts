import { setTimeout as sleep } from 'node:timers/promises';
import { create } from '@bufbuild/protobuf';
import { Choice } from '#gen/payments/v1/catalogue_pb.js';
import {
  type CatalogueDryRun,
  CatalogueDryRunSchema,
  DryRunGroupSchema,
} from '#gen/payments/v1/configuration_service_pb.js';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import { parseMoney, toDecimal } from '#src/money.ts';
import { findWay, type Way } from '#src/payments/route/choose-route.ts';
import { asRecorded, type RecordedPayment } from '#src/payments/route/recorded-payment.ts';
import type { RoutingCatalogue } from '#src/payments/route/routing-catalogue.ts';
import { decodeRecord } from '#src/payments/stored-record.ts';
import { ServiceError } from '#src/service-error.ts';
import { createQueue } from '#src/slots.ts';
import type { Database } from '#src/store/engine/database.ts';
import {
  listRecordedPayments,
  type RecordedSearch,
  type StoredRoute,
} from '#src/store/tables/recorded-payments.ts';

/** The payments that a dry run routes. */
export type DryRunOptions = RecordedSearch & {
  /** Maximum number of payments, the newest first. */
  readonly payments: number;
};

/** A dry run works this long at a time, so that payments wait no longer for it, and then pauses so many times as long. */
const SLICE_MS = 1;
const PAUSES_PER_SLICE = 4;
/** A dry run ends after this time, with what it has examined. */
const MAX_MS = 15_000;
/** Dry runs of one process take turns. */
const turns = createQueue(1);

/**
 * Routes stored payments by two catalogues and compares where they go. It calls no provider and writes nothing, and the
 * process's payments go on in between.
 *
 * @throws ServiceError SERVICE_UNAVAILABLE if another dry run takes too long.
 */
export async function dryRun(
  database: Database,
  inForce: RoutingCatalogue,
  changed: RoutingCatalogue,
  options: DryRunOptions,
): Promise<CatalogueDryRun> {
  const release = await turns.enter(MAX_MS);
  if (!release) {
    const message = 'another dry run is under way; nothing was published; try again';
    throw new ServiceError('SERVICE_UNAVAILABLE', message, { retryAfterS: 5 });
  }
  try {
    const tally = createTally();
    const rest = createPauses();
    for await (const stored of newestPayments(database, options)) {
      tally.add(compareWays(stored, inForce, changed));
      await rest();
    }
    return tally.result();
  } finally {
    release();
  }
}

/** Reads the newest payments, each once, until there are enough or the time is up. */
async function* newestPayments(
  database: Database,
  { payments, ...search }: DryRunOptions,
): AsyncGenerator<StoredRoute> {
  const endMs = performance.now() + MAX_MS;
  const seen = new Set<string>();
  let after: string | undefined;
  do {
    const page = await listRecordedPayments(database, search, after);
    for (const stored of page.payments) {
      if (seen.has(stored.id)) continue;
      seen.add(stored.id);
      yield stored;
      if (seen.size === payments || performance.now() > endMs) return;
    }
    after = page.next;
  } while (after !== undefined);
}

/** Returns a function that pauses if the process has worked for a slice since the last pause. */
function createPauses(): () => Promise<void> {
  let beganMs = performance.now();
  return async () => {
    const tookMs = performance.now() - beganMs;
    if (tookMs < SLICE_MS) return;
    await sleep(Math.min(tookMs, 2 * SLICE_MS) * PAUSES_PER_SLICE);
    beganMs = performance.now();
  };
}

/** A payment and its connections by both catalogues: their ids, or '' for a refusal. */
type Compared = {
  readonly payment: Payment;
  readonly from: string;
  readonly to: string;
  readonly isApproximate: boolean;
};

function compareWays(stored: StoredRoute, inForce: RoutingCatalogue, changed: RoutingCatalogue): Compared {
  const recorded: RecordedPayment = { ...stored, payment: decodeRecord(stored.record) };
  const routedBy = asRecorded(recorded, inForce.connections);
  const [before, after] = [inForce, changed].map((catalogue) => wayBy(catalogue, routedBy));
  return {
    payment: recorded.payment,
    from: before?.targets[0]?.id ?? '',
    to: after?.targets[0]?.id ?? '',
    isApproximate: stored.isErased || isByRate(before) || isByRate(after),
  };
}

function wayBy(catalogue: RoutingCatalogue, routedBy: ReturnType<typeof asRecorded>): Way | undefined {
  try {
    return findWay(catalogue, routedBy(catalogue));
  } catch (error) {
    // The catalogue does not offer the method.
    if (error instanceof ServiceError) return undefined;
    throw error;
  }
}

function isByRate(way: Way | undefined): boolean {
  return way?.plan.choice === Choice.SUCCESS_RATE && way.targets.length > 1;
}

const MAX_SAMPLES = 5;

type Group = {
  readonly from: string;
  readonly to: string;
  payments: number;
  readonly sums: Map<string, bigint>;
  readonly samples: string[];
};

/** Creates the counts of a dry run. */
function createTally() {
  const counts = { examined: 0, unchanged: 0, approximate: 0 };
  const groups = new Map<string, Group>();

  function groupOf({ from, to }: Compared): Group {
    const name = `${from}\n${to}`;
    const group = groups.get(name) ?? { from, to, payments: 0, sums: new Map(), samples: [] };
    groups.set(name, group);
    return group;
  }

  return {
    add(compared: Compared): void {
      const { payment, from, to, isApproximate } = compared;
      counts.examined++;
      if (isApproximate) counts.approximate++;
      if (from === to) {
        counts.unchanged++;
        return;
      }
      const group = groupOf(compared);
      group.payments++;
      const { value, currency = '' } = payment.amount ?? {};
      const sum =
        (group.sums.get(currency) ?? 0n) + (parseMoney(value?.value ?? '', currency)?.minorUnits ?? 0n);
      group.sums.set(currency, sum);
      if (group.samples.length < MAX_SAMPLES) group.samples.push(payment.id);
    },
    result(): CatalogueDryRun {
      const largestFirst = [...groups.values()].sort((a, b) => b.payments - a.payments);
      const of = (is: (group: Group) => boolean) => largestFirst.filter(is).map(shown);
      return create(CatalogueDryRunSchema, {
        ...counts,
        moved: of(({ from, to }) => from !== '' && to !== ''),
        refusedNow: of(({ to }) => to === ''),
        takenNow: of(({ from }) => from === ''),
      });
    },
  };
}

function shown({ sums, ...group }: Group) {
  const amounts = [...sums].map(([currency, minorUnits]) => ({
    currency,
    value: toDecimal({ minorUnits, currency }),
  }));
  return create(DryRunGroupSchema, { ...group, amounts });
}
