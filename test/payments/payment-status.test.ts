import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import {
  Payment_Status,
  Payment_SubStatus_Value,
  ProviderDataSchema,
  Transaction_Category,
  Transaction_Status,
  Transaction_Type,
} from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/connector.ts';
import { declineOf } from '#src/connectors/decline.ts';
import { statesOf } from '#src/payments/payment-status.ts';
import { TOLD } from './attempt-outcomes.ts';

const providerData = create(ProviderDataSchema);

describe('statesOf', () => {
  it.each<[Outcome, string]>([
    [
      { kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' },
      'SUCCEEDED/APPROVED SUCCEEDED SUCCEEDED: Transaction successful',
    ],
    [
      { kind: 'redirect', providerData, redirectUrl: '' },
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
      { kind: 'declined', providerData, iso8583Code: '51' },
      'DECLINED/DECLINED DECLINED INSUFFICIENT_FUNDS: Insufficient funds',
    ],
    [
      { kind: 'not_sent', detail: '', because: 'unreachable' },
      'ERROR/ERROR ERROR PROVIDER_UNAVAILABLE: Provider could not be reached',
    ],
  ])('makes of $kind what the table says', (outcome, expected) => {
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
  ])('of a transaction of type %i makes %i / %i of the payment', (type, payment, subStatus) => {
    expect(statesOf(approved, { ...TOLD, type })).toMatchObject({
      ...{ payment, subStatus, transaction: Transaction_Status.SUCCEEDED, responseCode: 'SUCCEEDED' },
    });
  });
});

describe('a redirect', () => {
  it('of a wallet has the payer pay there, where one of a card is a challenge', () => {
    const redirect: Outcome = { kind: 'redirect', providerData, redirectUrl: 'https://wallet.example' };
    expect(statesOf(redirect, { ...TOLD, category: Transaction_Category.WALLET })).toMatchObject({
      payment: Payment_Status.READY_TO_PAY,
      subStatus: Payment_SubStatus_Value.CREATED,
      transaction: Transaction_Status.CREATED,
      responseCode: 'SUCCEEDED',
    });
  });
});

describe('an attempt that was not sent, after one that was declined', () => {
  it('leaves the payment declined, and is itself an error', () => {
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
  ])('is %s (%s) for %j', (code, kind, iso8583Codes) => {
    for (const iso8583Code of iso8583Codes) {
      expect(declineOf(iso8583Code)).toMatchObject({ code, hard: kind === 'hard' });
      expect(declineOf(iso8583Code).message).not.toBe('');
    }
  });
});
