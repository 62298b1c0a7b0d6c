import { setTimeout as sleep } from 'node:timers/promises';
import { notify } from './notify.ts';
import { operate, type Paid } from './operate.ts';
import {
  DECLINED_AT_ACQUIRER_ONE,
  getPayment,
  type Order,
  type OrderOptions,
  paymentOf,
  send,
} from './orders.ts';
import { agree, becomes, payerOf } from './wallets.ts';
import type { World } from './world.ts';

const INTERVAL_MS = 40;
/** Maximum number of orders that are retried at once, so that a busy machine is not overloaded. */
const MAX_OPEN = 40;
// No order uses an unreachable connection: if the replica is killed there, the outcome must stay unknown.
const CARDS: readonly OrderOptions[] = [
  ...[{}, {}, {}, {}, {}, {}],
  ...['error_after', 'reset_before', 'decline:51', 'late_approval:1500'].map((kind) => ({
    description: `sandbox:${kind}`,
  })),
  ...[{ cardNumber: DECLINED_AT_ACQUIRER_ONE }, { cardNumber: DECLINED_AT_ACQUIRER_ONE }],
];
const CODES: readonly OrderOptions[] = ['', 'sandbox:error_after', 'sandbox:reset_before'].map(
  (description) => ({
    code: 'PIX',
    description,
  }),
);
/** One in this many payments gets an operation. */
const OPERATED = 3;
const OPERATION_TRIES = 20;
const PAUSE_MS = 250;

/**
 * Makes new orders while `work` runs. Retries each at any replica until it gets a response, and performs operations on
 * some. At the end, every order has a response.
 */
export async function underLoad(
  world: World,
  work: () => Promise<void>,
  intervalMs = INTERVAL_MS,
): Promise<void> {
  const insisting: Promise<unknown>[] = [];
  const orders = world.can('codes') && world.can('lost_codes') ? [...CARDS, ...CODES] : CARDS;
  let open = 0;
  const timer = setInterval(() => {
    if (open >= MAX_OPEN) return;
    open += 1;
    const options = world.random.pick(orders);
    const capture = options.code !== undefined || world.random.integer(0, 1) === 1;
    const order = world.order({ ...options, capture });
    const isOperated = world.random.integer(1, OPERATED) === 1;
    const done = sendOnce(world, order)
      .then(() => world.insist(order))
      .then(async (answer) => {
        const id = paymentOf(answer)?.id ?? '';
        if (options.code) await payCode(world, order, id);
        if (isOperated) await operateOn(world, order, id, capture);
      });
    const ended = done
      .catch((error: Error) => world.expect(false, error.message))
      .finally(() => {
        open -= 1;
      });
    insisting.push(ended);
  }, intervalMs);
  try {
    await work();
  } finally {
    clearInterval(timer);
    await Promise.all(insisting);
  }
}

async function sendOnce(world: World, order: Order): Promise<void> {
  const url = anyOf(world);
  if (url) await send(url, order);
}

/** Pays a code, if there is one, of which the service learns by a notification or by its next check. */
async function payCode(world: World, order: Order, id: string): Promise<void> {
  const url = anyOf(world);
  const payer = url && (await payerOf(world, url, order, id));
  if (!payer) return;
  await agree(world, payer);
  if (world.random.integer(0, 1) === 1) await notify(world, url, payer.line);
  await becomes(world, payer, 'SUCCEEDED');
}

/** Refunds, captures or cancels until there is a response; gives up if the payment does not allow it. */
async function operateOn(world: World, order: Order, id: string, capture: boolean): Promise<void> {
  const url = anyOf(world);
  const payment = url && order.account === 'one' ? await getPayment(url, order, id) : undefined;
  if (payment?.status !== 'SUCCEEDED') return;
  const verb = capture ? 'refund' : world.random.pick(['capture', 'cancel'] as const);
  const description = world.random.pick(['', '', 'sandbox:reset_after', 'sandbox:error_before']);
  const { transaction_id = '' } = payment.transactions.provider_data ?? {};
  const paid: Paid = { id, order, trouble: (word) => world.judge.trouble(transaction_id, word) };
  const asked = { verb, payment: paid, key: `${verb} ${id}`, description } as const;
  for (let tries = 0; tries < OPERATION_TRIES; tries++) {
    const other = anyOf(world);
    const answer = other && (await operate(other, asked));
    if (answer && answer.status === 200) return;
    await sleep(PAUSE_MS);
  }
}

function anyOf(world: World): string | undefined {
  const alive = world.replicas.filter((replica) => replica.isAlive());
  return alive.length > 0 ? world.random.pick(alive).url : undefined;
}
