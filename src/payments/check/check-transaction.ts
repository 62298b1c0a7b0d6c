import type { ProviderConnection } from '#src/connectors/connector.ts';
import type { LeasedConnection } from '#src/connectors/within-lease.ts';
import { type LeasedCheck, postponeCheck } from '#src/store/engine/checks.ts';
import {
  leaveNews,
  MAX_NEWS_READ,
  MAX_SETTLED,
  type OpenNews,
  readOpenNews,
  settleNews,
  settleServed,
} from '#src/store/tables/open-news.ts';
import { FIRST_CHECK_S, newsPauseS } from '../model/schedule.ts';
import { isLapsing } from '../model/state.ts';
import type { LeasedTransaction } from '../write-change.ts';
import { checkAuthorization } from './check-authorization.ts';
import { checkOutcome } from './check-outcome.ts';
import { type Asked, type CheckDeps, findTransaction, type Prompt } from './found-transaction.ts';
import { GIVEN_UP_MS, type NewsResult, PROMPTED_APART_S } from './route-news.ts';
import { believe } from './signed-news.ts';

/**
 * Number of provider calls at their deadline that the lease of a check covers: a look-up, and the completion that only
 * this check knows to be due. A check makes more calls only while its lease has time for them (`withinLease`).
 */
export const CALLS_IN_LEASE = 2;

/** Maximum number of queries in one check. The next check handles anything else that the provider reports. */
const MOST_QUESTIONS = 8;

/**
 * Checks a transaction: applies signed news, queries the provider with the other news as hints, writes the result,
 * settles the news, and schedules the next check. If the process dies partway, the check is repeated after its lease
 * expires, and the repetition changes nothing twice.
 */
