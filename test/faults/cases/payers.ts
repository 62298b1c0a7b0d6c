import { ACCOUNT_ONE } from '../../support/payment-requests.ts';
import { inParallel } from '../in-parallel.ts';
import { notify } from '../notify.ts';
import { exchange, getPayment, type Order, paymentOf, send } from '../orders.ts';
import type { LedgerLine, World } from '../world.ts';
import type { Case } from './case.ts';
import { killAt } from './kills.ts';

/** A wallet at which the payer only agrees: the service then takes the money. */
const TO_COMPLETE = 'WALLET_D';

/** Payers who were sent away, what they and the provider tell, and verifications. */
export const PAYERS: readonly Case[] = [
  completionKill('before it is taken', 'take_follow_up:request'),
  completionKill('after it is taken', 'take_follow_up:response'),
  completionKill('asking the provider', 'look_up:response'),
  completionKill('while the completion is on its way', 'operation:request'),
  completionKill('after completing, before the answer', 'operation:response'),
  completionKill('after the answer, before commit 2', 'finish_operation:request'),
  completionKill('after commit 2, before the response', 'finish_operation:response'),
  verificationKill('before the claim', 'claim:request'),
  verificationKill('after sending, before the answer', 'charge:response'),
  verificationKill('after the answer, before commit 2', 'finish:request'),
  verificationKill('after commit 2, before the response', 'finish:response'),
  {
    name: 'payers: notification, return and recovery at once, at two replicas',
    short: true,
    async run(world) {
      const [one, two] = [
        await world.startReplica({ unhurried: true }),
        await world.startReplica({ unhurried: true }),
      ];
      const waiting = await inParallel(
        Array.from({ length: 4 }, () => () => sendAway(world, one.url)),
        4,
      );
      await Promise.all(waiting.map((payer) => agree(world, payer)));
      const hints = waiting.flatMap((payer): (() => Promise<unknown>)[] => [
        () => returnTo(one.url, payer),
        () => returnTo(two.url, payer),
        () => makeDue(world, payer),
        () => notify(one.url, payer.line),
        () => notify(two.url, payer.line),
        () => notify(two.url, payer.line, { isForged: true }),
      ]);
      await inParallel(world.random.shuffled(hints), hints.length);
      for (const payer of waiting) await becomes(world, payer, 'SUCCEEDED');
      await expectOneCompletionEach(world, waiting);
    },
  },
  {
    name: 'payers: a notification that tells what the provider does not',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payer = await sendAway(world, url, 'WALLET_B');
      const told = await notify(url, { ...payer.line, status: 'paid', amount_captured: payer.line.amount });
      world.expect(told === 200, `the notification was answered ${told}`);
      await processed(world);
      const now = await getPayment(url, payer.order, payer.id);
      world.expect(now?.status === 'READY_TO_PAY', `nobody paid; it is ${now?.status}`);
      const forged = await notify(url, payer.line, { isForged: true });
      world.expect(forged === 401, `a forged notification was answered ${forged}`);
    },
  },
  {
    name: 'payers: killed between storing a notification and processing it',
    async run(world) {
      const replica = await world.startReplica();
      const payer = await sendAway(world, replica.url, 'WALLET_B');
      await agree(world, payer);
      const point = world.random.pick(['find_notified_transaction', 'take_follow_up', 'settle_notification']);
      const stop = world.gate.hold(`${point}:${world.random.pick(['request', 'response'])}`);
      const told = await notify(replica.url, payer.line);
      world.expect(told === 200, `the notification was answered ${told}`);
      await stop.reached;
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      const other = await world.startReplica({ unhurried: true });
      await world.query('UPDATE notification SET process_at = now() WHERE process_at IS NOT NULL');
      await becomes(world, payer, 'SUCCEEDED');
      world.expect((await notify(other.url, payer.line)) === 200, 'told again, it was refused');
      await processed(world);
    },
  },
  {
    name: 'payers: a payer who pays while the payment expires',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payer = await sendAway(world, url, 'WALLET_B', 'sandbox:stay_open');
      // A day later: the last look-up, the closing, and the payer at once.
      await world.query("UPDATE transaction SET created_at = created_at - interval '2 days' WHERE id = $1", [
        payer.transactionId,
      ]);
      const actions = world.random.shuffled([
        () => agree(world, payer),
        () => makeDue(world, payer),
        () => returnTo(url, payer),
      ]);
      await inParallel(actions, actions.length);
      await notify(url, payer.line);
      await becomes(world, payer, 'SUCCEEDED');
    },
  },
];

