import { create } from '@bufbuild/protobuf';
import { timestampFromDate } from '@bufbuild/protobuf/wkt';
import {
  type Dispute,
  Dispute_Reason,
  Dispute_Stage,
  Dispute_Status,
  DisputeSchema,
} from '#gen/payments/v1/dispute_service_pb.js';
import { toDecimal } from '#src/money.ts';
import type { StoredDispute } from '#src/store/tables/disputes.ts';

/** Returns the message that callers and events have of a dispute. Its note is the operators'. */
export function disputeMessage(dispute: Omit<StoredDispute, 'note' | 'notedBy'>): Dispute {
  const { minorUnits, currency, feeMinorUnits, feeCurrency, respondBy, openedAt, updatedAt, closedAt } =
    dispute;
  return create(DisputeSchema, {
    id: dispute.id,
    accountId: dispute.accountId,
    paymentId: dispute.paymentId,
    connectionId: dispute.connectionId,
    providerReference: dispute.reference ?? '',
    stage: Dispute_Stage[dispute.stage],
    status: Dispute_Status[dispute.status],
    reason: Dispute_Reason[dispute.reason],
    providerReason: dispute.rawReason ?? '',
    networkCode: dispute.networkCode ?? '',
    amount: { currency, value: toDecimal({ minorUnits, currency }) },
    ...(feeMinorUnits !== undefined &&
      feeCurrency && {
        fee: {
          currency: feeCurrency,
          value: toDecimal({ minorUnits: feeMinorUnits, currency: feeCurrency }),
        },
      }),
    ...(respondBy && { respondBy: timestampFromDate(respondBy) }),
    link: dispute.link ?? '',
    sequence: dispute.sequence,
    openedAt: timestampFromDate(openedAt),
    updatedAt: timestampFromDate(updatedAt),
    ...(closedAt && { closedAt: timestampFromDate(closedAt) }),
  });
}
