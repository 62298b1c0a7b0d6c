import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { Capabilities } from '#src/connectors/port/capabilities.ts';
import type { SignedOutcome } from '#src/connectors/port/connector.ts';
import type { Dispute } from '#src/connectors/port/dispute-report.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Money } from '#src/money.ts';
import type { OutcomeReport, Report } from '../model/apply.ts';
import { isEndWithoutMoney } from '../model/closing.ts';
import { contradicts, isAlarm, reportOfOwnMoney } from '../model/contradiction.ts';
import { correctionOf, heldAgainMs } from '../model/correction.ts';
import { endsDispute } from '../model/disputes.ts';
import { beyondBooks, changedRefund, type ExternalOperation, isRefundUndone } from '../model/external.ts';
import {
  codePauseS,
  FIRST_CHECK_S,
  heldPauseS,
  LONG_OPEN_MS,
  payerPauseS,
  reportsMore,
} from '../model/schedule.ts';
import {
  isClosing,
  isCode,
  isLapsing,
  isOpen,
  isOpenAttempt,
  isOperation,
  isOver,
  openClosing,
  type TransactionInState,
  type TransactionRow,
} from '../model/state.ts';
import { endOf, isNothingNew, NO_LOOK_UP, timeLeftMs, withoutLookUp } from '../model/waiting.ts';

/** A transaction in its current state, with its payment and its provider's terms. */
export type Found = TransactionInState & { readonly terms: Capabilities };

/** The provider's answers in one check of a transaction. */
export type Answer = {
  /** undefined: the provider was not called, or offers no look-up of an authorization. */
  readonly outcome: Outcome | undefined;
  /** The result of the release that `decide` has asked for. */
  readonly release?: Release;
};

/** The result of the release of an authorization. 'unknown': the provider must be asked again. */
export type Release = 'released' | 'refused' | 'unknown';

/** The other facts on which a decision depends. */
export type CheckTerms = {
  /** true: the connection offers look-ups. */
  readonly hasLookUp: boolean;
  /** true: news has prompted the check. */
  readonly hasNews: boolean;
  /** Returns the seconds until the next check of an open transaction of this age. */
  readonly pauseS: (ageMs: number) => number;
};

/** The result of a report of an event that was not requested through this service. */
export type ExternalResult = 'applied' | 'waiting' | 'unchanged';

/** An alarm, or the provider's word, that operators see; undefined if nothing was learned. */
export type Learned = Outcome | 'lapsed' | 'mismatch' | 'contradiction' | 'overdue' | undefined;

/** The step that follows a look-up. `checkInS` are seconds until the next check; undefined if no more news is expected. */
export type Decision =
  /** Nothing is written. */
  | {
      readonly kind: 'nothing';
      readonly learned: Learned;
      readonly result: 'unchanged' | 'unanswered' | 'waiting';
      readonly checkInS: number | undefined;
    }
  /** Release the authorization, whose term is over, and decide again with the result. */
  | { readonly kind: 'release' }
  /** Write a report, which schedules the next check itself. */
  | {
      readonly kind: 'write';
      readonly learned: Learned;
      readonly report: Report;
      /** The next check if the report changes nothing. */
      readonly checkInS: number | undefined;
      /** true: the provider reports more than is written. */
      readonly again: boolean;
    }
  /** End an attempt and the cancel that closes it, or respond to the cancel. */
  | { readonly kind: 'close'; readonly learned: Outcome; readonly report: OutcomeReport }
  /** Record a capture or a refund that was made at the provider itself. */
  | {
      readonly kind: 'external';
      readonly learned: Learned;
      readonly made: ExternalOperation;
      readonly checkInS: Readonly<Record<ExternalResult, number | undefined>>;
    }
  /** End the open disputes that the provider reports as over. */
  | {
      readonly kind: 'end_disputes';
      readonly learned: Learned;
      readonly disputes: readonly Dispute[];
      /** true: the provider reports more than the ends of disputes. */
      readonly again: boolean;
    }
  /** Look up a recorded refund, which the provider now lists with another result, before the totals are compared. */
  | { readonly kind: 'look_up_refund'; readonly refund: TransactionRow };

/**
 * THE function that decides what follows from a look-up. It is pure: it makes no call, writes nothing, and reads no
 * clock.
 *
 * @param found the transaction as it was before the look-up.
 */
