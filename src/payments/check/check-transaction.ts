import type { LeasedConnection } from '#src/connectors/guards/within-lease.ts';
import type { NotificationSubject, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import { newId } from '#src/new-id.ts';
import { type LeasedCheck, postponeCheck, recheck } from '#src/store/engine/checks.ts';
import {
  leaveNews,
  MAX_NEWS_READ,
  MAX_SETTLED,
  type OpenNews,
  readOpenNews,
  settleNews,
  settleServed,
} from '#src/store/tables/open-news.ts';
import type { ExternalOperation } from '../model/external.ts';
import { FIRST_CHECK_S, newsPauseS } from '../model/schedule.ts';
import {
  type LeasedTransaction,
  loadPayment,
  pauseS,
  type Reported,
  type WriteDeps,
  writeClosing,
  writeReport,
  writeReportOn,
} from '../write-change.ts';
import {
  type CheckTerms,
  type Decision,
  decide,
  decideSigned,
  type ExternalResult,
  type Found,
  type Learned,
  lookedUp,
  mustLookUp,
} from './decide.ts';
import {
  LOOK_UP_CALLS,
  lookUpTransaction,
  type Prompt,
  releaseAuthorization,
} from './look-up-transaction.ts';
import { GIVEN_UP_MS, type NewsResult, PROMPTED_APART_S, type RouteDeps } from './news.ts';

/** Dependencies of checkTransaction. */
export type CheckDeps = WriteDeps &
  RouteDeps & {
    readonly publicUrl: () => string;
    readonly checked: CheckObserver;
  };

/** Observer of checks, for metrics and logs. */
export type CheckObserver = {
  /**
   * Called with the result of a check. 'mismatch': the report does not fit the payment; 'contradiction': the report is
   * the opposite of the final state shown to the merchant; 'overdue': a signed report has waited for an hour.
   */
  learned(about: CheckedTransaction, result: NonNullable<Learned>): void;
  failed(error: unknown): void;
};

/** The transaction that a check is about. */
export type CheckedTransaction = { readonly transactionId: string; readonly connectionId: string };

/** A check in progress. */
type Check = {
  readonly deps: CheckDeps;
  readonly connection: LeasedConnection;
  /** The transaction, with the worker's current token. */
  readonly leased: LeasedTransaction;
  /** Ends the retries of a write; what is not written will be learned again. */
  readonly stop: AbortSignal | undefined;
};

/** Result of a pass: a look-up, and what was written. */
type Passed = {
  readonly result: Exclude<NewsResult, 'unmatched'>;
  /** Seconds until the next check; undefined if no more news is expected. */
  readonly checkInS: number | undefined;
  /** The worker's token from now on; undefined if another worker has the transaction. */
  readonly fence: number | undefined;
  /** true: the write has scheduled the next check, unless news is yet to be settled. */
  readonly isScheduled?: boolean;
  /** true: the provider reports more than was written, so the new state is looked up again. */
  readonly again?: boolean;
};

/**
 * Checks a transaction: applies signed news, looks it up with the other news as hints, writes what `decide` decides,
 * settles the news, and schedules the next check. If the process dies partway, the check is repeated after its lease
 * expires or, after a write, within UNSETTLED_S, and the repetition changes nothing twice.
 */
export async function checkTransaction(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedCheck,
  stop?: AbortSignal,
): Promise<void> {
  // The process was delayed for so long that the check belongs to another worker.
  if (connection.callsLeft() < LOOK_UP_CALLS) return;
  const news = await readOpenNews(deps.database, leased.accountId, leased.transactionId);
  const { signed, hints } = sorted(connection, news);
  const left: OpenNews[] = [];
  let check: Check = { deps, connection, leased: { ...leased, hasNews: news.length > 0 }, stop };
  for (const one of signed) {
    const { result, fence } = await believe(check, one);
    check = withFence(check, fence ?? leased.fence);
    if (result === 'waiting' || result === 'conflict') {
      reportWaiting(deps, leased, one, result);
      left.push(one);
    } else await settle(deps, one, result);
  }

  const { passed, kept, isMore } = await passWith(check, hints);
  left.push(...kept);
  const { fence, checkInS, isScheduled } = passed;
  await leaveNews(deps.database, left);
  if (fence === undefined || (isScheduled && news.length === 0)) return;
  const isUnread = news.length === MAX_NEWS_READ && news.at(-1)?.isTried === false;
  await postponeCheck(deps.database, { ...leased, fence }, soonest(checkInS, left, isMore || isUnread));
}

/** Age from which waiting news is an alarm, whatever it waits for. */
const OVERDUE_MS = 3_600_000;

/** Raises an alarm for signed news that contradicts its payment, or that has waited for too long. */
function reportWaiting(
  { checked }: CheckDeps,
  { transactionId, connectionId }: LeasedCheck,
  { ageMs, isTried }: OpenNews,
  result: 'waiting' | 'conflict',
): void {
  const isOverdue = ageMs >= OVERDUE_MS;
  if (result === 'conflict' && (isOverdue || !isTried))
    checked.learned({ transactionId, connectionId }, 'contradiction');
  else if (isOverdue) checked.learned({ transactionId, connectionId }, 'overdue');
}

/** Maximum number of hints in one check. A hint is tried only if the provider left the previous one unanswered. */
const MOST_HINTS = 3;

/**
 * Looks the transaction up with the news as hints, most specific first, until the provider answers. Settles the news
 * that each look-up covers.
 *
 * @returns `kept`: the unsettled news; `isMore`: the provider answers, and some news has yet to be used as a hint.
 */
async function passWith(
  check: Check,
  hints: readonly OpenNews[],
): Promise<{ readonly passed: Passed; readonly kept: readonly OpenNews[]; readonly isMore: boolean }> {
  const { connection } = check;
  if (hints.length === 0)
    return { passed: await passes(check, promptOf(undefined)), kept: [], isMore: false };
  // Random order, so that news that the provider never answers cannot block other news.
  const drawn = hints
    .map((news) => ({ news, order: rank(news) + Math.random() }))
    .sort((a, b) => b.order - a.order)
    .map(({ news }) => news);
  const kept: OpenNews[] = [];
  let passed: Passed | undefined;
  let open = drawn;
  for (let tried = 0; tried < MOST_HINTS; tried++) {
    const [hint] = open;
    if (!hint || connection.callsLeft() < LOOK_UP_CALLS) break;
    passed = await passes(withFence(check, passed?.fence), promptOf(hint));
    open = open.filter((other) => other !== hint && !serves(connection, hint, other));
    const isSilent = passed.result === 'unanswered';
    if (passed.result === 'waiting' || (isSilent && hint.ageMs < GIVEN_UP_MS)) kept.push(hint);
    else await settleAll(check, hint, passed.result);
    if (!isSilent) break;
  }
  // Without time for a look-up, the lease ends, and the check is repeated.
  passed ??= { result: 'unchanged', checkInS: undefined, fence: undefined };
  return { passed, kept: [...kept, ...open], isMore: passed.result !== 'unanswered' && open.length > 0 };
}

/** Returns a check whose worker has a new token; undefined keeps the present one. */
function withFence(check: Check, fence: number | undefined): Check {
  return fence === undefined ? check : { ...check, leased: { ...check.leased, fence } };
}

/** Separates signed news, which is trusted, from hints, which only say where to look. */
function sorted({ lookUp }: ProviderConnection, news: readonly OpenNews[]) {
  const isSigned = ({ dispute, kind }: OpenNews) =>
    dispute !== undefined || (!lookUp && kind === 'notification');
  return { signed: news.filter(isSigned), hints: news.filter((one) => !isSigned(one)) };
}

/** Ranks news: a look-up prompted by the highest rank also covers the lower ranks. */
function rank({ kind, providerPaymentId, query }: OpenNews): number {
  if (kind === 'close') return 3;
  if (kind === 'return' && query !== '') return 2;
  return providerPaymentId === undefined ? 0 : 1;
}

/** Returns true if a look-up prompted by `hint` also covers `other`. A look-up covers all news without details. */
function serves({ lookUp }: ProviderConnection, hint: OpenNews, other: OpenNews): boolean {
  if (lookUp && rank(other) === 0) return true;
  if (rank(hint) !== rank(other) || hint.providerPaymentId !== other.providerPaymentId) return false;
  return hint.kind === 'notification' || hint.query === other.query;
}

function promptOf(news: OpenNews | undefined): Prompt {
  if (!news) return { hint: undefined, close: false };
  const { kind, providerPaymentId, query } = news;
  if (kind === 'return') return { hint: query === '' ? {} : { returnQuery: query }, close: false };
  return { hint: providerPaymentId === undefined ? {} : { providerPaymentId }, close: kind === 'close' };
}

/** Returns the seconds until the next check, given the remaining news; undefined if none is needed. */
function soonest(
  checkInS: number | undefined,
  left: readonly OpenNews[],
  isMore: boolean,
): number | undefined {
  const pauses = left.map(({ ageMs }) => newsPauseS(ageMs));
  if (isMore) pauses.push(PROMPTED_APART_S);
  if (checkInS !== undefined) pauses.push(checkInS);
  return pauses.length > 0 ? Math.min(...pauses) : undefined;
}

async function settle(deps: CheckDeps, news: OpenNews, result: NewsResult): Promise<void> {
  await settleNews(deps.database, news, result);
  deps.settled(news.connectionId, result);
}

/** Settles all news that a look-up covered. */
async function settleAll(
  { deps, connection, leased, stop }: Check,
  news: OpenNews,
  result: NewsResult,
): Promise<void> {
  const hasLookUp = connection.lookUp !== undefined;
  let served: number;
  do {
    served = await settleServed(deps.database, leased.transactionId, news, result, hasLookUp);
    for (let i = 0; i < served; i++) deps.settled(news.connectionId, result);
  } while (served === MAX_SETTLED && !stop?.aborted);
}

/** Maximum number of passes for one prompt. The next check handles anything else that the provider reports. */
const MOST_PASSES = 8;

/** Makes a pass, and repeats it while the provider reports more than was written and the lease has time. */
async function passes(check: Check, prompt: Prompt): Promise<Passed> {
  let passed = await pass(check, prompt);
  for (let made = 1; passed.again && made < MOST_PASSES; made++) {
    // What was written remains valid, and the next check looks up the rest.
    const stopped = { ...passed, checkInS: passed.checkInS ?? FIRST_CHECK_S };
    if (check.connection.callsLeft() < LOOK_UP_CALLS) return stopped;
    const next = await pass(withFence(check, passed.fence), { ...prompt, hint: prompt.hint ?? {} });
    if (next.result === 'unanswered') return stopped;
    passed = { ...next, result: next.result === 'unchanged' ? 'applied' : next.result };
  }
  return passed;
}

/** Makes a pass: reads the transaction, looks it up, decides, and writes. */
async function pass(check: Check, prompt: Prompt): Promise<Passed> {
  const { deps, connection } = check;
  const found = await findTransaction(check);
  const terms: CheckTerms = {
    hasLookUp: connection.lookUp !== undefined,
    hasNews: prompt.hint !== undefined,
    pauseS: (ageMs) => pauseS(deps.schedule, ageMs),
  };
  const outcome = mustLookUp(found, terms)
    ? await lookUpTransaction(deps, connection, found, prompt)
    : undefined;
  let decision = decide(found, { outcome }, terms);
  if (decision.kind === 'release') {
    const release = await releaseAuthorization(deps, connection, found);
    decision = decide(found, { outcome, release }, terms);
  }
  return carryOut(check, found, decision);
}

async function carryOut(check: Check, found: Found, decision: Decision): Promise<Passed> {
  const { deps, leased } = check;
  const { fence } = leased;
  if ('learned' in decision) report(deps, lookedUp(found), decision.learned);
  switch (decision.kind) {
    case 'nothing':
      return { result: decision.result, checkInS: decision.checkInS, fence };
    case 'look_up_refund':
      await recheck(deps.database, leased.accountId, decision.refund.id);
      return { result: 'waiting', checkInS: FIRST_CHECK_S, fence };
    case 'end_disputes': {
      const result = await endDisputes(check, decision.disputes);
      return { result, checkInS: FIRST_CHECK_S, fence, again: decision.again && result === 'applied' };
    }
    case 'external': {
      const result = await recordExternal(check, found, decision.made);
      return { result, checkInS: decision.checkInS[result], fence, again: result === 'applied' };
    }
    case 'close':
      return passedBy(await writeClosing(deps, leased, decision.report, check.stop), fence);
    case 'write': {
      const passed = passedBy(await writeReport(deps, leased, decision.report, check.stop), fence);
      return passed.isScheduled
        ? { ...passed, again: decision.again }
        : { ...passed, checkInS: decision.checkInS };
    }
    case 'release':
      throw new Error('the release was not decided upon');
  }
}

/** Returns the result of a pass that has written a report with this token. */
function passedBy(written: Reported, fence: number): Passed {
  if (written === 'lost') return { result: 'unchanged', checkInS: undefined, fence: undefined };
  if (typeof written === 'string') {
    return { result: written === 'waiting' ? written : 'unchanged', checkInS: undefined, fence };
  }
  return { result: 'applied', checkInS: written.checkInS, fence: written.fence, isScheduled: true };
}

/** Passes what was learned about a transaction on to operators. */
function report(
  { checked }: CheckDeps,
  { id: transactionId, connectionId }: Found['transaction'],
  learned: Learned,
) {
  if (learned) checked.learned({ transactionId, connectionId }, learned);
}

/** Result of signed news, with the worker's current token; undefined if another worker has the transaction. */
type Believed = { readonly result: ExternalResult | 'conflict'; readonly fence: number | undefined };

/**
 * Applies signed news: a stage of a dispute, or an outcome at a provider without a look-up.
 *
 * @returns 'waiting' if the news may apply later because another operation on the payment is open and may have caused
 *   the reported event; 'conflict' if the payment cannot hold it, and a person has to review it.
 */
async function believe(check: Check, news: OpenNews): Promise<Believed> {
  const { deps, leased, stop } = check;
  const stays = (result: Believed['result']) => ({ result, fence: leased.fence });
  if (news.dispute) return stays(await reportDispute(check, news.dispute));
  const signed = (await readAgain(check.connection, news))?.signed;
  if (!signed) return stays('unchanged');
  const found = await findTransaction(check);
  const decision = decideSigned(found, signed, pauseS(deps.schedule, found.transaction.ageMs));
  if (decision.kind === 'nothing') {
    report(deps, found.transaction, decision.learned);
    return stays('unchanged');
  }
  if (decision.kind === 'external') return stays(await recordExternal(check, found, decision.made));
  const written = await writeReport(deps, leased, decision.report, stop);
  if (written === 'lost') return { result: 'waiting', fence: undefined };
  if (written === 'waiting' || written === 'conflict') return stays(written);
  const alarm = written === 'contradiction' ? written : decision.isOther ? 'mismatch' : undefined;
  report(deps, found.transaction, alarm);
  return typeof written === 'string' ? stays('unchanged') : { result: 'applied', fence: written.fence };
}

/** Reads a stored notification as of the time it arrived, since its signature may have expired by now. */
async function readAgain(
  connection: ProviderConnection,
  { headers: stored, query, body, receivedAt, subject }: OpenNews,
): Promise<NotificationSubject | undefined> {
  const headers = JSON.parse(stored) as Record<string, string>;
  const notification = { header: (name: string) => headers[name], query, body };
  const reading = await connection.readNotification?.(notification, receivedAt.getTime());
  return reading?.kind === 'about' ? reading.subjects[subject] : undefined;
}

/** Reads a transaction with its payment and its provider's terms. */
export async function findTransaction({
  deps,
  connection,
  leased,
}: {
  readonly deps: Pick<WriteDeps, 'database'>;
  readonly connection: Pick<ProviderConnection, 'capabilities'>;
  readonly leased: LeasedTransaction;
}): Promise<Found> {
  const state = await loadPayment(deps.database, leased);
  const transaction = state.transactions.find(({ id }) => id === leased.transactionId);
  if (!transaction) throw new Error(`payment ${leased.paymentId} lacks transaction ${leased.transactionId}`);
  return { ...state, transaction, terms: connection.capabilities };
}

/** Ends the open disputes that the provider reports as over. */
async function endDisputes(check: Check, disputes: readonly Dispute[]): Promise<ExternalResult> {
  const results: string[] = [];
  for (const dispute of disputes) results.push(await reportDispute(check, dispute, { onlyOpen: true }));
  if (results.includes('waiting')) return 'waiting';
  return results.includes('applied') ? 'applied' : 'unchanged';
}

/**
 * Writes a provider's dispute report into its payment. Reports may be repeated and arrive in any order.
 *
 * @param check.leased the disputed purchase or authorization, or one of its captures.
 * @param options.onlyOpen ignores the report unless its dispute is recorded as open.
 * @returns 'waiting' while an operation on the payment is open; 'conflict' if no money was taken according to the record.
 */
export async function reportDispute(
  { deps, leased }: { readonly deps: WriteDeps; readonly leased: LeasedTransaction },
  dispute: Dispute,
  { onlyOpen = false }: { readonly onlyOpen?: boolean } = {},
): Promise<ExternalResult | 'conflict'> {
  const report = { kind: 'dispute', dispute, newId: newId(leased.accountId), onlyOpen } as const;
  const reported = await writeReport(deps, leased, report);
  return reported === 'conflict' ? reported : resultOf(reported);
}

/**
 * Records an external capture or refund (made at the provider itself) as a successful operation. A report that does not
 * fit the payment changes nothing and raises an alarm for manual review.
 *
 * @param before the payment before it was looked up.
 * @returns 'waiting' if the provider must be asked again: an operation on the payment is open and may be the reported
 * one, the refunded capture is yet to be reported, or the payment has changed since it was read.
 */
async function recordExternal(
  { deps, connection, leased }: Check,
  before: Found,
  operation: ExternalOperation,
): Promise<ExternalResult> {
  const { id: transactionId } = before.transaction;
  const { capabilities: can } = connection;
  const made = { kind: 'external', transactionId, operation, newId: newId(leased.accountId), can } as const;
  const reported = await writeReportOn(deps, leased, before, made);
  if (reported === 'mismatch') report(deps, before.transaction, reported);
  return resultOf(reported);
}

function resultOf(reported: Reported): ExternalResult {
  if (typeof reported !== 'string') return 'applied';
  return reported === 'waiting' || reported === 'lost' ? 'waiting' : 'unchanged';
}
