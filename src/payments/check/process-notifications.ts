import type { NotificationSubject, ProviderConnection } from '#src/connectors/connector.ts';
import { applySigned } from '#src/payments/check/apply-signed.ts';
import { applyDispute } from '#src/payments/check/dispute.ts';
import { type FollowedUpNow, followUpNow } from '#src/payments/check/follow-up.ts';
import { type RecoverOneDeps, recoverNow } from '#src/payments/check/recover-payments.ts';
import { leaseS } from '#src/payments/model/schedule.ts';
import { type Repeated, repeat } from '#src/repeat.ts';
import {
  beginNotifiedLookUp,
  type DueNotification,
  findNotifiedTransaction,
  MAX_NOTIFICATIONS_TAKEN,
  MAX_SETTLED,
  settleNotification,
  settleServed,
  takeDueNotifications,
} from '#src/store/tables/notifications.ts';
import { hastenEnrollment } from '#src/store/tables/wallet-enrollments.ts';

/** Dependencies of processing notifications. */
export type ProcessDeps = RecoverOneDeps & {
  readonly connections: () => ReadonlyMap<string, ProviderConnection>;
  readonly processed: {
    settled(connectionId: string, result: NotificationResult): void;
    failed(error: unknown): void;
  };
};

/** Result of processing a notification; 'unmatched': its transaction is not found. */
export type NotificationResult = FollowedUpNow | 'unmatched';

const BATCH = MAX_NOTIFICATIONS_TAKEN;
/** A connection with so many under way gets no more: its slots are its own, so that a slow provider delays no other. */
const CONNECTION_SLOTS = BATCH;
const FIRST_PAUSE_S = 2;
/** Small: most notifications that wait do so for a lease of some seconds, and are late by up to their last pause. */
const PAUSE_GROWTH = 1.3;
const LONGEST_PAUSE_S = 3_600;
/** Pause between two look-ups of a transaction that notifications prompt. */
const LOOK_UP_EVERY_S = 2;
/** Tries, over two days, after which a notification is given up: its transaction is not found, or no provider answers. */
export const MAX_TRIES = 75;

/**
 * Processes providers' notifications: looks up the transaction that a notification is about and writes the provider's
 * answer as any outcome is written. Late, early, duplicate and out-of-order notifications change nothing that is
 * final. Any number of replicas may run it.
 *
 * @returns `wake` looks for due notifications at once; `stop` resolves once the processing under way has ended.
 */
export function startNotifications(
  deps: ProcessDeps,
  options: { readonly intervalMs: number },
): { readonly wake: () => void; readonly stop: () => Promise<void> } {
  let woken = Promise.withResolvers<void>();
  const wake = () => woken.resolve();
  const underWay: UnderWay = new Map();
  const begin: Repeated = async (stop) => {
    woken = Promise.withResolvers<void>();
    const begun = await beginDue(deps, underWay, wake, stop);
    return begun.length === BATCH;
  };
  const stop = repeat(begin, { ...options, sooner: () => woken.promise, onError: deps.processed.failed });
  return {
    wake,
    async stop() {
      await stop();
      await Promise.all([...underWay.values()].flatMap((own) => [...own]));
    },
  };
}

/** Processes due notifications. @returns the number of notifications taken. */
export async function processDue(deps: ProcessDeps, stop?: AbortSignal): Promise<number> {
  const begun = await beginDue(deps, new Map(), () => {}, stop);
  await Promise.all(begun);
  return begun.length;
}

/** The notifications under way, by connection. */
type UnderWay = Map<string, Set<Promise<void>>>;

/**
 * Takes due notifications of the connections with a free slot, and begins to process them.
 *
 * @param freed called when a connection without a free slot has one again.
 */
async function beginDue(
  deps: ProcessDeps,
  underWay: UnderWay,
  freed: () => void,
  stop: AbortSignal | undefined,
): Promise<readonly Promise<void>[]> {
  const busy = [...underWay].filter(([, own]) => own.size >= CONNECTION_SLOTS).map(([id]) => id);
  const due = await takeDueNotifications(deps.database, BATCH, longestLeaseS(deps), busy);
  return due.map((notification) => {
    const own = underWay.get(notification.connectionId) ?? new Set();
    underWay.set(notification.connectionId, own);
    const processing: Promise<void> = processOne(deps, notification, stop)
      .catch(deps.processed.failed)
      .finally(() => {
        own.delete(processing);
        if (own.size === CONNECTION_SLOTS - 1) freed();
      });
    own.add(processing);
    return processing;
  });
}

/**
 * Returns the lease of a notification: that of a transaction at the slowest connection. A replica that dies delays its
 * notifications by as much; one that takes longer shares them with another, which changes nothing.
 */
