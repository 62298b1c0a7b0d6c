import { randomUUID } from 'node:crypto';
import { create } from '@bufbuild/protobuf';
import { expect, it } from 'vitest';
import { Payment_Status, ProviderDataSchema, Transaction_Status } from '#gen/payments/v1/payment_pb.js';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import type { CheckerDeps } from '#src/payments/check/checker.ts';
import { getPayment } from '#src/payments/read/get-payment.ts';
import { writeReport } from '#src/payments/write-change.ts';
import { readSession } from '#src/store/tables/checkout-sessions.ts';
import { interleave } from '../support/interleave.ts';
import { forgetNews, signed } from '../support/news.ts';
import { APPROVED, PENDING } from '../support/outcomes.ts';
import { ACCOUNT_ONE, cardPayment, withField } from '../support/payment-requests.ts';
import { wantEveryEvent } from '../support/tables.ts';
import { NOT_SENT } from './attempt-outcomes.ts';
import { onScriptedPayments, payments } from './scripted-payments.ts';

/* A provider without look-up declines a payment, and later signs a report that the payment was approved. */

onScriptedPayments();

const DECLINED: Outcome = {
  ...{ kind: 'declined', iso8583Code: '51', advice: 'NONE', providerPaymentId: 'paid-1' },
  providerData: create(ProviderDataSchema, { status: 'NO' }),
};
const CORRECTED: Outcome = {
  ...{ kind: 'approved', providerPaymentId: 'paid-1', corrects: ['NO'], authorizationCode: 'A1' },
  ...{ retrievalReferenceNumber: '', providerData: create(ProviderDataSchema, { status: 'YES' }) },
};

/** Makes a card payment with one target per outcome. */
async function pay(outcomes: readonly Outcome[], request = cardPayment()) {
  const capabilities = { t1: { authorization: true } };
  const payment = payments.payment(request, { outcomes, capabilities, softDeclines: true });
  const { record } = await payment.send();
  return { id: record.id, calls: payment.calls, payment };
}
type Paid = Awaited<ReturnType<typeof pay>>;

let alarms: unknown[] = [];

/** Applies the signed report about the first attempt. */
async function sign({ calls }: Paid, outcome = CORRECTED, over: Partial<CheckerDeps> = {}) {
  alarms = [];
  const learned = (_about: unknown, result: unknown) => {
    if (typeof result === 'string') alarms.push(result);
  };
  const deps: CheckerDeps = { ...payments.deps, checked: { ...payments.deps.checked, learned }, ...over };
  const capabilities = { authorizationValidDays: 7, redirectValidMinutes: 60 };
  const connection = { identity: 't1', capabilities, deadlineMs: 1_000 } as never;
  await forgetNews();
  const told = { outcome, minorUnits: 1_000n, currency: 'USD' };
  return signed(deps, 't1', connection, calls[0]?.transactionId ?? '', told);
}

async function shown({ id }: Paid) {
  const record = await getPayment({ database: payments.database }, id, {
    ...{ accountId: ACCOUNT_ONE, idempotencyKey: undefined, secretPresented: true },
  });
  return {
    status: Payment_Status[record.status],
    shown: record.transactions?.id,
    token: record.paymentMethod?.vaultedToken,
    history: record.transactionsHistory.map(({ status }) => Transaction_Status[status]),
  };
}

it('a declined payment that its provider corrects to approved is SUCCEEDED, with one event', async () => {
  await wantEveryEvent(payments.tables);
  const paid = await pay([DECLINED]);
  expect(await shown(paid)).toMatchObject({ status: 'DECLINED' });
  expect([await sign(paid), await sign(paid), await sign(paid)]).toEqual([
    'applied',
    'unchanged',
    'unchanged',
  ]);
  expect([await shown(paid), alarms]).toMatchObject([
    { status: 'SUCCEEDED', shown: paid.calls[0]?.transactionId, history: ['SUCCEEDED'] },
    [],
  ]);
  const events = 'SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence';
  expect(await payments.tables.query(events, [paid.id])).toEqual([
    { type: 'payment.purchase' },
    { type: 'payment.purchase' },
  ]);
});

