import type { JsonObject } from '@bufbuild/protobuf';
import { describe, expect, it } from 'vitest';
import { readResource } from '#src/connectors/paypal/answers.ts';
import { disputedSubjects } from '#src/connectors/paypal/disputes.ts';
import { readSettings } from '#src/connectors/paypal/settings.ts';
import type { NotificationSubject } from '#src/connectors/port/connector.ts';
import { openedForEach } from '../under-test.ts';
import { DISPUTED_CAPTURE, disputeEvent, resolved, reversalEvent, usd } from './fake-disputes.ts';
import { failure, type Json } from './fake-ledger.ts';
import { openPayPal, paid, SECRETS } from './paypal-under-test.ts';

const TRANSACTION = '3f0e5a52-0f39-4a5b-9d7b-5f5d1c9c2a11';
const OTHER = '00000000-0000-4000-8000-000000000000';
const READ = /GET .*\/captures\//;
const OURS = { seller_transaction_id: DISPUTED_CAPTURE, invoice_number: TRANSACTION };
const paypal = openedForEach(openPayPal);

function read(event: Json) {
  return paypal.connection.readNotification?.(paypal.fake.notify(event), Date.now());
}

/** The only subject of one of our disputes. */
async function subjectOf(over: Json, type?: string): Promise<NotificationSubject | undefined> {
  const reading = await read(disputeEvent({ disputed_transactions: [OURS], ...over }, type));
  if (reading?.kind !== 'about') throw new Error(`expected about, got ${reading?.kind}`);
  expect(reading.subjects).toHaveLength(1);
  return reading.subjects[0];
}

const stageOf = async (over: Json, type?: string) => (await subjectOf(over, type))?.dispute?.stage;

