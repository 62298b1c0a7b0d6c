import { caseTime, reasonOfCode } from '../kit/dispute-case.ts';
import {
  asIs,
  fields,
  numberOf,
  pageAddress,
  type Read,
  readMoney,
  textLike,
} from '../kit/provider-answer.ts';
import type { CaseStage, CaseStatus, Dispute } from '../port/dispute-report.ts';

/** The fields of a dispute that no other object has. */
export const DISPUTE_FIELDS = {
  stage: textLike(/^[a-z_]{1,32}$/),
  status: textLike(/^[a-z_]{1,32}$/),
  reason: textLike(/^[a-z_]{1,32}$/),
  network_code: textLike(/^[0-9.]{1,16}$/),
  funds_moved: numberOf,
  ...{ amount: asIs, currency: asIs, fee: asIs, respond_by: asIs, updated_at: asIs },
  url: pageAddress,
};

const readDispute = fields({ id: textLike(/^dp_[0-9a-f-]{36}$/), ...DISPUTE_FIELDS });

const STAGES: Readonly<Record<string, CaseStage>> = {
  inquiry: 'INQUIRY',
  chargeback: 'CHARGEBACK',
  pre_arbitration: 'PRE_ARBITRATION',
};

const STATUSES: Readonly<Record<string, readonly [stage: Dispute['stage'], status: CaseStatus]>> = {
  needs_response: ['opened', 'NEEDS_RESPONSE'],
  under_review: ['opened', 'UNDER_REVIEW'],
  won: ['won', 'WON'],
  lost: ['lost', 'LOST'],
  accepted: ['lost', 'ACCEPTED'],
  expired: ['lost', 'EXPIRED'],
  closed: ['won', 'CLOSED'],
};

/** Reads a dispute; undefined for a status that is unknown. */
export function disputeOf(object: Read<typeof readDispute>): Dispute | undefined {
  const [stage, status] = STATUSES[object.status ?? ''] ?? [];
  if (!stage) return undefined;
  return {
    ...{ stage, reference: object.id, money: readMoney(object.amount, object.currency, 'minor_units') },
    moves: object.funds_moved,
    case: {
      ...{ stage: STAGES[object.stage ?? ''], status },
      reason: reasonOfCode(object.network_code ?? ''),
      rawReason: object.reason,
      networkCode: object.network_code,
      fee: readMoney(object.fee, object.currency, 'minor_units'),
      respondBy: caseTime(object.respond_by),
      link: object.url,
      at: caseTime(object.updated_at),
    },
  };
}
