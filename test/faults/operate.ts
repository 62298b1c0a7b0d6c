import { headersOne } from '../support/payment-requests.ts';
import {
  type Answer,
  exchange,
  getPayment,
  type Order,
  type OrderOptions,
  paymentOf,
  send,
} from './orders.ts';
import { agree, becomes, returnTo, sendAway } from './wallets.ts';
import type { World } from './world.ts';

/** An operation that a merchant requests. */
export type Asked = {
  readonly verb: 'capture' | 'cancel' | 'refund';
  readonly payment: Paid;
  readonly key: string;
  readonly description?: string;
  /** Percentage of the payment; by default, everything that is left. */
  readonly percent?: number;
};

/** An approved payment. */
export type Paid = {
  readonly id: string;
  readonly order: Order;
  /** Causes trouble for operations on the payment at a provider that does not read descriptions. */
  readonly trouble: (word: string) => void;
};

/** Number of consecutive failed payments that counts as a fault; a busy machine may prevent some from being sent. */
const PAYMENTS = 5;

export type Verb = Asked['verb'];

/** Returns the operations that the provider supports. */
export function verbsOf(world: World): readonly Verb[] {
  return world.can('authorizations') ? ['capture', 'cancel', 'refund'] : ['refund'];
}

/**
 * Makes an approved payment of account one, by card or, with a code or at a provider without cards, by its payer.
 * On a busy machine the approval may be learned later.
 */
export async function pay(world: World, url: string, options: OrderOptions): Promise<Paid> {
  if (options.code) return payByPayer(world, url, options);
  if (!world.can('cards')) return payByPayer(world, url);
  for (let made = 1; ; made++) {
    const order = world.order({ vault: false, ...options });
    await send(url, order);
    const id = paymentOf(await world.insist(order))?.id ?? '';
    let status: string | undefined;
    await world.until('the payment to have its outcome', async () => {
      status = (await getPayment(url, order, id))?.status;
      return status !== undefined && status !== 'PENDING';
    });
    if (status === 'SUCCEEDED') return paid(world, url, id, order);
    if (made === PAYMENTS) throw new Error(`${made} payments in a row failed: ${status}`);
  }
}

async function payByPayer(world: World, url: string, options?: OrderOptions): Promise<Paid> {
  const payer = await sendAway(world, url, options);
  await agree(world, payer);
  await returnTo(url, payer);
  await becomes(world, payer, 'SUCCEEDED');
  return paid(world, url, payer.id, payer.order);
}

async function paid(world: World, url: string, id: string, order: Order): Promise<Paid> {
  const { transaction_id = '' } = (await getPayment(url, order, id))?.transactions.provider_data ?? {};
  return { id, order, trouble: (word) => world.judge.trouble(transaction_id, word) };
}

/** Requests an operation. Never throws: the absence of a response is a result, too. */
export async function operate(url: string, asked: Asked): Promise<Omit<Answer, 'tookMs'>> {
  const { verb, payment, key, description, percent } = asked;
  if (description) payment.trouble(description);
  const { amount } = JSON.parse(payment.order.body);
  const part = percent && { currency: amount.currency, value: shareOf(amount.value, percent) };
  return exchange(`${url}/v1/payments/${payment.id}/${verb}`, {
    method: 'POST',
    headers: { ...headersOne(key), 'content-type': 'application/json' },
    body: JSON.stringify({ ...(description && { description }), ...(part && { amount: part }) }),
  });
}

/** Repeats an operation at running replicas until the response is the payment. */
export async function insistOn(world: World, asked: Asked): Promise<Omit<Answer, 'tookMs'>> {
  let answer: Omit<Answer, 'tookMs'> = { status: undefined, body: '', replayed: false };
  await world.until(`the ${asked.verb} to be answered`, async () => {
    const alive = world.replicas.filter((replica) => replica.isAlive());
    if (alive.length > 0) answer = await operate(world.random.pick(alive).url, asked);
    return answer.status === 200;
  });
  return answer;
}

/** Returns a percentage of an amount, with the same number of decimal places. */
function shareOf(value: string, percent: number): string {
  const [whole = '', fraction = ''] = value.split('.');
  // Stripe requires multiples of ten for currencies with three decimal places.
  const step = fraction.length === 3 ? 10n : 1n;
  const share = (BigInt(whole + fraction) * BigInt(percent)) / 100n;
  const units = String((share / step) * step).padStart(fraction.length + 1, '0');
  return fraction ? `${units.slice(0, -fraction.length)}.${units.slice(-fraction.length)}` : units;
}
