import { describe, expect, it } from 'vitest';
import { readAdyenSettlement } from '#src/connectors/adyen/settlement.ts';
import { readMercadoPagoSettlement } from '#src/connectors/mercado-pago/settlement.ts';
import { readPayPalSettlement } from '#src/connectors/paypal/settlement.ts';
import type { ReadSettlement } from '#src/connectors/port/settlement-line.ts';
import { readStripeSettlement } from '#src/connectors/stripe/settlement.ts';
import { csv, readLines } from './read-lines.ts';

const OURS = '01999999-aaaa-7bbb-8ccc-000000123456';
const REFUND = '01999999-aaaa-7bbb-8ccc-111111123456';

describe('Stripe', () => {
  const COLUMNS = [
    ...['automatic_payout_id', 'balance_transaction_id', 'created_utc', 'currency', 'gross', 'fee', 'net'],
    ...[
      'reporting_category',
      'source_id',
      'customer_facing_amount',
      'customer_facing_currency',
      'customer_email',
    ],
    ...['payment_intent_id', 'payment_metadata[transaction_id]', 'refund_metadata[transaction_id]'],
  ];
  const CHARGE = {
    ...{ automatic_payout_id: 'po_1', balance_transaction_id: 'txn_1', created_utc: '2026-09-30 23:59:59' },
    ...{ currency: 'usd', gross: '12.00', fee: '0.65', net: '11.35', reporting_category: 'charge' },
    ...{ source_id: 'ch_1', payment_intent_id: 'pi_1', customer_email: 'ada@example.com' },
    ...{
      customer_facing_amount: '1200',
      customer_facing_currency: 'jpy',
      'payment_metadata[transaction_id]': OURS,
    },
  };
  const read = (...rows: Record<string, string>[]) => readLines(readStripeSettlement, csv(COLUMNS, rows));

  it('reads a charge with its fee, payout and presentment amount, and nothing of its payer', async () => {
    const [line] = await read(CHARGE);
    expect(line).toEqual({
      ...{ lineNumber: 2, key: 'txn_1', report: '', kind: 'payment', rawKind: 'charge', ourId: OURS },
      ...{ providerReference: 'pi_1', parentReference: 'pi_1', payoutReference: 'po_1' },
      ...{ amount: { minorUnits: 1200n, currency: 'JPY' }, gross: 1200n, fee: -65n, tax: 0n, net: 1135n },
      ...{ feeParts: 1, settlementCurrency: 'USD', occurredAt: new Date('2026-09-30T23:59:59Z') },
      ...{ disputeReference: undefined, exchangeRate: undefined },
    });
    expect(JSON.stringify(line, (_, value) => String(value))).not.toContain('ada');
  });

  it('reads a refund by its own id, a dispute, a part that was not captured, and a payout', async () => {
    const lines = await read(
      {
        ...CHARGE,
        ...{ reporting_category: 'refund', source_id: 're_1', gross: '-12.00', fee: '0', net: '-12.00' },
        'refund_metadata[transaction_id]': REFUND,
      },
      {
        ...CHARGE,
        reporting_category: 'dispute',
        source_id: 'dp_1',
        gross: '-12.00',
        fee: '15',
        net: '-27.00',
      },
      { ...CHARGE, reporting_category: 'partial_capture_reversal', gross: '-2.00', fee: '0', net: '-2.00' },
      { ...CHARGE, reporting_category: 'payout', source_id: 'po_2', gross: '-9', fee: '0', net: '-9' },
      { ...CHARGE, reporting_category: 'brand_new', source_id: 'xx' },
    );
    expect(
      lines.map(({ kind, ourId, gross, fee, providerReference }) => [
        kind,
        ourId,
        gross,
        fee,
        providerReference,
      ]),
    ).toEqual([
      ['refund', REFUND, -1200n, 0n, 're_1'],
      ['dispute', OURS, -1200n, -1500n, 'dp_1'],
      ['partial_capture_reversal', OURS, -200n, 0n, 'pi_1'],
      ['payout', OURS, -900n, 0n, 'po_2'],
      ['other', OURS, 1200n, -65n, 'xx'],
    ]);
    expect(lines.map(({ amount }) => amount?.minorUnits)).toEqual([-1200n, -1200n, -1200n, -1200n, 1200n]);
    expect(lines[3]?.payoutReference).toBe('po_2');
  });

  it.each([
    [
      { gross: '12.001' },
      'line 3, column gross: is no amount in USD: it must be a decimal with a point and at most 2 decimal places',
    ],
    [{ gross: '1,2' }, 'line 3: has 16 cells, but the first line names 15 columns'],
    [
      { currency: 'isk', gross: '9.5' },
      'line 3, column gross: is no amount in ISK: it must be a decimal with a point and at most 0 decimal places',
    ],
    [{ net: '99999999999999999.00' }, 'line 3, column net: is no amount'],
    [{ currency: 'EURO' }, 'line 3, column currency: is no currency'],
    [{ created_utc: 'yesterday' }, 'line 3, column created_utc: is no time'],
    [{ balance_transaction_id: '' }, 'line 3, column balance_transaction_id: is empty'],
  ])('refuses %j', async (fault, message) => {
    await expect(read(CHARGE, { ...CHARGE, ...fault })).rejects.toThrow(message);
  });
});

