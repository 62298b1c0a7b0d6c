import { create } from '@bufbuild/protobuf';
import { timestampFromMs, timestampNow } from '@bufbuild/protobuf/wkt';
import { expect, it } from 'vitest';
import { ConnectionConfigSchema } from '#gen/payments/v1/catalogue_pb.js';
import type { Card, StoredCredentials } from '#gen/payments/v1/payment_method_pb.js';
import {
  CheckoutSchema,
  type Payment,
  Payment_Status,
  PaymentSchema,
  ProviderDataSchema,
  Transaction_Category,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { MethodKind } from '#src/connectors/port/capabilities.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { eventOf } from '#src/payments/model/event.ts';
import { atConnection, recordOutcome, withAttempt } from '#src/payments/model/record.ts';
import { APPROVED, declined } from '../../support/outcomes.ts';
import { NOT_SENT } from '../attempt-outcomes.ts';

const providerData = create(ProviderDataSchema);
const CHALLENGE: Outcome = { kind: 'awaits_payer', providerData, show: { page: 'https://acs.example' } };
const PENDING: Outcome = { kind: 'pending', providerData };
const UNKNOWN: Outcome = { kind: 'unknown', detail: '', providerData: undefined };
const EXPIRED: Outcome = { kind: 'expired', providerData };

it.each<[string, Outcome, string]>([
  ['is kept while the provider has yet to decide', PENDING, 'https://acs.example'],
  ['is kept while the outcome is not known', UNKNOWN, 'https://acs.example'],
  ['is removed once the challenge is approved', APPROVED, ''],
  ['is removed once the challenge is declined', declined('05'), ''],
  ['is removed once the challenge has expired', EXPIRED, ''],
])('the URL of a challenge %s', (_what, outcome, address) => {
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
  recordOutcome(record, CHALLENGE, { methodKind: 'CARD' }, timestampNow());
  expect(record).toMatchObject({ status: Payment_Status.PENDING, checkout: { sdkActionRequired: true } });
  recordOutcome(record, outcome, { methodKind: 'CARD' }, timestampNow());
  const told = record.transactionsHistory.map(({ paymentMethod }) => paymentMethod?.detail?.kind.value);
  expect(told).toMatchObject([{ redirectUrl: address }]);
  expect(record.paymentMethod?.paymentMethodDetail?.kind.value).toMatchObject({ redirectUrl: address });
});

const AT = timestampFromMs(1_000);
const WALLET = { kind: { case: 'wallet', value: {} } } as const;
const CARD = { kind: { case: 'card', value: {} } } as const;

/** A record with one attempt. */
function attempted(
  detail: typeof WALLET | typeof CARD = CARD,
  category = Transaction_Category.CARD,
): Payment {
  const own = { id: 't', type: Transaction_Type.PURCHASE, category, providerData };
  const paymentMethod = { type: 'CARD', detail };
  return create(PaymentSchema, { paymentMethod, transactionsHistory: [{ ...own, paymentMethod }] } as never);
}

function recorded(
  record: Payment,
  outcome: Outcome,
  vaultedToken?: string,
  methodKind: MethodKind = 'CARD',
): Payment {
  recordOutcome(record, outcome, { vaultedToken, methodKind }, AT);
  return record;
}

it('an outcome replaces the provider’s data unless it has none', () => {
  const words = create(ProviderDataSchema, { id: 'theirs' });
  const wordsAfter = (outcome: Outcome) =>
    recorded(attempted(), outcome).transactionsHistory[0]?.providerData?.id;
  expect([{ ...PENDING, providerData: words }, NOT_SENT, UNKNOWN].map(wordsAfter)).toEqual([
    'theirs',
    '',
    '',
  ]);
});

it('the URL of a wallet’s page is shown once the payer is redirected to it', () => {
  const addressAfter = (outcome: Outcome) =>
    recorded(attempted(WALLET, Transaction_Category.WALLET), outcome, undefined, 'PAYER_PAGE').paymentMethod
      ?.paymentMethodDetail?.kind.value;
  expect(addressAfter(CHALLENGE)).toMatchObject({ redirectUrl: 'https://acs.example' });
  expect(addressAfter(APPROVED)).not.toMatchObject({ redirectUrl: 'https://acs.example' });
  expect(addressAfter(APPROVED)).not.toHaveProperty('authorizationCode', 'A1B2C3');
});

it('the URL of a wallet’s page stays after the payer has come back', () => {
  const record = recorded(attempted(WALLET, Transaction_Category.WALLET), CHALLENGE, undefined, 'PAYER_PAGE');
  expect(
    recorded(record, PENDING, undefined, 'PAYER_PAGE').paymentMethod?.paymentMethodDetail?.kind.value,
  ).toMatchObject({
    redirectUrl: 'https://acs.example',
  });
});

it('the token of a wallet leads to a challenge as a card does, and its approval shows the card behind it', () => {
  const detail = {
    kind: { case: 'wallet', value: { cardData: { lfd: '4242' }, storedCredentials: { usage: 'FIRST' } } },
  };
  const record = attempted(detail as never, Transaction_Category.WALLET);
  record.checkout = create(CheckoutSchema);
  expect(recorded(record, CHALLENGE)).toMatchObject({
    ...{ status: Payment_Status.PENDING, checkout: { sdkActionRequired: true } },
    paymentMethod: { paymentMethodDetail: { kind: { value: { redirectUrl: 'https://acs.example' } } } },
  });
  const card = { brand: 'VISA', lastFour: '1111', expirationMonth: 12, expirationYear: 30, type: 'DEBIT' };
  const approved = { ...APPROVED, card, networkTransactionId: 'net' } as Outcome;
  expect(recorded(record, approved).paymentMethod?.paymentMethodDetail?.kind.value).toMatchObject({
    ...{ redirectUrl: '', authorizationCode: 'A1B2C3', storedCredentials: { networkTransactionId: 'net' } },
    cardData: {
      brand: 'VISA',
      lfd: '1111',
      expirationMonth: 12,
      expirationYear: 30,
      type: 'DEBIT',
      fingerprint: '',
    },
  });
});

it('an approval shows its codes, and stores the card', () => {
  const approved = recorded(attempted(), APPROVED, 'token');
  expect(approved).toMatchObject({
    paymentMethod: { vaultedToken: 'token' },
    transactionsHistory: [{ paymentMethod: { vaultedToken: 'token' } }],
  });
  expect(approved.paymentMethod?.paymentMethodDetail?.kind.value).toMatchObject({
    ...{ authorizationCode: 'A1B2C3', retrievalReferenceNumber: '012345678901' },
  });
  for (const record of [recorded(attempted(), APPROVED), recorded(attempted(), declined('05'), 'token')]) {
    expect(record.paymentMethod?.vaultedToken).toBe(attempted().paymentMethod?.vaultedToken);
  }
  const refused = recorded(attempted(), declined('05')).paymentMethod?.paymentMethodDetail?.kind.value;
  expect(refused).toMatchObject({ authorizationCode: '' });
});

it.each<[string, Partial<StoredCredentials> | undefined, string | undefined, string | undefined]>([
  ['if the request gave the reason', { reason: 'CARD_ON_FILE' }, 'net', 'net'],
  ['if the request gave the usage', { usage: 'FIRST' }, 'net', 'net'],
  ['if the request gave both', { reason: 'CARD_ON_FILE', usage: 'FIRST' }, 'net', 'net'],
  ['unless the request gave neither reason nor usage', {}, 'net', undefined],
  ['unless the request gave no stored credentials', undefined, 'net', undefined],
  [
    'unless the request gave another ID',
    { reason: 'CARD_ON_FILE', networkTransactionId: 'own' },
    'net',
    'own',
  ],
  ['unless the provider reports none', { reason: 'CARD_ON_FILE' }, undefined, undefined],
])(
  'the network transaction ID of an approval is shown %s',
  (_what, storedCredentials, networkTransactionId, shown) => {
    const record = attempted({ kind: { case: 'card', value: { storedCredentials } } } as never);
    recorded(record, { ...APPROVED, networkTransactionId } as Outcome);
    const card = record.paymentMethod?.paymentMethodDetail?.kind.value as Card | undefined;
    expect(card?.storedCredentials?.networkTransactionId).toBe(shown);
    expect(card?.storedCredentials?.reason).toBe(storedCredentials?.reason);
  },
);

it('the payment of an unsent attempt is declined only if an earlier attempt was declined', () => {
  const statusAfter = (...statuses: Transaction_Status[]) => {
    const record = attempted();
    const [last] = record.transactionsHistory;
    if (!last) throw new Error('there is no attempt');
    const earlier = statuses.map((status, i) => ({ ...last, id: String(i), status }));
    last.status = Transaction_Status.DECLINED;
    record.transactionsHistory = [...earlier, last];
    const { status, transactions } = recorded(record, NOT_SENT);
    return `${Payment_Status[status]} ${transactions?.id}`;
  };
  const { DECLINED, ERROR } = Transaction_Status;
  expect([statusAfter(), statusAfter(ERROR), statusAfter(DECLINED, ERROR)]).toEqual([
    ...['ERROR t', 'ERROR t', 'DECLINED 0'],
  ]);
});

it('a record without a transaction reports a purchase', () => {
  expect(eventOf(create(PaymentSchema))).toBe('payment.purchase');
});

it('a record without a checkout has no action for its payer', () => {
  expect(recorded(attempted(), CHALLENGE).checkout).toBeUndefined();
});

const CONNECTION = create(ConnectionConfigSchema, { id: 'two', name: 'Two', providerId: 'ADYEN' });

it('the next attempt has its own connection, is pending, and has its own copy of the payment method', () => {
  const record = recorded(attempted(), declined('05'));
  const next = withAttempt(record, { transactionId: 'u', at: AT, expiresAt: undefined }, CONNECTION);
  expect(next).toMatchObject({
    ...{ status: Payment_Status.PENDING, updatedAt: AT, transactions: { id: 'u' } },
    transactionsHistory: [
      { id: 't', status: Transaction_Status.DECLINED },
      {
        ...{ id: 'u', status: Transaction_Status.PENDING, providerId: 'ADYEN', createdAt: AT },
        ...{ connectionData: { id: 'two', name: 'Two' }, providerData: { id: 'ADYEN' } },
      },
    ],
  });
  const [first, second] = next.transactionsHistory;
  expect(second?.paymentMethod).toEqual(first?.paymentMethod);
  expect(second?.paymentMethod).not.toBe(first?.paymentMethod);
  expect(record.transactionsHistory).toHaveLength(1);
  expect(atConnection({ ...CONNECTION, name: '' }).connectionData.name).toBeUndefined();
});

it('a record without an attempt or a payment method is an error', () => {
  const bare = create(PaymentSchema, { transactionsHistory: [{ id: 't' }] });
  const undetailed = create(PaymentSchema, {
    ...{
      paymentMethod: { type: 'CARD' },
      transactionsHistory: [{ id: 't', paymentMethod: { type: 'CARD' } }],
    },
  });
  const { paymentMethod: _, ...unnamed } = attempted();
  for (const record of [create(PaymentSchema), bare, undetailed, unnamed]) {
    expect(() => recorded(record, APPROVED)).toThrow('the record has no transaction');
  }
  for (const record of [create(PaymentSchema), bare]) {
    expect(() =>
      withAttempt(record, { transactionId: 'u', at: AT, expiresAt: undefined }, CONNECTION),
    ).toThrow('the record has no transaction');
  }
});
