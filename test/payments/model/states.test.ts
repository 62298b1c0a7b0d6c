import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  Payment_Status,
  Payment_SubStatus_Value,
  PaymentSchema,
  ProviderDataSchema,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import { declineOf } from '#src/connectors/port/decline.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { Books } from '#src/payments/model/books.ts';
import { currentStates, shownTransaction, statesOf, transactionStates } from '#src/payments/model/states.ts';
import { TOLD } from '../attempt-outcomes.ts';

const providerData = create(ProviderDataSchema);

describe('statesOf', () => {
  it.each<[Outcome, string]>([
    [
      { kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' },
      'SUCCEEDED/APPROVED SUCCEEDED SUCCEEDED: Transaction successful',
    ],
    [
      { kind: 'awaits_payer', providerData, show: { page: '' } },
      'PENDING/WAITING_ADDITIONAL_STEP PENDING CHALLENGE_REQUIRED: Challenge required',
    ],
    [
      { kind: 'pending', providerData },
      'PENDING/PENDING_PROVIDER_CONFIRMATION PENDING PENDING_PROVIDER_CONFIRMATION: Transaction waiting confirmation',
    ],
    [
      { kind: 'unknown', detail: '', providerData: undefined },
      'PENDING/PENDING_PROVIDER_CONFIRMATION PENDING PENDING_PROVIDER_CONFIRMATION: Transaction waiting confirmation',
    ],
    [
      { kind: 'declined', providerData, iso8583Code: '51', advice: 'NONE' },
      'DECLINED/DECLINED DECLINED INSUFFICIENT_FUNDS: Insufficient funds',
    ],
    [
      { kind: 'not_sent', detail: '', because: 'unreachable' },
      'ERROR/ERROR ERROR PROVIDER_UNAVAILABLE: Provider could not be reached',
    ],
    [
      { kind: 'not_sent', detail: '', because: 'turned_away' },
      'ERROR/ERROR ERROR PROVIDER_UNAVAILABLE: Provider could not be reached',
    ],
    [
      { kind: 'not_sent', detail: '', because: 'turned_away', refused: 'billing_details[email]' },
      'ERROR/ERROR ERROR REQUEST_REFUSED: Provider refused the request: billing_details[email]',
    ],
    [
      { kind: 'not_sent', detail: '', because: 'turned_away', refused: '' },
      'ERROR/ERROR ERROR REQUEST_REFUSED: Provider refused the request',
    ],
    [{ kind: 'expired', providerData }, 'EXPIRED/EXPIRED EXPIRED EXPIRED: Payment expired'],
  ])('statesOf maps $kind as in the table', (outcome, expected) => {
    const { payment, subStatus, transaction, responseCode, responseMessage } = statesOf(outcome, TOLD);
    expect(
      `${Payment_Status[payment]}/${Payment_SubStatus_Value[subStatus]} ` +
        `${Transaction_Status[transaction]} ${responseCode}: ${responseMessage}`,
    ).toBe(expected);
  });
});

describe('an approval', () => {
  const approved: Outcome = {
    kind: 'approved',
    providerData,
    authorizationCode: '',
    retrievalReferenceNumber: '',
  };

  it.each([
    [Transaction_Type.PURCHASE, Payment_Status.SUCCEEDED, Payment_SubStatus_Value.APPROVED],
    [Transaction_Type.AUTHORIZE, Payment_Status.PENDING, Payment_SubStatus_Value.AUTHORIZED],
    [Transaction_Type.VERIFY, Payment_Status.VERIFIED, Payment_SubStatus_Value.VERIFIED],
  ])('the approval of a transaction of type %i makes its payment %i / %i', (type, payment, subStatus) => {
    expect(statesOf(approved, { ...TOLD, type })).toMatchObject({
      ...{ payment, subStatus, transaction: Transaction_Status.SUCCEEDED, responseCode: 'SUCCEEDED' },
    });
  });
});

it('only a failure after a success is shown as such, and only of a capture or a refund', () => {
  const reported = { providerData } as const;
  const approved = {
    kind: 'approved',
    ...reported,
    authorizationCode: '',
    retrievalReferenceNumber: '',
  } as const;
  const declined = { kind: 'declined', ...reported, iso8583Code: '05', advice: 'NONE' } as const;
  const codesOf = (outcome: Outcome, isLate: boolean) =>
    (['CAPTURE', 'CANCEL', 'REFUND'] as const).map(
      (type) => transactionStates(outcome, type, isLate).responseCode,
    );
  expect(codesOf(approved, false)).toEqual(['SUCCEEDED', 'SUCCEEDED', 'SUCCEEDED']);
  expect(codesOf(declined, true)).toEqual(['CAPTURE_FAILED', 'DO_NOT_HONOR', 'REFUND_FAILED']);
  expect(codesOf(declined, false)).toEqual(['DO_NOT_HONOR', 'DO_NOT_HONOR', 'DO_NOT_HONOR']);
});

describe('a redirect', () => {
  it('a redirect of a wallet is ready to pay, and a redirect of a card is a challenge', () => {
    const redirect: Outcome = {
      kind: 'awaits_payer',
      providerData,
      show: { page: 'https://wallet.example' },
    };
    expect(statesOf(redirect, { ...TOLD, methodKind: 'PAYER_PAGE' })).toMatchObject({
      payment: Payment_Status.READY_TO_PAY,
      subStatus: Payment_SubStatus_Value.CREATED,
      transaction: Transaction_Status.CREATED,
      responseCode: 'SUCCEEDED',
    });
  });
});

describe('an unsent attempt after a declined one', () => {
  it('an unsent attempt after a declined one leaves the payment declined, and is itself an error', () => {
    const states = statesOf(
      { kind: 'not_sent', detail: '', because: 'unreachable' },
      { ...TOLD, isDeclinedBefore: true },
    );
    expect(states).toMatchObject({
      payment: Payment_Status.DECLINED,
      subStatus: Payment_SubStatus_Value.DECLINED,
      transaction: Transaction_Status.ERROR,
      responseCode: 'PROVIDER_UNAVAILABLE',
    });
  });

  it('an unsent attempt after a declined one shows the fields that its provider refused', () => {
    const refused: Outcome = { kind: 'not_sent', detail: '', because: 'turned_away', refused: 'amount' };
    expect(statesOf(refused, { ...TOLD, isDeclinedBefore: true })).toMatchObject({
      payment: Payment_Status.DECLINED,
      transaction: Transaction_Status.ERROR,
      responseCode: 'REQUEST_REFUSED',
    });
  });
});

describe('currentStates', () => {
  const purchase: Books = {
    ...{ currency: 'USD', amount: 100n, isAuthorization: false },
    ...{ captured: 0n, refunded: 0n, isReleased: false },
  };
  const authorization: Books = { ...purchase, isAuthorization: true };
  const told = (books: Books, isShownAsAuthorized = false, opens?: 'refund' | 'cancel') => {
    const { status, subStatus } = currentStates(books, { isShownAsAuthorized, opens });
    return `${Payment_Status[status]}/${Payment_SubStatus_Value[subStatus]}`;
  };

  it.each<[string, Books, string]>([
    ['purchased', purchase, 'SUCCEEDED/APPROVED'],
    ['refunded in part', { ...purchase, refunded: 1n }, 'SUCCEEDED/PARTIALLY_REFUNDED'],
    ['refunded', { ...purchase, refunded: 100n }, 'REFUNDED/REFUNDED'],
    ['authorized', authorization, 'SUCCEEDED/APPROVED'],
    ['captured in part', { ...authorization, captured: 1n }, 'SUCCEEDED/PARTIALLY_CAPTURED'],
    ['captured', { ...authorization, captured: 100n }, 'SUCCEEDED/CAPTURED'],
    [
      'captured in part, the rest released',
      { ...authorization, captured: 1n, isReleased: true },
      'SUCCEEDED/PARTIALLY_CAPTURED',
    ],
    ['released', { ...authorization, isReleased: true }, 'CANCELED/CANCELED'],
    [
      'captured in part, and all of that refunded',
      { ...authorization, captured: 60n, refunded: 60n },
      'REFUNDED/REFUNDED',
    ],
    [
      'captured, and a part of that refunded',
      { ...authorization, captured: 60n, refunded: 59n },
      'SUCCEEDED/PARTIALLY_REFUNDED',
    ],
  ])('currentStates follows the books of a payment that was %s', (_name, books, expected) => {
    expect(told(books)).toBe(expected);
  });

  it('currentStates shows an authorization as authorized if the account wants that, until it is captured', () => {
    expect(told(authorization, true)).toBe('PENDING/AUTHORIZED');
    expect(told({ ...authorization, captured: 1n }, true)).toBe('SUCCEEDED/PARTIALLY_CAPTURED');
    expect(told(purchase, true)).toBe('SUCCEEDED/APPROVED');
  });

  it('currentStates shows the expected state for an open operation that would end the payment', () => {
    expect(told(purchase, false, 'refund')).toBe('REFUNDED/PENDING_PROVIDER_CONFIRMATION');
    expect(told(authorization, false, 'cancel')).toBe('CANCELED/PENDING_PROVIDER_CONFIRMATION');
  });
});

it.each([
  [Transaction_Status.PENDING, Payment_Status.IN_DISPUTE, Payment_SubStatus_Value.RECEIVED],
  [Transaction_Status.SUCCEEDED, Payment_Status.CHARGEBACK, Payment_SubStatus_Value.LOST],
  [Transaction_Status.DECLINED, Payment_Status.REFUNDED, Payment_SubStatus_Value.REFUNDED],
])('a dispute takes precedence over the books, unless it was won (%i)', (dispute, status, subStatus) => {
  const books = { currency: 'USD', amount: 1n, isAuthorization: false, captured: 0n, refunded: 1n };
  const told = { isShownAsAuthorized: false, opens: undefined, dispute };
  expect(currentStates({ ...books, isReleased: false }, told)).toEqual({ status, subStatus });
});

describe('shownTransaction', () => {
  const { DECLINED, ERROR, SUCCEEDED } = Transaction_Status;
  const told = (status: Payment_Status, ...statuses: Transaction_Status[]) => {
    const transactionsHistory = statuses.map((status, i) => ({ id: String(i), status }));
    return shownTransaction(create(PaymentSchema, { status, transactionsHistory }))?.id;
  };

  it('shownTransaction is the last transaction', () => {
    expect(told(Payment_Status.SUCCEEDED, DECLINED, SUCCEEDED)).toBe('1');
    expect(told(Payment_Status.ERROR, DECLINED, ERROR)).toBe('1');
    expect(told(Payment_Status.ERROR)).toBeUndefined();
  });

  it('shownTransaction is the last declined transaction of a declined payment', () => {
    expect(told(Payment_Status.DECLINED, DECLINED, DECLINED, ERROR)).toBe('1');
    expect(told(Payment_Status.DECLINED, ERROR)).toBe('0');
  });
});

describe('declineOf', () => {
  it.each([
    ['DO_NOT_HONOR', 'soft', ['05']],
    ['INSUFFICIENT_FUNDS', 'soft', ['51']],
    ['INVALID_CARD_NUMBER', 'hard', ['14']],
    ['EXPIRED_CARD', 'hard', ['33', '54']],
    ['REPORTED_LOST', 'hard', ['41']],
    ['REPORTED_STOLEN', 'hard', ['43']],
    ['USER_RESTRICTION', 'hard', ['57']],
    ['RESTRICTED_BY_BANK', 'soft', ['62']],
    ['INVALID_SECURITY_CODE', 'hard', ['82', 'N7', 'n7']],
    ['FRAUD_SUSPECTED', 'hard', ['59']],
    ['LIMIT_EXCEEDED', 'soft', ['61', '65']],
    ['ACQUIRER_CONTINGENCY', 'soft', ['22', '80', '90', '91', '92', '96']],
    ['PROVIDER_TIMEOUT', 'hard', ['68']],
    ['DECLINED_BY_BANK', 'soft', ['99', '', '00', 'XX', '__proto__']],
  ])('declineOf is %s (%s) for %j', (code, kind, iso8583Codes) => {
    for (const iso8583Code of iso8583Codes) {
      expect(declineOf(iso8583Code)).toMatchObject({ code, hard: kind === 'hard' });
      expect(declineOf(iso8583Code).message).not.toBe('');
    }
  });
});
