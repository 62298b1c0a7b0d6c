import { create } from '@bufbuild/protobuf';
import { timestampDate } from '@bufbuild/protobuf/wkt';
import { describe, expect, it } from 'vitest';
import { Payment_Status, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { alarmingOutcome, unknownOutcome } from '#src/connectors/kit/provider-answer.ts';
import type { Instructions, Outcome } from '#src/connectors/port/outcome.ts';
import { type CheckTerms, decide, type Found, isLastCheck } from '#src/payments/check/decide.ts';
import { codePauseS } from '#src/payments/model/schedule.ts';
import type { PaymentState } from '#src/payments/model/state.ts';
import { NO_LOOK_UP } from '#src/payments/model/waiting.ts';
import { found } from './found-payment.ts';
import { AMOUNT, APPROVED, BASE_ID, begun, claimedCode, learned, OUR_PAGE } from './model/kept-payment.ts';

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const TERMS: CheckTerms = { hasLookUp: true, hasNews: false, pauseS: () => 5 };
const NO_LOOK_UPS: CheckTerms = { ...TERMS, hasLookUp: false };

const providerData = create(ProviderDataSchema);
const UNTIL = new Date('2026-03-11T00:00:00Z');
const shown = (instructions: Instructions): Outcome => ({
  ...{ kind: 'awaits_payer', providerData, until: UNTIL, show: { instructions } },
});
const CODE = shown({ text: '000201' });
const PART: Outcome = { ...CODE, received: { minorUnits: 4_000n, currency: 'USD' } } as Outcome;
const EXPIRED: Outcome = { kind: 'expired', providerData };
const PENDING: Outcome = { kind: 'pending', providerData };
const DECLINED: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };

const applied = (state: PaymentState, outcome: Outcome) =>
  learned(state, { kind: 'outcome', transactionId: BASE_ID, outcome, pauseS: 5 });
const created = (outcome = CODE) => applied(claimedCode(), outcome).state;

/** A code that awaits its payer. @param ageMs its payer has an hour. */
const open = (ageMs: number, state = created()): Found => found(state, { ageMs });
const detailOf = ({ record }: PaymentState) => record.paymentMethod?.paymentMethodDetail?.kind.value;
const alarmsOf = (state: PaymentState, outcome: Outcome) => {
  const { change } = applied(state, outcome);
  return typeof change === 'string' ? change : change.moneyAlarms;
};

/** A code whose creation has no known outcome. */
const UNSEEN = applied(claimedCode(), unknownOutcome('cut off')).state;

describe('the end of a code', () => {
  const untilOf = (outcome: Outcome, state: PaymentState) => {
    const { change } = applied(state, outcome);
    return typeof change === 'string' ? change : change.transaction?.payerUntil;
  };

  it('is stored if the provider names another than the expected one', () => {
    expect(untilOf(CODE, claimedCode())).toEqual(UNTIL);
    expect(untilOf({ ...PART, until: new Date(+UNTIL + 1_001) } as Outcome, created())).toEqual(
      new Date(+UNTIL + 1_001),
    );
  });

  it.each([-1_000, 0, 1_000])('is not stored again if it is the expected one, %i ms later', (ms) => {
    expect(untilOf({ ...PART, until: new Date(+UNTIL + ms) } as Outcome, created())).toBeUndefined();
  });
});

