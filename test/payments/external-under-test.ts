import { beforeEach } from 'vitest';
import type { Payment } from '#gen/payments/v1/payment_pb.js';
import type { ProviderConnection } from '#src/connectors/port/connector.ts';
import { notified } from '../support/news.ts';
import { type OperatedPayments, onOperatedPayments, payments } from './operated-payments.ts';
import * as requested from './requested-operations.ts';

/* Payments on which operations are made at the provider itself. */

/** The alarms so far, in order. */
export let alarms: unknown[];
export let deps: OperatedPayments['deps'];

/** Opens such payments for a file's tests. Each test starts without payments and alarms. */
export function onPaymentsElsewhere(): void {
  onOperatedPayments({ empties: 'payment, transaction, notification, webhook, event' });
  beforeEach(() => {
    payments.setAhead(0);
    alarms = [];
    const learned = (_about: unknown, result: unknown) => {
      if (typeof result === 'string' && result !== 'lapsed') alarms.push(result);
    };
    deps = { ...payments.deps, checked: { ...payments.deps.checked, learned } };
  });
}

export const state = (payment: Payment) => payments.stateOf(payment);

/** Delivers a notification that prompts a look-up. */
export const news = (payment: Payment, connection: ProviderConnection = payments.provider.connection) =>
  notified({ ...deps, connections: () => new Map([['ledger', connection]]) }, 'ledger', {
    transactionId: requested.idOf(payment),
  });

export const refund = (payment: Payment, amount?: string) => requested.refund(payment, askedOf(amount));
export const capture = (payment: Payment, amount?: string) => requested.capture(payment, askedOf(amount));
const askedOf = (amount?: string) => ({ deps, ...(amount !== undefined && { amount }) });

/** The other transactions of a payment: type, status and minor units. */
export async function others({ id }: Payment): Promise<string[]> {
  const rows = await payments.tables.query(
    `SELECT type, status, amount_minor_units::integer AS units FROM transaction
     WHERE payment_id = $1 AND parent_id IS NOT NULL ORDER BY created_at, id`,
    [id],
  );
  return rows.map(({ type, status, units }) => `${type} ${status} ${units}`);
}