describe('a dispute at PayPal', () => {
  it('a dispute at PayPal is read with its ID, transaction and amount, without a request', async () => {
    const due = { seller_response_due_date: '2026-12-08T08:59:59.000Z', reason: 'UNAUTHORISED' };
    expect(
      await subjectOf({ ...due, dispute_life_cycle_stage: 'INQUIRY', status: 'UNDER_REVIEW' }),
    ).toMatchObject({
      transactionId: TRANSACTION,
      dispute: {
        stage: 'opened',
        reference: 'PP-D-4012',
        money: { minorUnits: 3_000n, currency: 'USD' },
        case: {
          ...{ stage: 'INQUIRY', status: 'UNDER_REVIEW', reason: 'FRAUDULENT', rawReason: 'UNAUTHORISED' },
          respondBy: new Date('2026-12-08T08:59:59Z'),
        },
      },
    });
    expect(paypal.seen(READ)).toBe(0);
  });

  it.each([
    ['https://api-m.paypal.com', 'https://www.paypal.com'],
    ['https://api-m.sandbox.paypal.com', 'https://www.sandbox.paypal.com'],
    ['http://127.0.0.1:1', undefined],
  ])('a dispute at %s has a link to its case at %s', (base_url, site) => {
    const { environment } = readSettings({ base_url, webhook_ids: ['1'] }, SECRETS);
    const { resource } = disputeEvent({ disputed_transactions: [OURS] });
    const [subject] = disputedSubjects(readResource(resource as JsonObject), environment);
    expect(subject?.dispute?.case?.link).toBe(site && `${site}/resolutioncenter/view/PP-D-4012`);
  });

  it.each([
    'OPEN',
    'WAITING_FOR_BUYER_RESPONSE',
    'WAITING_FOR_SELLER_RESPONSE',
    'UNDER_REVIEW',
    'OTHER',
    'A_STATUS_TO_COME',
    undefined,
    7,
  ])('a dispute at PayPal with the status %s is open', async (status) => {
    expect(await stageOf({ status })).toBe('opened');
  });

  it.each([
    [[], undefined],
    [['SELLER DEBIT DISPUTE_SETTLEMENT'], 1],
    [['SELLER DEBIT DISPUTE_SETTLEMENT', 'SELLER CREDIT DISPUTE_SETTLEMENT'], 2],
    [['SELLER DEBIT DISPUTE_FEE', 'SELLER CREDIT DISPUTE_FEE', 'BUYER CREDIT DISPUTE_SETTLEMENT'], undefined],
    [['SELLER CREDIT DISPUTE_SETTLEMENT'], undefined],
  ])('PayPal says that the money of a dispute has moved: %j is %s', async (movements, moves) => {
    const money_movements = movements.map((one) => {
      const [affected_party, type, reason] = one.split(' ');
      return { affected_party, type, reason };
    });
    const subject = await subjectOf({ money_movements });
    expect(subject?.dispute?.moves).toBe(moves);
  });

  it.each([
    ['RESOLVED_BUYER_FAVOUR', 'lost'],
    ['ACCEPTED', 'lost'],
    ['RESOLVED_SELLER_FAVOUR', 'won'],
    ['DENIED', 'won'],
    ['CANCELED_BY_BUYER', 'won'],
    ['RESOLVED_WITH_PAYOUT', 'won'],
    ['NONE', 'won'],
    // An unknown outcome blocks refunds.
    ['AN_OUTCOME_TO_COME', 'opened'],
    ['constructor', 'opened'],
    [undefined, 'opened'],
    [{}, 'opened'],
  ])('a dispute at PayPal resolved with the outcome %j is %s', async (code, stage) => {
    expect(await stageOf(resolved(code))).toBe(stage);
  });

  it('a dispute at PayPal resolved without an outcome is open', async () => {
    for (const dispute_outcome of [undefined, null, 'DENIED', []]) {
      expect(await stageOf({ status: 'RESOLVED', dispute_outcome })).toBe('opened');
    }
  });

  it("a dispute at PayPal is read from its state, not from the event's name", async () => {
    expect(await stageOf({ status: 'UNDER_REVIEW' }, 'CUSTOMER.DISPUTE.RESOLVED')).toBe('opened');
    expect(await stageOf(resolved('DENIED'), 'CUSTOMER.DISPUTE.CREATED')).toBe('won');
    expect(await stageOf(resolved('ACCEPTED'), 'CUSTOMER.DISPUTE.UPDATED')).toBe('lost');
    // The earlier outcome is still present during an appeal.
    const appealed = { ...resolved('DENIED'), status: 'UNDER_REVIEW' };
    expect(await stageOf(appealed, 'CUSTOMER.DISPUTE.UPDATED')).toBe('opened');
  });

  it.each([
    ['part of the payment', usd('12.50'), 1_250n],
    ['not a number', usd('much'), undefined],
    ['less than nothing', usd('-1.00'), undefined],
    ['too many decimal places', usd('1.001'), undefined],
    ['an object', usd({}), undefined],
    ['no currency', { value: '12.50' }, undefined],
    ['nothing', undefined, undefined],
  ])(
    'a dispute at PayPal has the reported amount if that amount is valid: %s',
    async (_of, dispute_amount, minorUnits) => {
      const money = minorUnits === undefined ? undefined : { minorUnits, currency: 'USD' };
      expect((await subjectOf({ dispute_amount }))?.dispute?.money).toEqual(money);
    },
  );

  it.each([
    ['HUF', '2500', 250_000n],
    ['JPY', '2500', 2_500n],
  ])(
    'a dispute at PayPal in %s has an amount without decimal places',
    async (currency, value, minorUnits) => {
      const dispute_amount = { currency_code: currency, value };
      expect((await subjectOf({ dispute_amount }))?.dispute?.money).toEqual({ minorUnits, currency });
    },
  );

  it.each([
    ['a part', usd('10.00'), 1_000n],
    ['all', usd('30.00'), 3_000n],
    ['more than was disputed', usd('40.00'), 3_000n],
    ['nothing', usd('0.00'), 3_000n],
    ['another currency', { currency_code: 'EUR', value: '10.00' }, 3_000n],
    ['no amount', undefined, 3_000n],
  ])(
    'a dispute lost at PayPal has the amount that the payer got back: %s',
    async (_of, amount_refunded, minorUnits) => {
      const lost = await subjectOf(resolved('RESOLVED_BUYER_FAVOUR', { amount_refunded }));
      expect(lost?.dispute).toMatchObject({ stage: 'lost', money: { minorUnits, currency: 'USD' } });
    },
  );

  it('a dispute with a payout by PayPal keeps the disputed amount', async () => {
    const paidOut = await subjectOf(resolved('RESOLVED_WITH_PAYOUT', { amount_refunded: usd('10.00') }));
    expect(paidOut?.dispute).toMatchObject({ stage: 'won', money: { minorUnits: 3_000n } });
  });

  it.each(['PP-R-GSS-10059837', 'PP-000-042-663-135'])(
    'a dispute at PayPal is reported with its id: %s',
    async (dispute_id) => {
      expect((await subjectOf({ dispute_id }))?.dispute?.reference).toBe(dispute_id);
    },
  );

  it.each(['', '5O190127TN364715T', `PP-${'1'.repeat(300)}`, 'PP-D-1\n', 7, undefined])(
    'a dispute at PayPal is reported without an invalid id: %j',
    async (dispute_id) => {
      expect((await subjectOf({ dispute_id }))?.dispute).toMatchObject({
        stage: 'opened',
        reference: undefined,
      });
    },
  );
});

