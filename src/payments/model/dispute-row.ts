import {
  CASE_STAGES,
  type CaseReason,
  type CaseStage,
  type CaseStatus,
  type Dispute,
  type DisputeCase,
} from '#src/connectors/port/dispute-report.ts';
import type { Money } from '#src/money.ts';

/** A dispute as stored. */
export type DisputeRow = {
  /** Also the id of its CHARGEBACK transaction, if there is one. */
  readonly id: string;
  readonly connectionId: string;
  readonly connectionIdentity: string;
  /** The provider's id of the dispute. */
  readonly reference: string | undefined;
  readonly stage: CaseStage;
  readonly status: CaseStatus;
  readonly reason: CaseReason;
  readonly rawReason: string | undefined;
  readonly networkCode: string | undefined;
  readonly minorUnits: bigint;
  readonly currency: string;
  /** The fee in minor units of its own currency; undefined if unknown. */
  readonly feeMinorUnits: bigint | undefined;
  readonly feeCurrency: string | undefined;
  /** undefined: unknown. */
  readonly respondBy: Date | undefined;
  readonly link: string | undefined;
  /** When the provider last changed it, as far as it says. */
  readonly reportedAt: Date | undefined;
  /** Number of changes so far. */
  readonly sequence: number;
  /** When it was stored; undefined for a new one. */
  readonly openedAt?: Date | undefined;
};

/** The event of a dispute's change. */
export type DisputeEvent = 'dispute.opened' | 'dispute.updated' | 'dispute.closed';

/** A new or changed dispute, and its event. */
export type ChangedDispute = { readonly row: DisputeRow; readonly event: DisputeEvent };

/** Returns true for a status in which the provider has yet to decide. */
export function isOpenCase(status: CaseStatus): boolean {
  return status === 'NEEDS_RESPONSE' || status === 'UNDER_REVIEW';
}

const LOST: ReadonlySet<CaseStatus> = new Set(['LOST', 'ACCEPTED', 'EXPIRED']);

/** Returns true for a status in which the merchant has lost the money. */
export function isLostCase(status: CaseStatus): boolean {
  return LOST.has(status);
}

/** Returns true for a stage in which the provider may take the money. Earlier stages leave the payment as it is. */
export function takesMoney(stage: CaseStage): boolean {
  return CASE_STAGES.indexOf(stage) >= CASE_STAGES.indexOf('CHARGEBACK');
}

/** Returns the stage that a dispute has after a report. A report that names none is about a chargeback. */
export function stageAfter(before: Pick<DisputeRow, 'stage'> | undefined, reported: Dispute): CaseStage {
  if (before && reported.isAddition) return before.stage;
  const stage = reported.case?.stage ?? before?.stage ?? 'CHARGEBACK';
  // Money that has moved, or an end without details, is about more than an inquiry.
  return takesMoney(stage) || reported.case?.stage ? stage : 'CHARGEBACK';
}

const STATUSES = { opened: 'NEEDS_RESPONSE', won: 'WON', lost: 'LOST' } as const;

/** Returns the status that a report gives a dispute. */
function statusAfter(before: DisputeRow | undefined, { stage, isAddition, case: reported }: Dispute) {
  return reported?.status ?? (isAddition && before ? before.status : STATUSES[stage]);
}

/**
 * Returns true if a report is about an earlier time than a recorded dispute: an earlier stage, fewer movements of its money,
 * or, for an addition, which may be about an earlier stage, an earlier time.
 */
export function isEarlier(
  before: Pick<DisputeRow, 'stage' | 'reportedAt'> | undefined,
  corrections: number,
  reported: Dispute,
): boolean {
  if (reported.moves !== undefined && reported.moves < corrections) return true;
  if (before && reported.isAddition) return isOlder(before, reported);
  if (!before || reported.case?.stage === undefined) return false;
  return CASE_STAGES.indexOf(reported.case.stage) < CASE_STAGES.indexOf(before.stage);
}

/**
 * Returns true if a report changes a recorded status. What the provider has decided stays, except that a won dispute may be
 * lost, that a later stage opens it again, and that the provider may give the money of a lost one back.
 */
function mayFollow(before: DisputeRow, reported: Dispute, isGivenBack: boolean): boolean {
  const [status, stage] = [statusAfter(before, reported), stageAfter(before, reported)];
  if (LOST.has(before.status)) return isGivenBack;
  if (CASE_STAGES.indexOf(stage) > CASE_STAGES.indexOf(before.stage)) return true;
  if (!isOpenCase(before.status)) return LOST.has(status) && !reported.isAddition;
  return !isOpenCase(status) || (reported.case !== undefined && !isOlder(before, reported));
}

/** Returns true if a report is about an earlier time than the last one about a recorded dispute. */
function isOlder({ reportedAt }: Pick<DisputeRow, 'reportedAt'>, { case: reported }: Dispute): boolean {
  return reported?.at !== undefined && reportedAt !== undefined && reported.at < reportedAt;
}

/**
 * Decides how a report changes a dispute; undefined if it does not.
 *
 * @param before the recorded dispute; undefined for a new one.
 * @param own.isGivenBack the provider reports that it has given the money back since.
 */
export function disputeAfter(
  before: DisputeRow | undefined,
  reported: Dispute,
  own: Pick<DisputeRow, 'id' | 'connectionId' | 'connectionIdentity'> & {
    readonly money: Money;
    readonly isGivenBack: boolean;
  },
): ChangedDispute | undefined {
  const { reference } = reported;
  const next = !before || mayFollow(before, reported, own.isGivenBack);
  const status = next ? statusAfter(before, reported) : before.status;
  const row: DisputeRow = {
    ...{ id: own.id, connectionId: own.connectionId, connectionIdentity: own.connectionIdentity },
    reference: before?.reference ?? reference,
    ...{ stage: next ? stageAfter(before, reported) : before.stage, status },
    ...detailsAfter(before, next ? reported.case : undefined),
    ...(next || !before ? own.money : { minorUnits: before.minorUnits, currency: before.currency }),
    sequence: (before?.sequence ?? 0) + 1,
    openedAt: before?.openedAt,
  };
  if (before && isSame(before, row)) return undefined;
  if (!isOpenCase(status) && !(before && before.status === status)) return { row, event: 'dispute.closed' };
  return { row, event: before ? 'dispute.updated' : 'dispute.opened' };
}

function detailsAfter(before: DisputeRow | undefined, reported: DisputeCase = {}) {
  const { fee } = reported;
  return {
    reason: reported.reason ?? before?.reason ?? 'OTHER',
    rawReason: reported.rawReason ?? before?.rawReason,
    networkCode: reported.networkCode ?? before?.networkCode,
    feeMinorUnits: fee?.minorUnits ?? before?.feeMinorUnits,
    feeCurrency: fee?.currency ?? before?.feeCurrency,
    respondBy: reported.respondBy ?? before?.respondBy,
    link: reported.link ?? before?.link,
    reportedAt: reported.at ?? before?.reportedAt,
  };
}

/** Returns true if only the time of the report and the number of changes differ. */
function isSame(one: DisputeRow, other: DisputeRow): boolean {
  const shown = ({ sequence: _, reportedAt: __, openedAt: ___, respondBy, ...row }: DisputeRow) =>
    Object.entries({ ...row, respondBy: respondBy?.getTime() })
      .map(([name, value]) => `${name} ${value}`)
      .sort()
      .join('\n');
  return shown(one) === shown(other);
}
