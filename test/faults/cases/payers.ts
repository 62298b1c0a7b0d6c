import { ACCOUNT_ONE } from '../../support/payment-requests.ts';
import { older } from '../../support/tables.ts';
import { inParallel } from '../in-parallel.ts';
import { notify } from '../notify.ts';
import { getPayment, paymentOf } from '../orders.ts';
import { agree, becomes, makeDue, type Payer, payerOf, returnTo, sendAway } from '../wallets.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';
import { killAt } from './kills.ts';

/** Payers at the provider's page, their returns, the provider's notifications, and verifications. */
export const PAYERS: readonly Case[] = [
  completionKill('before it is taken', 'take_due_transactions:request'),
  completionKill('after it is taken', 'take_due_transactions:response'),
  completionKill('asking the provider', 'look_up:response'),
  completionKill('while the completion is on its way', 'operation:request'),
  completionKill('after completing, before the answer', 'operation:response'),
  completionKill('after the answer, before commit 2', 'write_change:request'),
  completionKill('after commit 2, before the response', 'write_change:response'),
  sendingKill('after the claim, before asking the provider', 'claim:response'),
  { ...sendingKill('after asking the provider, before its answer', 'charge:response'), short: true },
  sendingKill('after its answer, before commit 2', 'write_change:request'),
  sendingKill('after commit 2, before the response', 'write_change:response'),
  verificationKill('before the claim', 'claim:request'),
  verificationKill('after sending, before the answer', 'charge:response'),
  verificationKill('after the answer, before commit 2', 'write_change:request'),
  verificationKill('after commit 2, before the response', 'write_change:response'),
  {
    name: 'payers: notification, return and recovery at once on two replicas',
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
        () => notify(world, one.url, payer.line),
        () => notify(world, two.url, payer.line),
        () => notify(world, two.url, payer.line, { isForged: true }),
      ]);
      await inParallel(world.random.shuffled(hints), hints.length);
      for (const payer of waiting) await becomes(world, payer, 'SUCCEEDED');
      await expectOneCompletionEach(world, waiting);
    },
  },
  {
    name: 'payers: a notification that contradicts the provider',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payer = await sendAway(world, url, { wallet: 'WALLET_B' });
      const told = await notify(world, url, {
        ...payer.line,
        status: 'paid',
        amount_captured: payer.line.amount,
      });
      world.expect(told === 200, `the response to the notification was ${told}`);
      await processed(world);
      const now = await getPayment(url, payer.order, payer.id);
      world.expect(now?.status === 'READY_TO_PAY', `nobody paid, but the status is ${now?.status}`);
      const forged = await notify(world, url, payer.line, { isForged: true });
      world.expect(forged === 401, `the response to a forged notification was ${forged}`);
    },
  },
  {
    name: 'payers: killed between storing a notification and processing it',
    async run(world) {
      const replica = await world.startReplica();
      const payer = await sendAway(world, replica.url, { wallet: 'WALLET_B' });
      await agree(world, payer);
      // A signed report is settled alone; all notifications that a look-up covers are settled together.
      const settling = world.can('look_ups') ? 'settle_served_news' : 'settle_news';
      const point = world.random.pick(['take_due_transactions', 'read_open_news', settling]);
      const stop = world.gate.hold(`${point}:${world.random.pick(['request', 'response'])}`);
      const told = await notify(world, replica.url, payer.line);
      world.expect(told === 200, `the response to the notification was ${told}`);
      await stop.reached;
      await replica.kill();
      world.random.pick([stop.cut, stop.release])();
      const other = await world.startReplica({ unhurried: true });
      await world.query('UPDATE notification SET check_at = now() WHERE check_at IS NOT NULL');
      await becomes(world, payer, 'SUCCEEDED');
      world.expect(
        (await notify(world, other.url, payer.line)) === 200,
        'a repeated notification was refused',
      );
      await processed(world);
    },
  },
  {
    name: 'payers: a payer who pays while the payment expires',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payer = await sendAway(world, url, { wallet: 'WALLET_B', description: 'sandbox:stay_open' });
      // Days later, the last look-up, the closing and the payer come at once.
      await world.query(`UPDATE transaction SET ${older('2 days')} WHERE id = $1`, [payer.transactionId]);
      const actions = world.random.shuffled([
        () => agree(world, payer),
        () => makeDue(world, payer),
        () => returnTo(url, payer),
      ]);
      await inParallel(actions, actions.length);
      await notify(world, url, payer.line);
      await becomes(world, payer, 'SUCCEEDED');
    },
  },
];

async function processed(world: World): Promise<void> {
  const open = 'SELECT 1 FROM notification WHERE settled_at IS NULL';
  await world.until('notifications to be processed', async () => (await world.query(open)).length === 0);
}

async function expectOneCompletionEach(world: World, payers: readonly Payer[]): Promise<void> {
  if (!world.can('completions')) return;
  const ledger = await world.ledger();
  const done = ledger.filter(({ kind, status }) => kind === 'completion' && status === 'succeeded');
  world.expect(done.length === payers.length, `${done.length} completions for ${payers.length} payers`);
}

/** Makes a case that kills the replica while it takes the money of a payer who agreed; another replica takes over. */
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

/**
 * Makes a case that kills the replica while it requests a page for the payer; the payer pays if the page was created
 * after all.
 */
function sendingKill(step: string, point: string): Case {
  return {
    name: `payers: killed while one is redirected, ${step}`,
    async run(world) {
      const order = world.order({ wallet: 'WALLET_D' });
      const stop = await killAt(world, point, order);
      world.random.pick([stop.cut, stop.release])();
      const { url } = await world.startReplica();
      const { id } = paymentOf(await world.insist(order)) ?? { id: '' };
      world.expect(await world.drain(), 'the redirect stays open');
      const payer = await payerOf(world, url, order, id);
      if (!payer) return;
      await agree(world, payer);
      await returnTo(url, payer);
      await becomes(world, payer, 'SUCCEEDED');
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
      const sql = `SELECT p.status, t.id FROM payment p JOIN transaction t ON t.payment_id = p.id
        WHERE p.account_id = $1 AND p.idempotency_key = $2`;
      const [row] = await world.query(sql, [ACCOUNT_ONE, order.key]);
      const told = (await world.ledger()).filter((line) => line.idempotency_key === row?.id);
      // If the claim was committed after its process had died, nothing was sent, and the provider has closed the
      // payment.
      const expected = told.every(({ kind }) => kind === 'closed') ? 'ERROR' : 'VERIFIED';
      world.expect(row?.status === expected, `the verification is ${row?.status}, not ${expected}`);
    },
  };
}
