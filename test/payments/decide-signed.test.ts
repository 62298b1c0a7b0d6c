import { create } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { alarmingOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { SignedOutcome } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { decideSigned, type Found } from '#src/payments/check/decide.ts';
import { found } from './found-payment.ts';
import { AMOUNT, APPROVED, approved, begun, claimed } from './model/kept-payment.ts';

const PAUSE_S = 5;
const providerData = create(ProviderDataSchema);
const ALARM = alarmingOutcome('its capture failed');
const DECLINED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
const EXPIRED: Outcome = { kind: 'expired', providerData };
const [AUTHORIZED, PURCHASED] = [approved(false), approved(true)];
const over = { ...AUTHORIZED, payment: { ...AUTHORIZED.payment, isReleased: true } };

describe('a signed report', () => {
  const signed = (changes: Partial<SignedOutcome> = {}): SignedOutcome => ({
    ...{ outcome: APPROVED, minorUnits: AMOUNT, currency: 'USD' },
    ...changes,
  });
  const refund = (minorUnits: bigint) =>
    found(begun(PURCHASED, 'REFUND', minorUnits, 'operation'), {}, 'operation');
  const taken = { ...APPROVED, providerPaymentId: 'base-id' };
  it.each<[string, Found, SignedOutcome, object]>([
    ['of an approval is written', found(claimed(true)), signed(), { kind: 'write', isOther: false }],
    [
      'of another amount is an alarm',
      found(claimed(true)),
      signed({ minorUnits: 1n }),
      { kind: 'nothing', learned: 'mismatch' },
    ],
    [
      'of another currency is an alarm',
      found(claimed(true)),
      signed({ currency: 'EUR' }),
      { kind: 'nothing', learned: 'mismatch' },
    ],
    [
      'of an operation with another amount is written, with an alarm',
      refund(40n),
      signed({ minorUnits: 30n }),
      { kind: 'write', isOther: true, report: { outcome: { money: { minorUnits: 30n, currency: 'USD' } } } },
    ],
    [
      'of the end of an attempt is its outcome',
      found(claimed(true)),
      signed({ outcome: EXPIRED }),
      { kind: 'write', report: { kind: 'outcome' } },
    ],
    [
      'that is only an alarm changes nothing',
      found(PURCHASED),
      signed({ outcome: ALARM }),
      { kind: 'nothing', learned: ALARM },
    ],
    [
      'about the capture of a purchase says nothing about an authorization',
      found(AUTHORIZED),
      signed({ ofPurchase: true }),
      { kind: 'nothing', learned: undefined },
    ],
    [
      'of another charge is an alarm',
      found(PURCHASED),
      signed({ paidReference: 'another' }),
      { kind: 'nothing', learned: 'mismatch' },
    ],
    [
      'decides which charge an open attempt is',
      found(claimed(true)),
      signed({ paidReference: 'another' }),
      { kind: 'write' },
    ],
    [
      'of a second charge is an alarm',
      found(PURCHASED),
      signed({ outcome: { ...taken, providerPaymentId: 'another' } }),
      { kind: 'nothing', learned: { alarm: true } },
    ],
    [
      'of a refund of ours or others is recorded unless known',
      found(PURCHASED),
      signed({ operation: 'REFUND', outcome: taken, minorUnits: 30n }),
      { kind: 'external', made: { type: 'REFUND', money: { minorUnits: 30n } } },
    ],
    [
      'of a refund that failed is ignored',
      found(PURCHASED),
      signed({ operation: 'REFUND', outcome: DECLINED }),
      { kind: 'nothing', learned: undefined },
    ],
    [
      'of the end of an authorization is written',
      found(AUTHORIZED),
      signed({ outcome: EXPIRED }),
      { kind: 'write', report: { kind: 'lapsed' } },
    ],
    [
      'of the end of an authorization that is over is ignored, whatever its amount',
      found(over),
      signed({ outcome: EXPIRED, minorUnits: 1n }),
      { kind: 'nothing', learned: undefined },
    ],
  ])('%s', (_what, own, report, decision) => {
    expect(decideSigned(own, report, PAUSE_S)).toMatchObject(decision);
  });
});