describe('the check of a code', () => {
  it.each([
    ['at first after a minute', 0, HOUR_MS, 60],
    ['after half its age', 20 * 60_000, 40 * 60_000, 600],
    ['at least every hour', 3 * HOUR_MS, 3 * HOUR_MS, 3_600],
    ['at its end', 10 * HOUR_MS, 90_000, 90],
    ['three hours after its end', HOUR_MS, 0, 3 * 3_600],
    ['a day after its end', HOUR_MS, -3 * HOUR_MS, 21 * 3_600],
    ['five days after its end', HOUR_MS, -DAY_MS, 4 * 86_400],
    ['seven days after its end', HOUR_MS, -5 * DAY_MS, 2 * 86_400],
    ['daily for thirty days', HOUR_MS, -7 * DAY_MS, 86_400],
    ['daily for thirty days, at the same time', HOUR_MS, -29.75 * DAY_MS, 0.25 * 86_400],
    ['weekly after thirty days', HOUR_MS, -30 * DAY_MS, 5 * 86_400],
    ['weekly', HOUR_MS, -35 * DAY_MS, 7 * 86_400],
  ])('is due %s', (_what, ageMs, leftMs, pauseS) => {
    expect(codePauseS(ageMs, leftMs)).toBeCloseTo(pauseS);
  });

  it.each<[string, Found, Outcome, object, CheckTerms?]>([
    ['an open code is waited for', open(HOUR_MS / 2), CODE, { kind: 'nothing', checkInS: 900 }],
    [
      'an open code is waited for after its end',
      open(HOUR_MS),
      CODE,
      { kind: 'nothing', checkInS: 3 * 3_600 },
    ],
    ['a code that the provider ended has expired', open(HOUR_MS), EXPIRED, { kind: 'write' }],
    ['a paid code is paid', open(2 * HOUR_MS), APPROVED, { kind: 'write' }],
    ['a payment that is being confirmed is shown', open(0), PENDING, { kind: 'write' }],
    ['a declined transfer is declined', open(0), DECLINED, { kind: 'write', report: { outcome: DECLINED } }],
    ['a part of the money is shown', open(0), PART, { kind: 'write', report: { outcome: PART } }],
    ['the same part changes nothing', open(0, created(PART)), PART, { kind: 'nothing' }],
    [
      'a code of a provider without look-up is waited for',
      open(HOUR_MS + 10 * DAY_MS - 1),
      NO_LOOK_UP,
      { kind: 'nothing' },
      NO_LOOK_UPS,
    ],
    [
      'a code of a provider without look-up ends ten days after its time',
      open(HOUR_MS + 10 * DAY_MS),
      NO_LOOK_UP,
      { kind: 'write', report: { outcome: { kind: 'expired' } } },
      NO_LOOK_UPS,
    ],
    [
      'a code whose answer was lost without look-up stays unknown',
      open(HOUR_MS + 10 * DAY_MS - 1, UNSEEN),
      NO_LOOK_UP,
      { kind: 'nothing' },
      NO_LOOK_UPS,
    ],
    [
      'a code whose answer was lost without look-up ends ten days after its time, since nobody can pay it',
      open(HOUR_MS + 10 * DAY_MS, UNSEEN),
      unknownOutcome('the provider accepted the cancel request'),
      { kind: 'write', report: { outcome: { kind: 'expired' } } },
      NO_LOOK_UPS,
    ],
    [
      'a code whose answer was lost is never ended by a clock where it can be looked up',
      open(HOUR_MS + 50 * DAY_MS, UNSEEN),
      unknownOutcome('no answer'),
      { kind: 'nothing' },
    ],
    [
      'a payer who came back without a result may have paid, and never expires',
      open(HOUR_MS + 50 * DAY_MS, created(PENDING)),
      NO_LOOK_UP,
      { kind: 'nothing' },
      NO_LOOK_UPS,
    ],
  ])('%s', (_what, own, outcome, decision, terms = TERMS) => {
    expect(decide(own, { outcome }, terms)).toMatchObject(decision);
  });

  it('time alone ends no code at a provider with look-up', () => {
    expect(isLastCheck(open(365 * DAY_MS), TERMS)).toBe(false);
    expect(decide(open(365 * DAY_MS), { outcome: CODE }, TERMS).kind).toBe('nothing');
  });

  it('a code that is still open thirty days after its end needs manual review', () => {
    const learnedAt = (ageMs: number) => {
      const decision = decide(open(ageMs), { outcome: CODE }, TERMS);
      return decision.kind === 'nothing' && decision.learned;
    };
    expect(learnedAt(HOUR_MS + 30 * DAY_MS)).toEqual(
      alarmingOutcome('the payer can still pay 30 days after the end, according to the provider'),
    );
    expect(learnedAt(HOUR_MS + 30 * DAY_MS - 1)).toEqual(CODE);
    const paid = decide(open(HOUR_MS + 30 * DAY_MS), { outcome: APPROVED }, TERMS);
    expect(paid).toMatchObject({ kind: 'write', learned: APPROVED });
  });
});