export function decide(found: Found, { outcome, release }: Answer, terms: CheckTerms): Decision {
  const closing = openClosing(found);
  if (closing) return decideClosing(found, closing, outcome ?? NO_LOOK_UP, terms);
  if (!mustLookUp(found, terms)) {
    const isDelayed = isLapsing(found.transaction) && mayLearnMore(found, terms);
    return isDelayed
      ? nothing(terms.hasNews ? 'waiting' : 'unchanged', WHILE_OPERATED_S)
      : nothing('unchanged', undefined);
  }
  const reported = outcome && reportOfOwnMoney(found, outcome);
  const refund = changedRefund(found, reported);
  if (refund) return { kind: 'look_up_refund', refund };
  return isLapsing(found.transaction)
    ? decideAuthorization(found, { outcome: reported, ...(release && { release }) }, terms)
    : decideOutcome(found, reported ?? NO_LOOK_UP, terms);
}

/** Returns true if a provider must be called about a transaction; false if it could report nothing new. */
export function mustLookUp(found: Found, terms: CheckTerms): boolean {
  const { payment, transaction } = found;
  if (openClosing(found)) return isOpen(lookedUp(found));
  // A cancel that has closed an attempt has nothing of its own at the provider.
  if (isClosing(transaction)) return false;
  if (isLapsing(transaction)) return mayLearnMore(found, terms) && !payment.openOperation;
  // A provider without a look-up can report nothing more about a final transaction. Nor can any other about a final
  // operation without its reference: its look-up might send the operation again.
  const isFound = !isOperation(transaction.type) || transaction.reference !== undefined;
  return isOpen(transaction) || (terms.hasLookUp && isFound);
}

/** Returns the transaction to look up: the leased one, or the attempt that it closes. */
export function lookedUp(found: Found): TransactionRow {
  const closing = openClosing(found);
  if (!closing) return found.transaction;
  const attempt = found.transactions.find(({ id }) => id === closing.parentId);
  if (!attempt) throw new Error(`cancel ${closing.id} has no parent`);
  return attempt;
}

/** Delay from an expiry to the last check, so that a payment made at the last moment is not reported as expired. */
const GRACE_MS = 30_000;
/** Time in which a key without a response is in progress, while look-ups do not know the outcome. */
const IN_PROGRESS_MS = 30_000;

/** Returns true for the last check within a payer's time, after which the provider closes an unfinished payment. */
export function isLastCheck(found: Found, { hasLookUp }: Pick<CheckTerms, 'hasLookUp'>): boolean {
  const { transaction } = found;
  if (isLapsing(transaction)) return false;
  if (isCode(transaction)) return !hasLookUp && timeLeftMs(found) + CODE_GRACE_MS <= 0;
  if (isOpenAttempt(transaction)) return false;
  return timeLeftMs(found) + GRACE_MS <= 0;
}

/**
 * Delay from the end of a local method's code to the last check at a provider without a look-up. Everywhere else the
 * provider ends the code, because banks confirm late.
 */
const CODE_GRACE_MS = 10 * 86_400_000;

/** Returns the alarm for a code that its provider still reports as open long after its end. */
function longOpen(found: Found, { kind }: Outcome): Outcome | undefined {
  const { transaction } = found;
  const isLong = isCode(transaction) && kind === 'awaits_payer' && timeLeftMs(found) + LONG_OPEN_MS <= 0;
  return isLong
    ? alarmingOutcome('the payer can still pay 30 days after the end, according to the provider')
    : undefined;
}

/** Returns true if the provider answered. An alarm counts as an answer. */
function isAnswered(reported: Outcome): boolean {
  return reported.kind !== 'unknown' || isAlarm(reported);
}

function nothing(
  result: 'unchanged' | 'unanswered' | 'waiting',
  checkInS: number | undefined,
  learned?: Learned,
): Decision {
  return { kind: 'nothing', learned, result, checkInS };
}

/** Decides about an attempt, a payer's redirect or challenge, or an operation. */
function decideOutcome(found: Found, reported: Outcome, terms: CheckTerms): Decision {
  const { transaction } = found;
  const { id: transactionId } = transaction;
  const correction = correctionOf(found, reported, undefined);
  const isReversal = contradicts(reported, transaction) && correction !== 'now' && correction !== 'later';
  const isContradiction = isReversal || isRefundUndone(found, reported);
  const learned = isContradiction ? 'contradiction' : (longOpen(found, reported) ?? reported);
  const made = beyondBooks(found, reported);
  const disputes = endedDisputes(found, reported);
  if (disputes.length > 0) return { kind: 'end_disputes', learned, disputes, again: made !== undefined };
  if (made) {
    const checkInS = { applied: undefined, waiting: FIRST_CHECK_S, unchanged: undefined };
    return { kind: 'external', learned, made, checkInS };
  }
  const isLast = isLastCheck(found, terms);
  const outcome = terms.hasLookUp ? reported : withoutLookUp(reported, found, isLast);
  const mustRespond = transaction.awaitsResponse && mayRespondPending(transaction, terms);
  const pauseS = nextPauseS(found, terms);
  if (!mustRespond && isNothingNew(outcome, found, isLast)) {
    // Without a look-up, no query went unanswered.
    const isSilent = !isAnswered(reported) && reported !== NO_LOOK_UP;
    return nothing(isSilent ? 'unanswered' : 'unchanged', isOpen(transaction) ? pauseS : undefined, learned);
  }
  const report = {
    kind: 'outcome',
    transactionId,
    outcome: isLast ? endOf(outcome) : outcome,
    pauseS,
  } as const;
  const again = reportsMore(reported, transaction);
  return { kind: 'write', learned, report, checkInS: undefined, again };
}