describe('the transactions of a dispute', () => {
  it('the transactions of a dispute can be identified by the field custom alone', async () => {
    const custom = { seller_transaction_id: DISPUTED_CAPTURE, custom: TRANSACTION };
    expect(await subjectOf({ disputed_transactions: [custom] })).toMatchObject({
      transactionId: TRANSACTION,
    });
  });

  it('the transactions of a dispute are found by their capture if PayPal reports nothing else', async () => {
    const { attempt, reference } = await paid(paypal);
    const [, seller_transaction_id] = reference.split('/');
    const disputed_transactions = [{ seller_transaction_id }];
    expect(await subjectOf({ disputed_transactions })).toMatchObject({
      transactionId: attempt.transactionId,
      dispute: { stage: 'opened', reference: 'PP-D-4012' },
    });
    expect(paypal.seen(READ)).toBe(1);
  });

  it('several transactions of a dispute are separate subjects without an amount', async () => {
    const { attempt, reference } = await paid(paypal);
    const disputed_transactions = [
      OURS,
      { seller_transaction_id: reference.split('/')[1] },
      { custom: OTHER },
    ];
    const dispute = { stage: 'opened', reference: 'PP-D-4012' };
    expect(await read(disputeEvent({ disputed_transactions }))).toMatchObject({
      kind: 'about',
      deduplicationKey: 'WH-dispute-1',
      subjects: [
        { transactionId: TRANSACTION, dispute },
        { transactionId: attempt.transactionId, dispute },
        { transactionId: OTHER, dispute },
      ],
    });
  });

  it.each([
    ['a capture that PayPal does not find', { seller_transaction_id: DISPUTED_CAPTURE }],
    ['an invalid capture ID', { seller_transaction_id: '../../../v1/oauth2/token' }],
    ["another application's IDs", { custom: 'order 7', invoice_number: 'INV-7' }],
    ['nothing', {}],
  ])('the transactions of a dispute that are not ours are ignored: %s', async (_what, transaction) => {
    expect(await read(disputeEvent({ disputed_transactions: [transaction] }))).toEqual({ kind: 'ignored' });
  });

  it.each([[undefined], [null], [[]], ['all'], [{}], [['PP', 7, null]]])(
    'the transactions of a dispute that cannot be read are ignored: %j',
    async (disputed_transactions) => {
      expect(await read(disputeEvent({ disputed_transactions }))).toEqual({ kind: 'ignored' });
    },
  );

  it('a dispute of a capture by another application is ignored', async () => {
    const body = { id: DISPUTED_CAPTURE, custom_id: 'order 7', invoice_id: 'INV-7' };
    paypal.fake.trouble(READ, { status: 200, body });
    const event = disputeEvent({ disputed_transactions: [{ seller_transaction_id: DISPUTED_CAPTURE }] });
    expect(await read(event)).toEqual({ kind: 'ignored' });
  });

  it.each([
    'lost before',
    'error before',
    { status: 200, body: { id: '9XX00000X000000XX', custom_id: TRANSACTION } },
    { status: 200, body: {} },
    failure(403, 'NOT_AUTHORIZED', 'PERMISSION_DENIED'),
    // Not PayPal's own response.
    { status: 404, body: { gone: true } },
  ] as const)(
    'PayPal is asked to send a dispute again if the disputed capture cannot be read: %j',
    async (trouble) => {
      const { attempt, reference } = await paid(paypal);
      const disputed_transactions = [{ seller_transaction_id: reference.split('/')[1] }];
      paypal.fake.trouble(READ, trouble);
      expect(await read(disputeEvent({ disputed_transactions }))).toMatchObject({ kind: 'send_again' });
      expect(await read(disputeEvent({ disputed_transactions }))).toMatchObject({
        subjects: [{ transactionId: attempt.transactionId }],
      });
    },
  );

  it("captures of a dispute are not read before PayPal confirms the notification's signature", async () => {
    const event = disputeEvent({ disputed_transactions: [{ seller_transaction_id: DISPUTED_CAPTURE }] });
    const forged = paypal.fake.notify(event, { webhookId: '9XX00000X000000XX' });
    expect(await paypal.connection.readNotification?.(forged, Date.now())).toMatchObject({ kind: 'forged' });
    expect(paypal.seen(READ)).toBe(0);
  });
});

describe('a reversal of a capture', () => {
  const REVERSED = { stage: 'opened', money: { minorUnits: 3_000n, currency: 'USD' }, moves: 1 };

  it.each([{ custom_id: TRANSACTION }, { invoice_id: TRANSACTION }])(
    'a reversal of a capture is a dispute without an ID, of the transaction named in the reversal: %j',
    async (named) => {
      expect(await read(reversalEvent(DISPUTED_CAPTURE, named))).toEqual({
        kind: 'about',
        deduplicationKey: 'WH-reversal-1',
        subjects: [{ transactionId: TRANSACTION, dispute: REVERSED }],
      });
      expect(paypal.seen(READ)).toBe(0);
    },
  );

  it('a reversal of a capture is a dispute of the transaction whose capture it links to', async () => {
    const { attempt, reference } = await paid(paypal);
    expect(await read(reversalEvent(reference.split('/')[1] ?? ''))).toMatchObject({
      subjects: [{ transactionId: attempt.transactionId, dispute: REVERSED }],
    });
  });

  it.each([
    ['a capture that PayPal does not find', {}],
    ['no links', { links: undefined }],
    ['a link to something else', { links: [{ rel: 'up', href: `https://x/v1/sales/${DISPUTED_CAPTURE}` }] }],
    ['an invalid link', { links: [{ rel: 'up', href: { captures: 1 } }, 'up', null] }],
  ])('a reversal of a capture is ignored if it has %s', async (_what, over) => {
    expect(await read(reversalEvent(DISPUTED_CAPTURE, over))).toEqual({ kind: 'ignored' });
  });
});