export async function checkTransaction(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedCheck,
  stop?: AbortSignal,
): Promise<void> {
  // The process was delayed for so long that the check belongs to another worker.
  if (!connection.hasTime()) return;
  const news = await readOpenNews(deps.database, leased.accountId, leased.transactionId);
  const { signed, hints } = sorted(connection, news);
  const left: OpenNews[] = [];
  let current: LeasedTransaction = leased;
  for (const one of signed) {
    const { result, fence } = await believe(deps, connection, current, one, stop);
    current = { ...leased, fence: fence ?? leased.fence };
    if (result === 'waiting' || result === 'conflict') {
      reportWaiting(deps, leased, one, result);
      left.push(one);
    } else await settle(deps, one, result);
  }

  const { asked, kept, isMore } = await askWith(deps, connection, current, hints, stop);
  left.push(...kept);
  const { fence, checkInS, isScheduled } = asked;
  await leaveNews(deps.database, left);
  if (fence === undefined || (isScheduled && left.length === 0)) return;
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
 * Queries the provider with the news as hints, most specific first, until it answers. Settles the news that each query
 * covers.
 *
 * @returns `kept`: the unsettled news; `isMore`: the provider answers, and some news has yet to be used as a hint.
 */
async function askWith(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedTransaction,
  hints: readonly OpenNews[],
  stop: AbortSignal | undefined,
): Promise<{ readonly asked: Asked; readonly kept: readonly OpenNews[]; readonly isMore: boolean }> {
  if (hints.length === 0) {
    return { asked: await ask(deps, connection, leased, promptOf(undefined), stop), kept: [], isMore: false };
  }
  // Random order, so that news that the provider never answers cannot block other news.
  const drawn = hints
    .map((news) => ({ news, order: rank(news) + Math.random() }))
    .sort((a, b) => b.order - a.order)
    .map(({ news }) => news);
  const kept: OpenNews[] = [];
  let asked: Asked | undefined;
  let open = drawn;
  for (let questions = 0; questions < MOST_HINTS; questions++) {
    const [hint] = open;
    if (!hint || !connection.hasTime()) break;
    const current: LeasedTransaction = { ...leased, fence: asked?.fence ?? leased.fence };
    asked = await ask(deps, connection, current, promptOf(hint), stop);
    open = open.filter((other) => other !== hint && !serves(connection, hint, other));
    const isSilent = asked.result === 'unanswered';
    if (asked.result === 'waiting' || (isSilent && hint.ageMs < GIVEN_UP_MS)) kept.push(hint);
    else await settleAll(deps, connection, leased.transactionId, hint, asked.result, stop);
    if (!isSilent) break;
  }
  if (!asked) return { asked: NOT_ASKED, kept: open, isMore: false };
  return { asked, kept: [...kept, ...open], isMore: asked.result !== 'unanswered' && open.length > 0 };
}

/** The result of a check without time for a look-up. Its lease ends, and the check is repeated. */
const NOT_ASKED: Asked = { result: 'unchanged', checkInS: undefined, fence: undefined };

/** Separates signed news, which is trusted, from hints, which only say where to look. */
function sorted({ lookUp }: ProviderConnection, news: readonly OpenNews[]) {
  const isSigned = ({ dispute, kind }: OpenNews) =>
    dispute !== undefined || (!lookUp && kind === 'notification');
  return { signed: news.filter(isSigned), hints: news.filter((one) => !isSigned(one)) };
}

/** Ranks news: a query prompted by the highest rank also covers the lower ranks. */
function rank({ kind, providerPaymentId, query }: OpenNews): number {
  if (kind === 'close') return 3;
  if (kind === 'return' && query !== '') return 2;
  return providerPaymentId === undefined ? 0 : 1;
}

/** Returns true if a query prompted by `asked` also covers `other`. A look-up covers all news without details. */
function serves({ lookUp }: ProviderConnection, asked: OpenNews, other: OpenNews): boolean {
  if (lookUp && rank(other) === 0) return true;
  if (rank(asked) !== rank(other) || asked.providerPaymentId !== other.providerPaymentId) return false;
  return isSameQuery(asked, other);
}

function isSameQuery(a: OpenNews, b: OpenNews): boolean {
  return a.kind === 'notification' || a.query === b.query;
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

/** Settles all news that a query covered. */
async function settleAll(
  deps: CheckDeps,
  { lookUp }: ProviderConnection,
  transactionId: string,
  news: OpenNews,
  result: NewsResult,
  stop: AbortSignal | undefined,
): Promise<void> {
  let served: number;
  do {
    served = await settleServed(deps.database, transactionId, news, result, lookUp !== undefined);
    for (let i = 0; i < served; i++) deps.settled(news.connectionId, result);
  } while (served === MAX_SETTLED && !stop?.aborted);
}

/** Queries the provider, and repeats the query while the provider reports more than was written. */
async function ask(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedTransaction,
  prompt: Prompt,
  stop: AbortSignal | undefined,
): Promise<Asked> {
  let asked = await askOnce(deps, connection, leased, prompt, stop);
  for (let questions = 1; asked.again && questions < MOST_QUESTIONS; questions++) {
    const current = { ...leased, fence: asked.fence ?? leased.fence };
    if (!connection.hasTime()) return { ...asked, checkInS: asked.checkInS ?? FIRST_CHECK_S };
    const next = await askOnce(deps, connection, current, { ...prompt, hint: prompt.hint ?? {} }, stop);
    // What was written remains valid, and the next check, which is already scheduled, queries the provider again.
    if (next.result === 'unanswered') return { ...asked, checkInS: asked.checkInS ?? FIRST_CHECK_S };
    asked = { ...next, result: next.result === 'unchanged' ? 'applied' : next.result };
  }
  return asked;
}

async function askOnce(
  deps: CheckDeps,
  connection: LeasedConnection,
  leased: LeasedTransaction,
  prompt: Prompt,
  stop: AbortSignal | undefined,
): Promise<Asked> {
  const found = await findTransaction(deps, connection, leased);
  if (isLapsing(found.transaction)) return checkAuthorization(deps, connection, leased, found, prompt, stop);
  return checkOutcome(deps, connection, leased, found, prompt, stop);
}