it('an authorization that its provider corrects to approved is checked until it lapses', async () => {
  const paid = await pay([DECLINED], withField(cardPayment(), 'payment_method.detail.card.capture', false));
  expect(await sign(paid)).toBe('applied');
  const [row] = await payments.tables.query(
    'SELECT check_at > now() AS held FROM transaction WHERE id = $1',
    [paid.calls[0]?.transactionId],
  );
  expect(row?.held).toBe(true);
});

it.each([
  ['declined', DECLINED],
  ['not sent', NOT_SENT],
] as const)('the payment shows the corrected attempt when the next one was %s', async (_what, next) => {
  const paid = await pay([DECLINED, next]);
  expect(await sign(paid)).toBe('applied');
  expect(await shown(paid)).toMatchObject({
    status: 'SUCCEEDED',
    shown: paid.calls[0]?.transactionId,
    history: [next === NOT_SENT ? 'ERROR' : 'DECLINED', 'SUCCEEDED'],
  });
});

it('a correction changes nothing once another attempt has charged the payment, and raises an alarm', async () => {
  const paid = await pay([DECLINED, APPROVED]);
  const before = await shown(paid);
  expect([await sign(paid), alarms]).toEqual(['unchanged', ['contradiction']]);
  expect(await shown(paid)).toEqual(before);
});

it('a correction waits while another attempt of the payment is open', async () => {
  const paid = await pay([DECLINED, PENDING]);
  expect([await sign(paid), alarms]).toEqual(['waiting', []]);
  expect(await shown(paid)).toMatchObject({ status: 'PENDING' });
});

it('a correction waits if the record was read before the next attempt ended', async () => {
  const paid = await pay([DECLINED, PENDING]);
  const transactionId = paid.calls[1]?.transactionId ?? '';
  const next = { accountId: ACCOUNT_ONE, paymentId: paid.id, transactionId, fence: 0 };
  const report = { kind: 'outcome', transactionId, outcome: DECLINED, pauseS: 5 } as const;
  // The second read is part of the write.
  const end = async (nth: number) => nth === 2 && writeReport(payments.deps, next, report);
  const database = interleave(payments.database, { after: { read_payment_state: end } });
  expect(await sign(paid, CORRECTED, { database })).toBe('waiting');
  expect(await sign(paid)).toBe('applied');
  expect(await shown(paid)).toMatchObject({ status: 'SUCCEEDED', history: ['DECLINED', 'SUCCEEDED'] });
});

it.each([
  ['another charge under our reference', { providerPaymentId: 'paid-2' }],
  ['a charge without an id', { providerPaymentId: undefined }],
  ['an approval that is not a correction', { corrects: undefined }],
])('%s changes nothing, and raises an alarm', async (_what, over) => {
  const paid = await pay([DECLINED]);
  expect([await sign(paid, { ...CORRECTED, ...over } as Outcome), alarms]).toEqual([
    'unchanged',
    ['contradiction'],
  ]);
  expect(await shown(paid)).toMatchObject({ status: 'DECLINED' });
});

it('a payment corrected to approved uses up its checkout session again', async () => {
  const session = randomUUID();
  const terms = cardPayment() as { country: string };
  await payments.tables.query(
    `INSERT INTO checkout_session (account_id, id, merchant_order_id, country, currency, amount_minor_units, workflow, expires_at)
     VALUES ($1, $2, 'o', $3, 'USD', 1000, 'DIRECT', now() + interval '5 hours')`,
    [ACCOUNT_ONE, session, terms.country],
  );
  const paid = await pay([DECLINED], withField(cardPayment(), 'checkout', { session }));
  const isUsed = async () => (await readSession(payments.database, ACCOUNT_ONE, session))?.used;
  expect(await isUsed()).toBe(false);
  expect([await sign(paid), await isUsed()]).toEqual(['applied', true]);
});

it('a correction does not restore a card that was dropped with the decline', async () => {
  const keeping = withField(cardPayment(), 'payment_method.vault_on_success', true);
  const paid = await pay([DECLINED], keeping);
  expect(await sign(paid)).toBe('applied');
  expect(await shown(paid)).toMatchObject({ status: 'SUCCEEDED', token: '' });
});
