import { describe, expect, it } from 'vitest';
import { readAdyenSettlement } from '#src/connectors/adyen/settlement.ts';
import { readMercadoPagoSettlement } from '#src/connectors/mercado-pago/settlement.ts';
import { readPayPalSettlement } from '#src/connectors/paypal/settlement.ts';
import { type AgreedFee, readAgreedFee } from '#src/connectors/port/agreed-fee.ts';
import { readStripeSettlement } from '#src/connectors/stripe/settlement.ts';
import { type ComparedLine, findDifferences } from '#src/settlement/find-differences.ts';
import { csv, readLines } from '../connectors/settlement/read-lines.ts';

const fee = (currency: string, more: object = {}) =>
  readAgreedFee({
    ...{ currency, paymentMethodType: '', percent: '2.9', fixed: '0.30', tolerance: '', ...more },
  }) as AgreedFee;

const PURCHASE = {
  ...{ type: 'PURCHASE', capture: true, status: 'SUCCEEDED', minorUnits: 1200n, currency: 'USD' },
  ...{ succeededAt: undefined, methodType: 'CARD' },
};
/** The agreed fee on 12.00 is 0.65. */
const line = (kept: bigint, more: Partial<ComparedLine> = {}): ComparedLine => ({
  ...{ report: '', kind: 'payment', gross: 1200n, fee: -kept, feeParts: 1, settlementCurrency: 'USD' },
  ...{ occurredAt: undefined, minorUnits: 1200n, currency: 'USD', ...more },
});
const found = (lines: readonly ComparedLine[], fees: readonly AgreedFee[], transaction: object = {}) =>
  findDifferences({ ...PURCHASE, ...transaction }, lines, { windowMs: 0, fees }).map(
    ({ kind, detail }) => `${kind}: ${detail}`,
  );
const unexpected = (kept: string, gross = '12.00 USD') =>
  `fee_unexpected: a fee of ${kept} settled on ${gross}, agreed 0.65 USD`;

describe('the fee of a payment or capture', () => {
  it('is compared with the agreed one, within a minor unit for each part of it', () => {
    for (const kept of [64n, 65n, 66n]) expect(found([line(kept)], [fee('USD')])).toEqual([]);
    expect(found([line(67n)], [fee('USD')])).toEqual([unexpected('0.67 USD')]);
    expect(found([line(63n)], [fee('USD')])).toEqual([unexpected('0.63 USD')]);
    expect(found([line(0n)], [fee('USD')])).toEqual([unexpected('0.00 USD')]);
    expect(found([line(67n, { feeParts: 2 })], [fee('USD')])).toEqual([]);
    const capture = { type: 'CAPTURE', capture: false };
    expect(found([line(70n)], [fee('USD')], capture)).toEqual([unexpected('0.70 USD')]);
  });

  it('may differ by the agreed tolerance, which may be zero', () => {
    expect(found([line(75n)], [fee('USD', { tolerance: '0.10' })])).toEqual([]);
    expect(found([line(76n)], [fee('USD', { tolerance: '0.10' })])).toEqual([unexpected('0.76 USD')]);
    expect(found([line(66n)], [fee('USD', { tolerance: '0' })])).toEqual([unexpected('0.66 USD')]);
  });

  it('is not compared without agreed fees, and needs one of its currency and method with them', () => {
    expect(found([line(99n)], [])).toEqual([]);
    const without = 'fee_unexpected: a fee of 0.99 USD settled on 12.00 USD, without an agreed fee';
    expect(found([line(99n)], [fee('EUR')])).toEqual([without]);
    expect(found([line(99n)], [fee('USD', { paymentMethodType: 'PIX' })])).toEqual([without]);
    expect(found([line(0n)], [fee('EUR')])).toEqual([]);
    const own = [fee('USD'), fee('USD', { paymentMethodType: 'PIX', percent: '1', fixed: '' })];
    expect(found([line(12n)], own, { methodType: 'PIX' })).toEqual([]);
    expect(found([line(65n)], own)).toEqual([]);
  });

  it('is the sum over the lines, so that a correction explains it, and a reversed part has no fee', () => {
    const correction = line(-35n, { gross: 0n, minorUnits: 0n });
    expect(found([line(100n), correction], [fee('USD')])).toEqual([]);
    const part = line(-29n, { kind: 'partial_capture_reversal', gross: -1000n, minorUnits: -1000n });
    expect(found([line(65n), part], [fee('USD')], { minorUnits: 200n })).toEqual([]);
  });

  it('is a part of what the provider settled, in the settlement currency, whatever the payer saw', () => {
    const yen = { minorUnits: 1800n, currency: 'JPY' };
    expect(found([line(65n, yen)], [fee('USD')], yen)).toEqual([]);
    expect(found([line(80n, yen)], [fee('USD')], yen)).toEqual([unexpected('0.80 USD')]);
    const inYen = { ...yen, gross: 1800n, settlementCurrency: 'JPY' };
    const rule = fee('JPY', { fixed: '30' });
    expect(found([line(82n, inYen)], [rule], yen)).toEqual([]);
    expect(found([line(84n, inYen)], [rule], yen)).toEqual([
      'fee_unexpected: a fee of 84.0 JPY settled on 1800.0 JPY, agreed 82.0 JPY',
    ]);
  });

  it('is told beside a wrong amount, and not of money that is settled twice, taken back or unknown here', () => {
    const more = line(90n, { gross: 1300n, minorUnits: 1300n });
    expect(found([more], [fee('USD')])).toEqual([
      'amount_differs: 13.00 USD settled, here 12.00 USD',
      'fee_unexpected: a fee of 0.90 USD settled on 13.00 USD, agreed 0.68 USD',
    ]);
    expect(found([line(65n), line(65n)], [fee('USD')])).toEqual([expect.stringMatching(/^duplicate/)]);
    const back = line(0n, { gross: -1200n, minorUnits: -1200n });
    expect(found([line(65n), back], [fee('USD')])).toEqual([expect.stringMatching(/^amount_differs/)]);
    const declined = { status: 'DECLINED' };
    expect(found([line(99n)], [fee('USD')], declined)).toEqual([expect.stringMatching(/^status_differs/)]);
  });

  it.each(['REFUND', 'CHARGEBACK'])('a fee on a %s is not compared', (type) => {
    const kind = type === 'REFUND' ? 'refund' : 'dispute';
    expect(found([line(1500n, { kind, gross: -1200n, minorUnits: -1200n })], [fee('USD')], { type })).toEqual(
      [],
    );
  });
});

