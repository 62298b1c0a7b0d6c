import { create } from '@bufbuild/protobuf';
import { beforeEach, expect, it } from 'vitest';
import { type Payment, ProviderDataSchema } from '#gen/payments/v1/payment_pb.js';
import { systemClock } from '#src/clock.ts';
import { withinLease } from '#src/connectors/guards/within-lease.ts';
import type { LookUp, Operation, ProviderConnection } from '#src/connectors/port/connector.ts';
import type { Outcome } from '#src/connectors/port/outcome.ts';
import { findTransaction } from '#src/payments/check/check-transaction.ts';
import { checkDue } from '#src/payments/check/checker.ts';
import type { Release } from '#src/payments/check/decide.ts';
import { releaseAuthorization } from '#src/payments/check/look-up-transaction.ts';
import { UNKNOWN } from '../support/outcomes.ts';
import { withClockAhead } from '../support/process-clock.ts';
import type { OperatedPayments } from './open-operated-payments.ts';
import * as requested from './operated-payments.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const providerData = create(ProviderDataSchema);
const ENDED: Outcome = { kind: 'expired', providerData };
const DONE: Outcome = {
  ...{ kind: 'approved', providerData, authorizationCode: '', retrievalReferenceNumber: '' },
};

onOperatedPayments({ empties: 'payment, transaction' });

let payment: Payment;
let deps: OperatedPayments['deps'];
beforeEach(async () => {
  payment = await payments.pay({ capture: false });
});

const state = () => payments.stateOf(payment);
const capture = (amount?: string) =>
  requested.capture(payment, { deps, ...(amount !== undefined && { amount }) });

const DAY_MS = 86_400_000;
let results: unknown[];
beforeEach(() => {
  results = [];
  const learned = (_about: unknown, told: unknown) => results.push(told);
  deps = { ...payments.deps, checked: { ...payments.deps.checked, learned } };
});

async function pastTerm() {
  payments.setAhead(7 * DAY_MS + 1_000);
  await payments.makeDue();
  await checkDue(deps);
}
const isHeld = () => !payments.provider.bookOf(requested.idOf(payment)).released;

it('an authorization past its term stays held and can be captured, whatever the clock of a process says', async () => {
  await payments.makeDue();
  await withClockAhead(30 * DAY_MS, () => checkDue({ ...deps, now: systemClock() }));
  expect([await state(), isHeld()]).toEqual(['SUCCEEDED/APPROVED', true]);
  await capture();
  expect(await state()).toBe('SUCCEEDED/CAPTURED');
});

it('an authorization past its term is released at its provider before it is EXPIRED', async () => {
  await pastTerm();
  expect([await state(), isHeld(), results]).toEqual(['EXPIRED/EXPIRED', false, ['lapsed']]);
  expect(payments.provider.moved.at(-1)).toMatch(/^cancel /);
});

it('the rest of a partly captured authorization is released once its term is over', async () => {
  await capture('30');
  await pastTerm();
  expect([await state(), isHeld()]).toEqual(['SUCCEEDED/PARTIALLY_CAPTURED', false]);
  await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
});

it('an authorization past its term that was partly captured ends if nothing is left to release', async () => {
  await capture('30');
  payments.provider.next.push('declines it');
  await pastTerm();
  await expect(capture()).rejects.toMatchObject({ reason: 'INVALID_STATUS' });
});

it('an authorization past its term is EXPIRED if the provider reports its unanswered release', async () => {
  payments.provider.next.push('does it, unanswered');
  await pastTerm();
  expect([await state(), isHeld()]).toEqual(['EXPIRED/EXPIRED', false]);
});

it('an authorization past its term stays unchanged, and is retried, while its release does not arrive', async () => {
  payments.provider.next.push('never hears of it');
  await pastTerm();
  expect([await state(), isHeld()]).toEqual(['SUCCEEDED/APPROVED', true]);
  const due = "SELECT 1 FROM transaction WHERE check_at <= now() + interval '1 hour'";
  expect(await payments.tables.query(due)).toHaveLength(1);
  await pastTerm();
  expect([await state(), isHeld()]).toEqual(['EXPIRED/EXPIRED', false]);
});

it('an authorization past its term stays unchanged, with a daily alarm, if its release is declined', async () => {
  payments.provider.next.push('declines it');
  await pastTerm();
  expect([await state(), isHeld()]).toEqual(['SUCCEEDED/APPROVED', true]);
  expect(results).toMatchObject([{ kind: 'unknown', alarm: true }]);
  const due = "SELECT 1 FROM transaction WHERE check_at > now() + interval '23 hours'";
  expect(await payments.tables.query(due)).toHaveLength(1);
});