describe('Adyen', () => {
  const COLUMNS = [
    ...['Type', 'Merchant Reference', 'Psp Reference', 'Creation Date', 'TimeZone', 'Modification Reference'],
    ...['Gross Currency', 'Gross Debit (GC)', 'Gross Credit (GC)', 'Exchange Rate', 'Net Currency'],
    ...['Net Debit (NC)', 'Net Credit (NC)', 'Commission (NC)', 'Scheme Fees (NC)', 'Markup (NC)'],
    ...[
      'Interchange (NC)',
      'Batch Number',
      'Modification Merchant Reference',
      'Dispute Reference',
      'Reserved4',
    ],
  ];
  const SETTLED = {
    ...{
      Type: 'Settled',
      'Merchant Reference': OURS,
      'Psp Reference': 'P1',
      'Creation Date': '2026-09-30 12:00:00',
    },
    ...{
      TimeZone: 'CEST',
      'Modification Reference': 'M1',
      'Gross Currency': 'EUR',
      'Gross Credit (GC)': '20',
    },
    ...{ 'Exchange Rate': '1', 'Net Currency': 'EUR', 'Net Credit (NC)': '19.60', 'Markup (NC)': '0.10' },
    ...{ 'Scheme Fees (NC)': '0.10', 'Interchange (NC)': '0.20', 'Batch Number': '130' },
  };
  const read = (...rows: Record<string, string>[]) =>
    readLines(readAdyenSettlement, `\u{feff}${csv(COLUMNS, rows, { separator: ';', end: '\n' })}`);

  it('reads a settled payment, its refund and its chargeback', async () => {
    const debit = {
      'Gross Credit (GC)': '',
      'Gross Debit (GC)': '20',
      'Net Credit (NC)': '',
      'Interchange (NC)': '',
    };
    const [paid, refunded, disputed, fee, payout] = await read(
      SETTLED,
      {
        ...{
          ...SETTLED,
          ...debit,
          Type: 'Refunded',
          'Modification Reference': 'M2',
          'Net Debit (NC)': '20.20',
        },
        'Modification Merchant Reference': `refund-${REFUND}`,
      },
      {
        ...{
          ...SETTLED,
          ...debit,
          Type: 'Chargeback',
          'Modification Reference': 'M3',
          'Net Debit (NC)': '27.50',
        },
        ...{ 'Markup (NC)': '7.50', 'Scheme Fees (NC)': '' },
      },
      { Type: 'Fee', 'Net Currency': 'EUR', 'Net Debit (NC)': '3', 'Batch Number': '130', TimeZone: 'XYZ' },
      { Type: 'MerchantPayout', 'Net Currency': 'EUR', 'Net Debit (NC)': '9', 'Batch Number': '130' },
    );
    expect(paid).toMatchObject({
      ...{
        kind: 'payment',
        ourId: OURS,
        providerReference: 'M1',
        parentReference: 'P1',
        payoutReference: '130',
      },
      ...{ amount: { minorUnits: 2000n, currency: 'EUR' }, gross: 2000n, fee: -40n, feeParts: 3, net: 1960n },
      occurredAt: new Date('2026-09-30T10:00:00Z'),
    });
    expect(refunded).toMatchObject({ kind: 'refund', ourId: REFUND, gross: -2000n, fee: -20n, net: -2020n });
    expect(disputed).toMatchObject({
      kind: 'dispute',
      disputeReference: 'M3',
      gross: -2000n,
      fee: -750n,
      net: -2750n,
    });
    expect(fee).toMatchObject({
      kind: 'fee',
      amount: undefined,
      gross: -300n,
      fee: 0n,
      occurredAt: undefined,
    });
    expect(payout).toMatchObject({ kind: 'payout', ourId: undefined, gross: -900n, net: -900n });
  });

  it('numbers equal lines, and gives the same keys when the file is read again', async () => {
    const keys = (await read(SETTLED, SETTLED)).map(({ key }) => key);
    expect(new Set(keys).size).toBe(2);
    expect((await read(SETTLED, SETTLED)).map(({ key }) => key)).toEqual(keys);
  });
});

