import { exchange, getPayment, type Order, paymentOf, send } from './orders.ts';
import type { LedgerLine } from './providers/provider.ts';
import type { World } from './world.ts';

/** A wallet at which the payer only agrees: the service then takes the money, where the provider does not by itself. */
const TO_COMPLETE = 'WALLET_D';

/** A payer who was sent to the provider's page. */
export type Payer = {
  readonly id: string;
  readonly transactionId: string;
  readonly order: Order;
  /** The provider's entry, as it was then. */
  readonly line: LedgerLine;
  /** The query with which they come back, once they agreed. */
  query: string;
};

/** On a busy machine a payment may be held up for too long to be sent; so often in a row is a fault. */
const PAYMENTS = 5;

/** Makes a payment whose payer is sent to the provider's page. */
export async function sendAway(
  world: World,
  url: string,
  wallet = TO_COMPLETE,
  description?: string,
): Promise<Payer> {
  for (let made = 1; ; made++) {
    const order = world.order({ wallet, ...(description && { description }) });
    await send(url, order);
    const payment = paymentOf(await world.insist(order));
    if (!payment) throw new Error('the wallet payment was not answered');
    let status: string | undefined;
    await world.until('the payment to wait for its payer', async () => {
      status = (await getPayment(url, order, payment.id))?.status;
      return status !== undefined && status !== 'PENDING';
    });
    const payer = await payerOf(world, url, order, payment.id);
    if (payer) return payer;
    if (made === PAYMENTS) throw new Error(`${made} payments in a row came to nothing: ${status}`);
  }
}

/** The payer of a payment; undefined where none was sent away, as nothing came of asking for a page. */
export async function payerOf(
  world: World,
  url: string,
  order: Order,
  id: string,
): Promise<Payer | undefined> {
  const payment = await getPayment(url, order, id);
  if (payment?.status !== 'READY_TO_PAY') return undefined;
  const transactionId = payment.transactions.id;
  const line = (await world.ledger()).find((one) => one.idempotency_key === transactionId);
  return line && { id, transactionId, order, line, query: '' };
}

/** The payer agrees, or pays, at the provider's page. */
export async function agree(world: World, payer: Payer): Promise<void> {
  await world.judge.agree(payer.line).then(
    (query) => {
      payer.query = query;
    },
    (error: Error) => world.expect(false, error.message),
  );
}

/** The payer's browser comes back. */
export async function returnTo(url: string, { id, query }: Payer): Promise<void> {
  const path = `/v1/payments/${id}/return${query && `?${query}`}`;
  await exchange(url + path, { method: 'GET', headers: {}, body: undefined });
}

/** Has what a payment waits for be looked up at once. */
export async function makeDue(world: World, { transactionId }: Payer): Promise<void> {
  const sql = 'UPDATE transaction SET check_at = now() WHERE id = $1 AND check_at IS NOT NULL';
  await world.query(sql, [transactionId]);
}

/** Waits until a payment is what it is expected to be; what is checked late is due at once. */
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
