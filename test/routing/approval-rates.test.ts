import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { type ApprovalRates, createApprovalRates, type Segment } from '#src/routing/approval-rates.ts';

const VISA_CO: Segment = { cardBrand: 'VISA', issuerCountry: 'CO' };
const providerData = create(ProviderDataSchema);
const APPROVED: Outcome = {
  kind: 'approved',
  providerData,
  authorizationCode: 'A1B2C3',
  retrievalReferenceNumber: '612345678901',
};
const SOFT_DECLINE: Outcome = { kind: 'declined', providerData, iso8583Code: '05', advice: 'NONE' };
const HARD_DECLINE: Outcome = { kind: 'declined', providerData, iso8583Code: '14', advice: 'NONE' };

function learnTimes(rates: ApprovalRates, times: number, outcome: Outcome, segment = VISA_CO): void {
  for (let i = 0; i < times; i++) rates.learn('one', segment, outcome);
}

it('a segment without payments has an optimistic approval rate', () => {
  expect(createApprovalRates().rate('one', VISA_CO)).toEqual({ rate: 1, samples: 0 });
});

it.each<[string, Outcome]>([
  ['an approval', APPROVED],
  ['a redirect', { kind: 'awaits_payer', providerData, show: { page: 'https://provider.example' } }],
  ['a pending payment', { kind: 'pending', providerData }],
])('the approval rate counts %s as approved', (_name, outcome) => {
  const rates = createApprovalRates();
  rates.learn('one', VISA_CO, outcome);
  expect(rates.rate('one', VISA_CO)).toEqual({ rate: 1, samples: 1 });
});

it.each<[string, Outcome]>([
  ['a soft decline', SOFT_DECLINE],
  ['an unknown code', { kind: 'declined', providerData, iso8583Code: 'ZZ', advice: 'NONE' }],
  ['an unknown outcome', { kind: 'unknown', detail: 'x', providerData: undefined }],
  ['an attempt that could not be sent', { kind: 'not_sent', detail: 'x', because: 'unreachable' }],
])('the approval rate counts %s as not approved', (_name, outcome) => {
  const rates = createApprovalRates();
  rates.learn('one', VISA_CO, outcome);
  expect(rates.rate('one', VISA_CO)).toEqual({ rate: 2 / 3, samples: 1 });
});

it.each<[string, Outcome]>([
  ['a hard decline', HARD_DECLINE],
  ['an attempt that the provider turned away', { kind: 'not_sent', detail: 'x', because: 'turned_away' }],
  [
    'an attempt that was not sent because the circuit was open',
    { kind: 'not_sent', detail: 'x', because: 'circuit_open' },
  ],
])('the approval rate does not count %s', (_name, outcome) => {
  const rates = createApprovalRates();
  rates.learn('one', VISA_CO, outcome);
  expect(rates.rate('one', VISA_CO)).toEqual({ rate: 1, samples: 0 });
});

it('approval rates are separate for connections, brands and issuer countries', () => {
  const rates = createApprovalRates();
  rates.learn('one', VISA_CO, SOFT_DECLINE);
  expect(rates.rate('two', VISA_CO).samples).toBe(0);
  expect(rates.rate('one', { ...VISA_CO, cardBrand: 'MASTERCARD' }).samples).toBe(0);
  expect(rates.rate('one', { ...VISA_CO, issuerCountry: '' }).samples).toBe(0);
  expect(rates.rate('one', VISA_CO).samples).toBe(1);
});

it('a known approval rate approaches the true rate, and old payments lose weight with each new payment', () => {
  const rates = createApprovalRates();
  for (let i = 0; i < 2_000; i++) rates.learn('one', VISA_CO, i % 4 === 0 ? SOFT_DECLINE : APPROVED);
  const known = rates.rate('one', VISA_CO);
  expect(known.rate).toBeCloseTo(0.75, 1);
  expect(known.samples).toBeGreaterThan(199);
  expect(known.samples).toBeLessThanOrEqual(200);

  // After one window of declines, 1/e of the earlier rate is left, and after five, next to nothing.
  learnTimes(rates, 200, SOFT_DECLINE);
  expect(rates.rate('one', VISA_CO).rate).toBeCloseTo(0.75 / Math.E, 1);
  learnTimes(rates, 800, SOFT_DECLINE);
  expect(rates.rate('one', VISA_CO).rate).toBeLessThan(0.02);
  learnTimes(rates, 200, APPROVED);
  expect(rates.rate('one', VISA_CO).rate).toBeGreaterThan(0.6);
});

it('at most 10,000 approval rates are kept, and the least recently used rate is dropped first', () => {
  const rates = createApprovalRates();
  const segmentOf = (i: number): Segment => ({ cardBrand: `BRAND_${i}`, issuerCountry: 'CO' });
  for (let i = 0; i < 10_000; i++) rates.learn('one', segmentOf(i), SOFT_DECLINE);
  // Reading and learning both count as use. Reading an unknown rate adds no entry.
  expect(rates.rate('one', segmentOf(0)).samples).toBe(1);
  rates.learn('one', segmentOf(1), APPROVED);
  for (let i = 0; i < 100; i++) rates.rate('nobody', segmentOf(i));
  rates.learn('one', segmentOf(10_000), SOFT_DECLINE);

  // These reads come last, since reading counts as use.
  const gone = Array.from({ length: 10_001 }, (_, i) => i).filter(
    (i) => rates.rate('one', segmentOf(i)).samples === 0,
  );
  expect(gone).toEqual([2]);
});