/** A payer who was sent to the provider's page. */
type Payer = {
  readonly id: string;
  readonly transactionId: string;
  readonly order: Order;
  /** The provider's entry, as it was then. */
  readonly line: LedgerLine;
};

/** On a busy machine a payment may be held up for too long to be sent; so often in a row is a fault. */
const PAYMENTS = 5;

async function sendAway(
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
    const line = (await world.ledger()).find((one) => one.idempotency_key === payment.transactions.id);
    if (status === 'READY_TO_PAY' && line) {
      return { id: payment.id, transactionId: payment.transactions.id, order, line };
    }
    if (made === PAYMENTS) throw new Error(`${made} payments in a row came to nothing: ${status}`);
  }
}

/** The payer agrees, or pays, at the provider's page. */
async function agree(world: World, { line }: Payer): Promise<void> {
  const page = `http://127.0.0.1:${world.judge.url}/checkout/${line.id}/pay`;
  const { status } = await fetch(page, { method: 'POST', redirect: 'manual' });
  world.expect(status === 303, `the provider's page answered ${status}`);
}

async function returnTo(url: string, { id }: Payer): Promise<void> {
  await exchange(`${url}/v1/payments/${id}/return`, { method: 'GET', headers: {}, body: undefined });
}

async function makeDue(world: World, { transactionId }: Payer): Promise<void> {
  const sql = 'UPDATE transaction SET follow_up_at = now() WHERE id = $1 AND follow_up_at IS NOT NULL';
  await world.query(sql, [transactionId]);
}

/** Waits until a payment is what it is expected to be; what is followed up late is due at once. */
async function becomes(world: World, payer: Payer, expected: string): Promise<void> {
  let status: unknown;
  await world
    .until(`${payer.id} to be ${expected}`, async () => {
      const sql = `UPDATE transaction SET follow_up_at = now() WHERE id = $1 AND follow_up_at > now() + interval '5 s'`;
      await world.query(sql, [payer.transactionId]);
      status = (await world.query('SELECT status FROM payment WHERE id = $1', [payer.id]))[0]?.status;
      return status === expected;
    })
    .catch(() => world.expect(false, `${payer.id} is ${status}, not ${expected}`));
}

async function processed(world: World): Promise<void> {
  const open = 'SELECT 1 FROM notification WHERE process_at IS NOT NULL';
  await world.until('notifications to be processed', async () => (await world.query(open)).length === 0);
}

async function expectOneCompletionEach(world: World, payers: readonly Payer[]): Promise<void> {
  const ledger = await world.ledger();
  const done = ledger.filter(({ kind, status }) => kind === 'completion' && status === 'succeeded');
  world.expect(done.length === payers.length, `${done.length} completions for ${payers.length} payers`);
}

/** Kills the replica while it takes the money of a payer who agreed; another one goes on. */
function completionKill(step: string, point: string): Case {
  return {
    name: `payers: completion killed ${step}`,
    async run(world) {
      const replica = await world.startReplica();
      const payer = await sendAway(world, replica.url);
      await agree(world, payer);
      const stop = world.gate.hold(point);
      const returned = returnTo(replica.url, payer);
      await stop.reached;
      await replica.kill();
      await returned;
      world.random.pick([stop.cut, stop.release])();
      const other = await world.startReplica({ unhurried: true });
      if (world.random.integer(0, 1) === 1) await returnTo(other.url, payer);
      await becomes(world, payer, 'SUCCEEDED');
      await expectOneCompletionEach(world, [payer]);
    },
  };
}

function verificationKill(step: string, point: string): Case {
  return {
    name: `payers: verification killed ${step}`,
    async run(world) {
      const order = world.order({ verify: true });
      const stop = await killAt(world, point, order);
      world.random.pick([stop.cut, stop.release])();
      await world.startReplica({ unhurried: true });
      await world.insist(order);
      world.expect(await world.drain(), 'the verification stays open');
      const sql = 'SELECT status FROM payment WHERE account_id = $1 AND idempotency_key = $2';
      const [row] = await world.query(sql, [ACCOUNT_ONE, order.key]);
      world.expect(row?.status === 'VERIFIED', `the verification is ${row?.status}`);
    },
  };
}