describe('PayPal', () => {
  const INFO = {
    ...{ transaction_id: 'C1', transaction_event_code: 'T0006', transaction_status: 'S', invoice_id: OURS },
    ...{ transaction_initiation_date: '2026-09-30T12:00:00+0200' },
    ...{
      transaction_amount: { currency_code: 'USD', value: '12.00' },
      fee_amount: { currency_code: 'USD', value: '-0.65' },
    },
  };
  const answer = (...infos: object[]) => ({
    transaction_details: infos.map((transaction_info) => ({
      transaction_info,
      payer_info: { email_address: 'ada@example.com', note: '"}{[' },
    })),
  });
  const read = (text: unknown) =>
    readLines(readPayPalSettlement, typeof text === 'string' ? text : JSON.stringify(text));

  it('reads pages of answers, one after another or as a list', async () => {
    const refund = {
      ...{
        ...INFO,
        transaction_id: 'R1',
        transaction_event_code: 'T1107',
        invoice_id: REFUND,
        fee_amount: undefined,
      },
      ...{ transaction_amount: { currency_code: 'USD', value: '-2.00' }, paypal_reference_id: 'C1' },
    };
    const pages = [answer(INFO, { ...INFO, transaction_status: 'P' }), answer(refund)];
    const lines = await read(pages);
    expect(lines).toMatchObject([
      {
        kind: 'payment',
        ourId: OURS,
        providerReference: 'C1',
        gross: 1200n,
        fee: -65n,
        net: 1135n,
        lineNumber: 1,
      },
      {
        kind: 'refund',
        ourId: REFUND,
        parentReference: 'C1',
        gross: -200n,
        fee: 0n,
        net: -200n,
        lineNumber: 3,
      },
    ]);
    expect(lines[0]?.occurredAt).toEqual(new Date('2026-09-30T10:00:00Z'));
    expect(await read(pages.map((page) => JSON.stringify(page, null, 2)).join('\n'))).toEqual(lines);
    expect(JSON.stringify(lines, (_, value) => String(value))).not.toContain('ada');
  });

  it.each([
    [['T1201', '-1.00'], 'dispute'],
    [['T1201', '1.00'], 'dispute_reversal'],
    [['T0106', '-1.00'], 'fee'],
    [['T0400', '-1.00'], 'payout'],
    [['T0201', '-1.00'], 'conversion'],
    [['T9999', '-1.00'], 'other'],
  ])('the event %j is a %s', async ([transaction_event_code, value], kind) => {
    const info = { ...INFO, transaction_event_code, transaction_amount: { currency_code: 'USD', value } };
    expect(await read(answer(info))).toMatchObject([{ kind }]);
  });

  it.each([
    ['a,b\n1,2', 'object 1: is no JSON object'],
    [`${JSON.stringify(answer(INFO)).slice(0, -2)}`, 'object 1: does not end: the file is incomplete'],
    [{ error: 'x' }, 'line 1: each answer of Transaction Search must have transaction_details'],
    [answer(), 'line 1: the file has no transaction'],
    [
      answer(INFO, { ...INFO, transaction_amount: { currency_code: 'JPY', value: '1.5' } }),
      'transaction 2, transaction_amount.value: is no amount in JPY',
    ],
    [
      answer({ ...INFO, transaction_amount: { currency_code: 'USD', value: 12 } }),
      'transaction 1, transaction_amount.value',
    ],
    [
      answer({ ...INFO, transaction_event_code: undefined }),
      'transaction 1, transaction_event_code: is missing',
    ],
  ])('refuses %#', async (text, message) => {
    await expect(read(text)).rejects.toThrow(message);
  });
});