const OURS = '01999999-aaaa-7bbb-8ccc-000000123456';
const stripe = (kept: string, net: string) =>
  readLines(
    readStripeSettlement,
    csv(
      [
        ...['balance_transaction_id', 'created_utc', 'currency', 'gross', 'fee', 'net'],
        ...['reporting_category', 'source_id', 'payment_intent_id', 'automatic_payout_id'],
        ...['customer_facing_amount', 'customer_facing_currency'],
      ],
      [
        {
          ...{ balance_transaction_id: 'txn_1', created_utc: '2026-09-30 10:00:00', currency: 'usd' },
          ...{ gross: '12.00', fee: kept, net, reporting_category: 'charge', source_id: 'ch_1' },
          ...{ customer_facing_amount: '12.00', customer_facing_currency: 'usd' },
        },
      ],
    ),
  );
const adyen = (commission: string, markup: string, net: string) =>
  readLines(
    readAdyenSettlement,
    csv(
      [
        ...['Psp Reference', 'Merchant Reference', 'Creation Date', 'TimeZone', 'Type'],
        ...['Modification Reference', 'Gross Currency', 'Gross Debit (GC)', 'Gross Credit (GC)'],
        ...['Exchange Rate', 'Net Currency', 'Net Debit (NC)', 'Net Credit (NC)', 'Commission (NC)'],
        ...['Markup (NC)', 'Scheme Fees (NC)', 'Interchange (NC)', 'Batch Number'],
      ],
      [
        {
          ...{ 'Psp Reference': 'P1', Type: 'Settled', 'Gross Currency': 'USD', 'Gross Credit (GC)': '12' },
          ...{ 'Net Currency': 'USD', 'Net Credit (NC)': net, 'Commission (NC)': commission },
          ...{ 'Markup (NC)': markup, 'Batch Number': '7' },
        },
      ],
    ),
  );
const payPal = (kept: string) =>
  readLines(
    readPayPalSettlement,
    JSON.stringify({
      transaction_details: [
        {
          transaction_info: {
            ...{ transaction_id: 'C1', transaction_event_code: 'T0006', transaction_status: 'S' },
            ...{ transaction_initiation_date: '2026-09-30T12:00:00Z', invoice_id: OURS },
            transaction_amount: { currency_code: 'USD', value: '12.00' },
            fee_amount: { currency_code: 'USD', value: `-${kept}` },
          },
        },
      ],
    }),
  );
const release = (net: string) =>
  readLines(
    readMercadoPagoSettlement,
    [
      'DATE;SOURCE_ID;DESCRIPTION;NET_CREDIT_AMOUNT;NET_DEBIT_AMOUNT;GROSS_AMOUNT;MP_FEE_AMOUNT;TAXES_AMOUNT',
      `2026-09-01T13:49:24.000-03:00;77;payment;${net};0.00;12.00;0.00;-0.50`,
    ].join('\r\n'),
    { currency: 'USD' },
  );
const settlement = (net: string) =>
  readLines(
    readMercadoPagoSettlement,
    `EXTERNAL_REFERENCE,SOURCE_ID,TRANSACTION_TYPE,TRANSACTION_AMOUNT,TRANSACTION_CURRENCY,TRANSACTION_DATE,FEE_AMOUNT,SETTLEMENT_NET_AMOUNT,SETTLEMENT_CURRENCY\n${OURS},77,SETTLEMENT,12.00,USD,2026-09-01T13:49:24.000-04:00,-5.00,${net},USD\n`,
  );

describe('the fees in the providers’ reports', () => {
  // The parts of Adyen's fee may each be rounded; Mercado Pago's taxes are no fee.
  it.each([
    ['Stripe', () => stripe('0.66', '11.34'), () => stripe('0.67', '11.33'), '0.67'],
    ['Adyen, in one part', () => adyen('0.66', '', '11.34'), () => adyen('0.67', '', '11.33'), '0.67'],
    [
      'Adyen, in two parts',
      () => adyen('0.40', '0.27', '11.33'),
      () => adyen('0.40', '0.28', '11.32'),
      '0.68',
    ],
    ['PayPal', () => payPal('0.66'), () => payPal('0.67'), '0.67'],
    ['Mercado Pago, a release report', () => release('10.84'), () => release('10.83'), '0.67'],
    ['Mercado Pago, a settlement report', () => settlement('11.34'), () => settlement('11.33'), '0.67'],
  ])('of %s are compared with the agreed fee', async (_name, right, wrong, kept) => {
    const compare = async (read: typeof right) => {
      const lines = await read();
      const compared = lines.map((one) => ({ ...one, ...(one.amount ?? NO_AMOUNT) }));
      return found(compared, [fee('USD')]);
    };
    expect(await compare(right)).toEqual([]);
    expect(await compare(wrong)).toEqual([unexpected(`${kept} USD`)]);
  });
});

const NO_AMOUNT = { minorUnits: undefined, currency: undefined };
