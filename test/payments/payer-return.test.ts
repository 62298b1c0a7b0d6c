import { randomUUID } from 'node:crypto';
import { beforeAll, beforeEach, expect, it } from 'vitest';
import { type Payment, Payment_Status } from '#gen/payments/v1/payment_pb.js';
import type { LookUp, ProviderConnection } from '#src/connectors/connector.ts';
import { createLookUpTurns } from '#src/payments/check/look-up-turns.ts';
import { returnPayer } from '#src/payments/check/payer-return.ts';
import { recoverDue } from '#src/payments/check/recover-payments.ts';
import { ACCOUNT_ONE } from '../support/payment-requests.ts';
import { onOperatedPayments, payments } from './operated-payments.ts';

const MINUTE_MS = 60_000;
const DAY_MS = 1_440 * MINUTE_MS;

/** Every look-up that a return prompted, in order. */
let asked: LookUp[];

onOperatedPayments({ empties: 'payment, transaction, event' });
beforeAll(async () => {
  await payments.tables.query(
    `INSERT INTO webhook (account_id, id, url, description, events, secret) VALUES ($1, $2, '', '', $3, '')`,
    [ACCOUNT_ONE, randomUUID(), ['payment.expired', 'payment.purchase']],
  );
});
beforeEach(() => {
  asked = [];
  payments.setAhead(0);
});

/** Brings the payer of a payment back. @returns the status that they are told. */
async function comeBack({ id }: Payment, turns = createLookUpTurns(0), query = ''): Promise<string> {
  const connection: ProviderConnection = {
    ...payments.provider.connection,
    async lookUp(query) {
      asked.push(query);
      const outcome = await payments.provider.connection.lookUp?.(query);
      return outcome ?? { kind: 'unknown', detail: 'silence', providerData: undefined };
    },
  };
  const connections = () => new Map([['ledger', connection]]);
  const { status } = await returnPayer({ ...payments.deps, connections, turns }, id, query);
  return Payment_Status[status];
}

/** Lets the term of what is open pass, so that it expires here. */
async function expire() {
  payments.setAhead(8 * DAY_MS);
  await payments.makeDue();
  await recoverDue(payments.deps);
}

const eventsOf = ({ id }: Payment) =>
  payments.tables.query('SELECT type FROM event WHERE payment_id = $1 ORDER BY sequence', [id]);

it('a payer who pays after their payment has expired here and comes back is told SUCCEEDED, and so is the merchant', async () => {
  const payment = await payments.pay({ wallet: true });
  await expire();
  expect(await comeBack(payment)).toBe('EXPIRED');
  payments.provider.payerPays(payment.transactions?.id ?? '');
  expect(await comeBack(payment)).toBe('SUCCEEDED');
  expect(asked).toHaveLength(2);
  expect(await eventsOf(payment)).toEqual([
    { type: 'payment.purchase' },
    { type: 'payment.expired' },
    { type: 'payment.purchase' },
  ]);
  // What is final is asked about no more.
  expect(await comeBack(payment)).toBe('SUCCEEDED');
  expect(asked).toHaveLength(2);
});

it('an authorization that lapsed is not asked about again, whoever opens its return address', async () => {
  const payment = await payments.pay({ capture: false });
  await expire();
  expect(await comeBack(payment)).toBe('EXPIRED');
  expect(asked).toEqual([]);
});

it('a payer who has paid is told so, although somebody opened the return address just before they paid', async () => {
  const payment = await payments.pay({ wallet: true });
  const turns = createLookUpTurns(200);
  expect(await comeBack(payment, turns)).toBe('READY_TO_PAY');
  payments.provider.payerPays(payment.transactions?.id ?? '');
  expect(await Promise.all([comeBack(payment, turns), comeBack(payment, turns)])).toEqual([
    'SUCCEEDED',
    'SUCCEEDED',
  ]);
  expect(asked).toHaveLength(2);
});