it.each<[Outcome, string]>([
  [UNKNOWN, 'SUCCEEDED/APPROVED'],
  [{ kind: 'not_sent', because: 'turned_away', detail: 'no such charge' }, 'EXPIRED/EXPIRED'],
  [{ kind: 'declined', iso8583Code: '05', advice: 'NONE', providerData }, 'EXPIRED/EXPIRED'],
  [ENDED, 'EXPIRED/EXPIRED'],
])(
  'an authorization past its term that the provider does not report as held is not released: $kind',
  async (told, end) => {
    const { connection } = payments.provider;
    const released: string[] = [];
    const reporting: ProviderConnection = {
      ...connection,
      lookUp: async () => told,
      cancel: async ({ transactionId }) => {
        released.push(transactionId);
        return DONE;
      },
    };
    deps = { ...deps, connections: () => new Map([['ledger', reporting]]) };
    await pastTerm();
    expect([await state(), released]).toEqual([end, []]);
  },
);

it('an authorization past its term is not released if a capture of it begins first', async () => {
  const { connection } = payments.provider;
  let hasBegun = false;
  const racing: ProviderConnection = {
    ...connection,
    async lookUp(query) {
      const told = (await connection.lookUp?.(query)) as Outcome;
      if (!hasBegun) {
        hasBegun = true;
        payments.provider.next.push('delays it');
        await capture();
      }
      return told;
    },
    cancel: async () => ({
      kind: 'declined',
      iso8583Code: '57',
      advice: 'NONE',
      providerData: create(ProviderDataSchema),
    }),
  };
  deps = { ...deps, connections: () => new Map([['ledger', racing]]) };
  await pastTerm();
  expect(await state()).toBe('SUCCEEDED/APPROVED');
  payments.provider.settleDelayed();
  payments.setAhead(0);
  await payments.makeDue();
  await checkDue(payments.deps);
  expect(await state()).toBe('SUCCEEDED/CAPTURED');
});

it('the release of an authorization requests the rest, with its own constant key', async () => {
  await capture('30');
  const asked: Operation[] = [];
  const { connection } = payments.provider;
  const silent: ProviderConnection = {
    ...connection,
    cancel: async (operation) => {
      asked.push(operation);
      return { kind: 'unknown', detail: 'silence', providerData: undefined };
    },
  };
  deps = { ...deps, connections: () => new Map([['ledger', silent]]) };
  await pastTerm();
  await pastTerm();
  const [first, second] = asked;
  expect(second).toEqual(first);
  expect(first).toMatchObject({
    transactionId: expect.stringMatching(
      /^[0-9a-f]{8}-[0-9a-f]{4}-8[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$/,
    ),
    money: { minorUnits: 7_000n, currency: 'USD' },
    isWhole: true,
    merchantReference: `reference-${first?.transactionId}`,
    payment: { transactionId: requested.idOf(payment) },
    target: { transactionId: requested.idOf(payment) },
  });
  expect(first?.transactionId).not.toBe(requested.idOf(payment));
});

it.each<[string, Partial<ProviderConnection>, Release]>([
  ['refused, at a provider without cancel', { cancel: undefined }, 'refused'],
  ['refused, at a provider without look-up', { lookUp: undefined }, 'refused'],
  ['unknown, at a provider that does not answer', {}, 'unknown'],
  [
    'made, at a provider that reports a cancel',
    { lookUp: async ({ of }) => (of.kind === 'cancel' ? DONE : UNKNOWN) },
    'released',
  ],
  [
    'made, at a provider that reports the end of the authorization',
    { lookUp: async ({ of }) => (of.kind === 'CARD' ? ENDED : UNKNOWN) },
    'released',
  ],
])('the release of an authorization is %s', async (_what, over, expected) => {
  const asked: LookUp[] = [];
  const silent: ProviderConnection = {
    ...payments.provider.connection,
    cancel: async () => UNKNOWN,
    lookUp: async (query) => {
      asked.push(query);
      return UNKNOWN;
    },
    ...over,
  };
  const { accountId } = payments.caller();
  const leased = { accountId, paymentId: payment.id, transactionId: requested.idOf(payment), fence: 1 };
  const connection = withinLease(silent, Number.POSITIVE_INFINITY);
  const found = await findTransaction({ deps, connection, leased });
  expect(await releaseAuthorization(deps, connection, found)).toBe(expected);
  const own = { transactionId: requested.idOf(payment), close: false, of: { kind: 'CARD', capture: false } };
  if (expected === 'unknown')
    expect(asked).toMatchObject([{ ageMs: 0, close: false, of: { kind: 'cancel' } }, own]);
});

it('the release of an authorization does not begin unless the lease has time for all of its calls', async () => {
  const { connection } = payments.provider;
  const { accountId } = payments.caller();
  const leased = { accountId, paymentId: payment.id, transactionId: requested.idOf(payment), fence: 1 };
  const ending = withinLease(connection, performance.now() + 2 * connection.deadlineMs - 1);
  const found = await findTransaction({ deps, connection: ending, leased });
  expect([await releaseAuthorization(deps, ending, found), isHeld()]).toEqual(['unknown', true]);
});