describe('Mercado Pago', () => {
  const RELEASE =
    'DATE;SOURCE_ID;DESCRIPTION;NET_CREDIT_AMOUNT;NET_DEBIT_AMOUNT;GROSS_AMOUNT;MP_FEE_AMOUNT;TAXES_AMOUNT';
  const release = (...lines: string[]) =>
    readLines(readMercadoPagoSettlement, [RELEASE, ...lines].join('\r\n'), { currency: 'ARS' });

  it('reads a release report, whose net is the truth, without its balances', async () => {
    const lines = await release(
      '2026-09-01T00:00:00.000-03:00;;;0.00;0.00;0.00;0.00;0.00',
      '2026-09-01T13:49:24.000-03:00;77;payment;93.00;0.00;100.00;-6.00;-0.50',
      '2026-09-02T13:49:24.000-03:00;77;refund;0.00;100.00;100.00;0.00;0.00',
      '2026-09-03T00:00:00.000-03:00;88;payout;0.00;9.00;9.00;0.00;0.00',
      '2026-09-03T00:00:00.000-03:00;90;reserve_for_refund;0.00;9.00;0.00;0.00;0.00',
    );
    expect(lines).toMatchObject([
      {
        kind: 'payment',
        providerReference: '77',
        gross: 10_000n,
        fee: -650n,
        tax: -50n,
        net: 9_300n,
        report: 'release',
      },
      { kind: 'refund', providerReference: '77', gross: -10_000n, fee: 0n, net: -10_000n },
      { kind: 'payout', payoutReference: '88', gross: -900n, fee: 0n, net: -900n },
      { kind: 'reserve', gross: -900n, fee: 0n, net: -900n },
    ]);
    expect(lines[0]?.occurredAt).toEqual(new Date('2026-09-01T16:49:24Z'));
  });

  const SETTLEMENT =
    'EXTERNAL_REFERENCE,SOURCE_ID,TRANSACTION_TYPE,TRANSACTION_AMOUNT,TRANSACTION_CURRENCY,TRANSACTION_DATE,FEE_AMOUNT,SETTLEMENT_NET_AMOUNT,SETTLEMENT_CURRENCY,PAYER_NAME';
  const settlement: ReadSettlement = (text) => readMercadoPagoSettlement(text, {});

  it('reads a settlement report', async () => {
    const text = `${SETTLEMENT}\n${OURS},77,SETTLEMENT,100.00,BRL,2026-09-01T13:49:24.000-04:00,-5.00,95.00,BRL,Ada\n`;
    expect(await readLines(settlement, text)).toMatchObject([
      {
        ...{
          kind: 'payment',
          ourId: OURS,
          amount: { minorUnits: 10_000n, currency: 'BRL' },
          report: 'settlement',
        },
        ...{ gross: 10_000n, fee: -500n, net: 9_500n },
      },
    ]);
  });

  it.each([
    [
      'FECHA;ID\n1;2',
      {},
      'line 1: the report must have the columns SOURCE_ID, SETTLEMENT_NET_AMOUNT or NET_CREDIT_AMOUNT',
    ],
    [
      'SOURCE_ID;NET_CREDIT_AMOUNT\n1;2',
      { currency: 'ARS' },
      'line 1: a release report must have the columns DATE, DESCRIPTION',
    ],
    [
      `${RELEASE}\n2026-09-01T00:00:00Z;1;payment;9.700;0;9.700;0;0`,
      { currency: 'CLP' },
      'line 2, column NET_CREDIT_AMOUNT: is no amount in CLP',
    ],
    [
      `${RELEASE}\n2026-09-01T00:00:00Z;1;payment;9;0;9;0;0`,
      {},
      'line 1: a release report names no currency',
    ],
  ])('refuses %#', async (text, options, message) => {
    await expect(readLines(readMercadoPagoSettlement, text, options)).rejects.toThrow(message);
  });
});
