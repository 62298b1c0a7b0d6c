import { create } from '@bufbuild/protobuf';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';

/* Outcomes of a scripted provider. */

export const providerData = create(ProviderDataSchema, { id: 'SCRIPTED', transactionId: 'ch_1' });
export const APPROVED: Outcome = {
  kind: 'approved',
  providerData,
  authorizationCode: 'A1B2C3',
  retrievalReferenceNumber: '012345678901',
};
export const PENDING: Outcome = { kind: 'pending', providerData };
export const declined = (iso8583Code: string): Outcome => ({
  ...{ kind: 'declined', providerData, iso8583Code, advice: 'NONE' },
});
export const DECLINED = declined('51');
export const UNKNOWN = {
  kind: 'unknown',
  detail: 'silence',
  providerData: undefined,
} as const satisfies Outcome;
export const NOT_SENT: Outcome = { kind: 'not_sent', detail: 'closed', because: 'turned_away' };