describe('the record of a local method', () => {
  it('shows a bank transfer’s code, and our own image of it', () => {
    const { record } = created();
    expect([record.status, record.transactionsHistory[0]?.responseCode]).toEqual([
      Payment_Status.READY_TO_PAY,
      'SUCCEEDED',
    ]);
    const value = detailOf(created());
    expect(value).toMatchObject({
      ...{
        paymentInstruction: '000201',
        providerImage: `${OUR_PAGE}/qr.svg`,
        redirectUrl: OUR_PAGE,
        documentUrl: '',
      },
    });
    expect(value && 'expiresAt' in value && value.expiresAt && timestampDate(value.expiresAt)).toEqual(UNTIL);
    expect(record.transactionsHistory[0]?.paymentMethod?.detail?.kind.value).toEqual(value);
  });

  it('shows the provider’s image, account and document', () => {
    const image = 'https://provider.example/qr.png';
    const account = { account: '646180', bankName: 'STP', beneficiary: 'Shop', reference: '77' };
    const document = 'https://provider.example/page';
    expect(detailOf(created(shown({ image, ...account, document })))).toMatchObject({
      ...{
        providerImage: image,
        bankAccount: '646180',
        bankName: 'STP',
        beneficiaryName: 'Shop',
        reference: '77',
      },
      ...{ documentUrl: document, redirectUrl: OUR_PAGE },
    });
    expect(detailOf(created(shown(account)))).not.toHaveProperty('providerImage');
  });

  it('leads to the provider’s page where the payer is redirected to it', () => {
    const outcome: Outcome = { ...CODE, show: { page: 'https://bank.example' } } as Outcome;
    expect(detailOf(created(outcome))).toMatchObject({
      redirectUrl: 'https://bank.example',
    });
  });

  it.each([
    [
      { number: '34191', barcode: '3419' },
      { type: 'barcode', providerNumber: '34191', providerBarcode: '3419', providerFormat: 'barcode' },
    ],
    [
      { reference: '93000' },
      {
        type: 'reference_code',
        providerNumber: '93000',
        providerFormat: 'custom',
      },
    ],
  ])('shows the digits of a ticket', (instructions, value) => {
    expect(detailOf(applied(claimedCode('ticket'), shown(instructions)).state)).toMatchObject(value);
  });

  it('names the bank’s reference of a paid transfer', () => {
    const paid = applied(created(), { ...APPROVED, retrievalReferenceNumber: 'e2e-1' }).state;
    expect(detailOf(paid)).toMatchObject({ retrievalReferenceNumber: 'e2e-1', paymentInstruction: '000201' });
    expect(detailOf(applied(created(), APPROVED).state)).not.toHaveProperty('retrievalReferenceNumber');
  });

  it('shows what has arrived until it is the whole amount', () => {
    const received = ({ record }: PaymentState) =>
      record.transactionsHistory[0]?.providerData?.amountReceived;
    const part = created(PART);
    expect(received(part)).toBe('40.00');
    expect([EXPIRED, APPROVED].map((outcome) => received(applied(part, outcome).state))).toEqual([
      '40.00',
      '',
    ]);
    const more: Outcome = { ...APPROVED, received: { minorUnits: 15_000n, currency: 'USD' } };
    expect(received(applied(part, more).state)).toBe('150.00');
  });
});

describe('the money of a transfer', () => {
  const MORE: Outcome = { ...APPROVED, received: { minorUnits: 15_000n, currency: 'USD' } };

  it('raises an alarm if too little arrived before the end, or too much', () => {
    expect(alarmsOf(created(PART), EXPIRED)).toEqual(['underpaid']);
    expect(alarmsOf(created(), MORE)).toEqual(['overpaid']);
  });

  it('raises no alarm if it is the payment’s amount, or if there is none', () => {
    expect([
      alarmsOf(created(), APPROVED),
      alarmsOf(created(PART), APPROVED),
      alarmsOf(created(), EXPIRED),
    ]).toEqual([undefined, undefined, undefined]);
  });

  it('raises an alarm, and stays known, if too little arrived before a cancel closed the payment', () => {
    const canceled = begun(created(), 'CANCEL', AMOUNT, 'cancel');
    const part: Outcome = { ...EXPIRED, received: { minorUnits: 4_000n, currency: 'USD' } };
    expect(alarmsOf(canceled, part)).toEqual(['underpaid']);
    expect(alarmsOf(canceled, EXPIRED)).toBeUndefined();
    const { record } = applied(canceled, part).state;
    expect(record.status).toBe(Payment_Status.CANCELED);
    expect(record.transactionsHistory.map((one) => one.providerData?.amountReceived)).toContain('40.00');
  });

  it('raises an alarm if it arrived after the end', () => {
    expect(alarmsOf(applied(created(), EXPIRED).state, APPROVED)).toEqual(['late_payment']);
    expect(alarmsOf(applied(created(), EXPIRED).state, MORE)).toEqual(['late_payment', 'overpaid']);
  });
});