/**
 * Returns true if a request whose process died gets its response although the outcome is unknown: PENDING. An attempt's
 * look-up mostly knows the outcome at once, and is given half a minute, in which its key is in progress. Some providers
 * never prove that a lost attempt was not made.
 */
function mayRespondPending({ type, ageMs }: TransactionRow, { hasLookUp }: CheckTerms): boolean {
  return isOperation(type) || !hasLookUp || ageMs >= IN_PROGRESS_MS;
}

function endedDisputes({ transactions }: Found, reported: Outcome): readonly Dispute[] {
  if (reported.kind !== 'approved') return [];
  return (reported.endedDisputes ?? []).filter((dispute) => endsDispute(transactions, dispute));
}

/** Returns the pause before the next check of an open transaction, in seconds. */
function nextPauseS(found: Found, terms: CheckTerms): number {
  const { transaction } = found;
  const { awaitsPayer, ageMs } = transaction;
  if (!awaitsPayer) return terms.pauseS(ageMs);
  return isCode(transaction)
    ? codePauseS(ageMs, timeLeftMs(found))
    : payerPauseS(ageMs, timeLeftMs(found) + GRACE_MS);
}

/** Decides about an attempt whose payer has yet to act and that its merchant has canceled. */
function decideClosing(found: Found, closing: TransactionRow, learned: Outcome, terms: CheckTerms): Decision {
  const checkInS = terms.pauseS(closing.ageMs);
  const isEnd = !isOpen(lookedUp(found)) || learned.kind === 'approved' || isEndWithoutMoney(learned);
  // The cancel of a process that died gets its response from its own check.
  const mustRespond = closing.awaitsResponse && closing.id === found.transaction.id;
  if (!isEnd && !mustRespond) {
    return nothing(isAnswered(learned) ? 'unchanged' : 'unanswered', checkInS, learned);
  }
  const report = { kind: 'outcome', transactionId: closing.id, outcome: learned, pauseS: checkInS } as const;
  return { kind: 'close', learned, report };
}

const DAY_MS = 86_400_000;
const WHILE_OPERATED_S = 3_600;
const NOT_RELEASED = alarmingOutcome('the term of the authorization is over, and its release was refused');

/**
 * Returns true if the provider may report something new about an authorization: it is still held, news has arrived, or
 * the provider's totals have reported a capture, since a refund may follow.
 */
function mayLearnMore(found: Found, { hasNews }: CheckTerms): boolean {
  // A capture that was found in totals has no reference, since no call of ours made it.
  return (
    hasNews ||
    !isOver(found) ||
    found.transactions.some(({ type, reference }) => type === 'CAPTURE' && !reference)
  );
}

/** Decides about an authorization, which expires after its term once the provider has released it. */
function decideAuthorization(
  found: Found,
  { outcome: reported, release: answered }: Answer,
  { hasNews }: CheckTerms,
): Decision {
  const { transaction, terms } = found;
  const termMs = terms.authorizationValidDays * DAY_MS - transaction.ageMs;
  const restS = Math.max(termMs, heldAgainMs(found)) / 1_000;
  const isHeld = !isOver(found);
  const made = beyondBooks(found, reported);
  const mayLapse = isHeld && restS <= 0 && !made;
  // If the provider cannot be asked, our term decides.
  const release = !mayLapse ? undefined : reported ? answered : 'released';
  if (mayLapse && release === undefined && reported && !isAtEnd(reported)) return { kind: 'release' };
  const end = isHeld ? endOfAuthorization(reported, release) : undefined;
  const isContradiction = end === 'denied' || isRefundUndone(found, reported);
  const word = release === 'refused' ? NOT_RELEASED : reported;
  const learned = isContradiction ? 'contradiction' : end === 'lapsed' ? end : word;
  if (end) {
    const report = { kind: 'lapsed', transactionId: transaction.id } as const;
    return { kind: 'write', learned, report, checkInS: WHILE_OPERATED_S, again: false };
  }
  const isSilent = reported !== undefined && !isAnswered(reported);
  const heldS = (needsReview: boolean) => heldPauseS(restS, { isSilent, needsReview });
  if (made) {
    const unchanged = isHeld ? heldS(true) : undefined;
    return {
      kind: 'external',
      learned,
      made,
      checkInS: { applied: FIRST_CHECK_S, waiting: heldS(false), unchanged },
    };
  }
  const checkInS = isHeld || isSilent ? heldS(word !== undefined && isAlarm(word)) : undefined;
  return nothing(isSilent && hasNews ? 'unanswered' : 'unchanged', checkInS, learned);
}