function longestLeaseS({ connections, schedule }: ProcessDeps): number {
  const leases = [...connections().values()].map((connection) => leaseS(connection, schedule));
  return Math.max(schedule.leaseMarginMs / 1000, ...leases);
}

async function processOne(
  deps: ProcessDeps,
  notification: DueNotification,
  stop: AbortSignal | undefined,
): Promise<void> {
  const { result, againInS = pauseS(notification.tries) } = await resultOf(deps, notification, stop);
  deps.processed.settled(notification.connectionId, result);
  const isEnd = result === 'applied' || result === 'unchanged';
  const isOver = isEnd || (result !== 'waiting' && notification.tries >= MAX_TRIES);
  await settleNotification(deps.database, notification, result, isOver ? undefined : againInS);
}

type Processed = { readonly result: NotificationResult; readonly againInS?: number };

/** Returns the seconds from a notification's try, of so many, to the next. */
export function pauseS(tries: number): number {
  return Math.min(FIRST_PAUSE_S * PAUSE_GROWTH ** (tries - 1), LONGEST_PAUSE_S);
}

async function resultOf(
  deps: ProcessDeps,
  notification: DueNotification,
  stop: AbortSignal | undefined,
): Promise<Processed> {
  const connection = deps.connections().get(notification.connectionId);
  if (!connection) return { result: 'waiting' };
  if (connection.lookUp && !notification.dispute) return lookUp(deps, connection, notification, stop);
  return { result: await believe(deps, connection, notification, stop) };
}

/** Writes what a notification's signature vouches for: a stage of a dispute, or an outcome where there is no look-up. */
async function believe(
  deps: ProcessDeps,
  connection: ProviderConnection,
  notification: DueNotification,
  stop: AbortSignal | undefined,
): Promise<NotificationResult> {
  const transactionId = await findNotifiedTransaction(deps.database, notification);
  if (transactionId === undefined) return hastenEnrollmentOf(deps, notification);
  if (notification.dispute) return applyDispute(deps, transactionId, notification.dispute);
  const signed = (await readAgain(connection, notification))?.signed;
  return signed ? applySigned(deps, connection, transactionId, signed, stop) : 'unchanged';
}

/**
 * Looks up the transaction that a notification is about, for itself and for all that told the same before the look-up
 * began. One that comes soon after a look-up waits its turn: nothing that it may tell is lost.
 */
async function lookUp(
  deps: ProcessDeps,
  connection: ProviderConnection,
  notification: DueNotification,
  stop: AbortSignal | undefined,
): Promise<Processed> {
  const begun = await beginNotifiedLookUp(deps.database, notification, LOOK_UP_EVERY_S);
  if (!begun) return { result: await hastenEnrollmentOf(deps, notification) };
  const { transactionId, begunAt, waitS } = begun;
  if (!begunAt) return { result: 'waiting', againInS: waitS };
  const { reference } = notification;
  const options = { hint: reference === undefined ? {} : { reference }, stop };
  const followed = await followUpNow(deps, connection, transactionId, options);
  const result =
    followed === 'waiting' ? await recoverNow(deps, connection, transactionId, options) : followed;
  // Nothing was learned, so no other notification is served: two such look-ups at once would settle each other's.
  if (result === 'unanswered') return { result };
  // A notification that has to wait stays in the queue, and so will be looked up after those that it serves.
  let served: number;
  do {
    served = await settleServed(deps.database, notification, { transactionId, begunAt });
    for (let i = 0; i < served; i++) deps.processed.settled(notification.connectionId, 'unchanged');
  } while (served === MAX_SETTLED && !stop?.aborted);
  return { result };
}

/** Hastens an enrollment's look-up: a notification about no transaction may be about a wallet being enrolled. */
async function hastenEnrollmentOf(
  deps: ProcessDeps,
  { transactionId, connectionId }: DueNotification,
): Promise<NotificationResult> {
  const isKnown =
    transactionId !== undefined && (await hastenEnrollment(deps.database, transactionId, connectionId));
  return isKnown ? 'applied' : 'unmatched';
}

/** Reads a stored notification as of the time at which it came: its signature may be too old by now. */
async function readAgain(
  connection: ProviderConnection,
  notification: DueNotification,
): Promise<NotificationSubject | undefined> {
  const headers = JSON.parse(notification.headers) as Record<string, string>;
  const reading = await connection.readNotification?.(
    { header: (name) => headers[name], query: notification.query, body: notification.body },
    notification.receivedAt.getTime(),
  );
  return reading?.kind === 'about' ? reading.subjects[notification.subject] : undefined;
}
