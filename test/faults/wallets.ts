import { earlier } from '../support/tables.ts';
import {
  exchange,
  getPayment,
  type Order,
  type OrderOptions,
  type PaymentJson,
  paymentOf,
  send,
} from './orders.ts';
import type { LedgerLine } from './providers/provider.ts';
import type { World } from './world.ts';

/**
 * A wallet at which the payer only approves; the service then captures the money unless the provider does so by itself.
 */
const TO_COMPLETE: OrderOptions = { wallet: 'WALLET_D' };

/** A payer at the provider's page, or with a code. */
export type Payer = {
  readonly id: string;
  readonly transactionId: string;
  readonly order: Order;
  /** The provider's entry at that time. */
  readonly line: LedgerLine;
  /** The query of the payer's return, once they have agreed. */
  query: string;
};

/** Number of consecutive failed payments that counts as a fault; a busy machine may prevent some from being sent. */
const PAYMENTS = 5;

/**
 * Makes a payment that waits for its payer: with a code, or at the provider's page, by a wallet or, without wallets, for a
 * challenge.
 */
export async function sendAway(world: World, url: string, options = TO_COMPLETE): Promise<Payer> {
  const { challengedCard: cardNumber } = world.kind;
  const isChallenged = cardNumber !== undefined && options.code === undefined;
  for (let made = 1; ; made++) {
    const { wallet: _, ...others } = options;
    const order = world.order(
      isChallenged ? { ...others, cardNumber, vault: false, capture: true } : options,
    );
    await send(url, order);
    const payment = paymentOf(await world.insist(order));
    if (!payment) throw new Error('the payment got no response');
    let status: string | undefined;
    await world.until('the payment to wait for its payer', async () => {
      const now = await getPayment(url, order, payment.id);
      status = now?.status;
      return now !== undefined && (status !== 'PENDING' || awaitsPayer(now));
    });
    const payer = await payerOf(world, url, order, payment.id);
    if (payer) return payer;
    if (made === PAYMENTS) throw new Error(`${made} payments in a row failed: ${status}`);
  }
}

/** Returns the payer of a payment; undefined if there is no page for them. */
export async function payerOf(
  world: World,
  url: string,
  order: Order,
  id: string,
): Promise<Payer | undefined> {
  const payment = await getPayment(url, order, id);
  if (!payment || !awaitsPayer(payment)) return undefined;
  const transactionId = payment.transactions.id;
  const line = (await world.ledger()).find((one) => one.idempotency_key === transactionId);
  return line && { id, transactionId, order, line, query: '' };
}

/** Returns true for a payment whose payer must go to the provider's page, or to the issuer's. */
function awaitsPayer({ status, sub_status }: PaymentJson): boolean {
  return status === 'READY_TO_PAY' || (status === 'PENDING' && sub_status === 'WAITING_ADDITIONAL_STEP');
}

/** Agrees or pays at the provider's page, as the payer. */
export async function agree(world: World, payer: Payer): Promise<void> {
  await world.judge.agree(payer.line).then(
    (query) => {
      payer.query = query;
    },
    (error: Error) => world.expect(false, error.message),
  );
}

/** Returns to the service, as the payer's browser. */
export async function returnTo(url: string, { id, query }: Payer): Promise<void> {
  const path = `/v1/payments/${id}/return${query && `?${query}`}`;
  await exchange(url + path, { method: 'GET', headers: {}, body: undefined });
}

/** Makes a payment due for an immediate look-up. */
export async function makeDue(world: World, { transactionId }: Payer): Promise<void> {
  const sql = 'UPDATE transaction SET check_at = now() WHERE id = $1 AND check_at IS NOT NULL';
  await world.query(sql, [transactionId]);
}

/** Waits until a payment has the expected status, and makes later checks due at once. */
export async function becomes(world: World, payer: Payer, expected: string): Promise<void> {
  let status: unknown;
  await world
    .until(`${payer.id} to be ${expected}`, async () => {
      const sql = `UPDATE transaction SET check_at = now() WHERE id = $1 AND check_at > now() + interval '5 s'`;
      await world.query(sql, [payer.transactionId]);
      status = (await world.query('SELECT status FROM payment WHERE id = $1', [payer.id]))[0]?.status;
      return status === expected;
    })
    .catch(() => world.expect(false, `${payer.id} is ${status}, not ${expected}`));
}

/**
 * Waits until a payment has no open operation, and makes later checks due at once. At a provider whose search lags, the
 * payment gets an hour older.
 */
export async function settled(world: World, id: string): Promise<void> {
  if (world.kind.searchLags)
    await world.query(
      `UPDATE transaction SET created_at = ${earlier('created_at', '1 hour')} WHERE payment_id = $1`,
      [id],
    );
  const sooner = `UPDATE transaction SET check_at = now() WHERE payment_id = $1 AND check_at > now() + interval '5 s'`;
  await world.until(`the operation on ${id} to end`, async () => {
    await world.query(sooner, [id]);
    const [row] = await world.query('SELECT open_operation FROM payment WHERE id = $1', [id]);
    return row?.open_operation === null;
  });
}