/** Returns true if a report ends an authorization, or leaves open whether it is still held. */
function isAtEnd({ kind }: Outcome): boolean {
  return kind === 'declined' || kind === 'not_sent' || kind === 'expired' || kind === 'unknown';
}

/**
 * Returns how a current authorization ended: the provider reports it as over or has released it. 'denied' if the
 * provider claims that it never approved the authorization: nothing is held, but manual review is needed.
 */
function endOfAuthorization(
  reported: Outcome | undefined,
  release: Release | undefined,
): 'denied' | 'expired' | 'lapsed' | undefined {
  if (reported?.kind === 'declined' || reported?.kind === 'not_sent') return 'denied';
  if (reported?.kind === 'expired') return 'expired';
  return release === 'released' ? 'lapsed' : undefined;
}

/** The step that follows from an outcome that a notification's signature covers. */
export type SignedDecision =
  | { readonly kind: 'nothing'; readonly learned: Learned }
  /** Record a capture or a refund as external, unless it is one of ours. */
  | { readonly kind: 'external'; readonly made: ExternalOperation }
  | {
      readonly kind: 'write';
      readonly report: Report;
      /** true: the reported money is not the transaction's own, which needs manual review. */
      readonly isOther: boolean;
    };

/**
 * Decides what follows from a signed outcome at a provider without a look-up. If its amount or currency differs from the
 * transaction's, an alarm is raised, and a payment does not change; an operation takes the amount.
 *
 * @param pauseS seconds until the next check of the transaction, if it stays open.
 */
export function decideSigned(found: Found, signed: SignedOutcome, pauseS: number): SignedDecision {
  const { transaction } = found;
  const { outcome, at: reportedAt, minorUnits, currency, operation: type } = signed;
  const money = { minorUnits, currency };
  if (isOfAnotherCharge(transaction, signed)) return { kind: 'nothing', learned: 'mismatch' };
  if (type) {
    if (outcome.kind !== 'approved') return IGNORED;
    const { providerPaymentId } = outcome;
    return { kind: 'external', made: { type, money, reported: outcome, providerPaymentId, reportedAt } };
  }
  const own = reportOfOwnMoney(found, outcome);
  if (own !== outcome) return { kind: 'nothing', learned: own };
  const isEnd = outcome.kind === 'expired' && isLapsing(transaction);
  // If the authorization is already over, a report of its end adds nothing, and the reported amount, which may be only
  // the uncaptured rest, must not be compared.
  if (isEnd && isOver(found)) return IGNORED;
  if (signed.ofPurchase && !transaction.capture) return IGNORED;
  const isOther = isOtherMoney(transaction, money);
  // An operation is over, whatever amount its report names: otherwise it would block all others.
  if (isOther && !isOperation(transaction.type)) return { kind: 'nothing', learned: 'mismatch' };
  if (outcome.kind === 'unknown') return { kind: 'nothing', learned: outcome };
  const { id: transactionId } = transaction;
  if (isEnd) return { kind: 'write', report: { kind: 'lapsed', transactionId }, isOther };
  // A report of a failure has moved nothing, whatever amount it names.
  const moved = outcome.kind === 'approved' ? { ...outcome, money } : outcome;
  const report = { kind: 'outcome', transactionId, outcome: moved, pauseS, reportedAt } as const;
  return { kind: 'write', report, isOther };
}

const IGNORED = { kind: 'nothing', learned: undefined } as const;

/** Returns true if reported money is not a transaction's own. A cancel moves none, whatever amount its report names. */
function isOtherMoney({ type, minorUnits, currency }: TransactionRow, reported: Money): boolean {
  if (type === 'CANCEL') return false;
  return reported.minorUnits !== minorUnits || reported.currency !== currency;
}

/** Returns true if a signed report is about another charge under our reference. */
function isOfAnotherCharge(transaction: TransactionRow, { paidReference }: SignedOutcome): boolean {
  const { providerPaymentId } = transaction;
  if (!paidReference || !providerPaymentId || paidReference === providerPaymentId) return false;
  // While the outcome of an attempt is unknown, the first signed report determines which charge is ours.
  return !isOpen(transaction) || transaction.awaitsPayer;
}
