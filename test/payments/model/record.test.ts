import { create } from '@bufbuild/protobuf';
import { timestampNow } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import {
  Payment_Status,
  PaymentSchema,
  ProviderDataSchema,
  Transaction_Category,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/outcome.ts';
import { recordOutcome } from '#src/payments/model/record.ts';
import { APPROVED, declined } from '../attempt-outcomes.ts';

const providerData = create(ProviderDataSchema);
const CHALLENGE: Outcome = { kind: 'redirect', providerData, redirectUrl: 'https://acs.example' };
const PENDING: Outcome = { kind: 'pending', providerData };
const UNKNOWN: Outcome = { kind: 'unknown', detail: '', providerData: undefined };
const EXPIRED: Outcome = { kind: 'expired', providerData };

it.each<[string, Outcome, string]>([
  ['stands while the provider has yet to decide', PENDING, 'https://acs.example'],
  ['stands while the outcome is not known', UNKNOWN, 'https://acs.example'],
  ['goes once it is approved', APPROVED, ''],
  ['goes once it is declined', declined('05'), ''],
  ['goes once it has expired', EXPIRED, ''],
])('the address of a challenge %s', (_what, outcome, address) => {
  const detail = { kind: { case: 'card', value: {} } } as const;
  const record = create(PaymentSchema, {
    checkout: {},
    paymentMethod: { type: 'CARD' },
    transactionsHistory: [
      {
        ...{ id: 't', type: Transaction_Type.PURCHASE, category: Transaction_Category.CARD },
        paymentMethod: { type: 'CARD', detail },
      },
    ],
  });
  recordOutcome(record, CHALLENGE, undefined, timestampNow());
  expect(record).toMatchObject({ status: Payment_Status.PENDING, checkout: { sdkActionRequired: true } });
  recordOutcome(record, outcome, undefined, timestampNow());
  const told = record.transactionsHistory.map(({ paymentMethod }) => paymentMethod?.detail?.kind.value);
  expect(told).toMatchObject([{ redirectUrl: address }]);
  expect(record.paymentMethod?.paymentMethodDetail?.kind.value).toMatchObject({ redirectUrl: address });
});
