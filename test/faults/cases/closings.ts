import { inParallel } from '../in-parallel.ts';
import { type Asked, insistOn, operate } from '../operate.ts';
import { exchange, getPayment, type OrderOptions } from '../orders.ts';
import { makeDue, type Payer, returnTo, sendAway, settled } from '../wallets.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Cancels of payments that await their payer, which close them at the provider, during faults. */
export const CLOSINGS: readonly Case[] = [
  // The payer's money is taken without a completion by the service, so only a real close prevents it.
  ...closingKills('closings', { wallet: 'WALLET_B' }, 'between the claim and the close'),
  {
    name: 'closings: the payer pays while the close runs',
    short: true,
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const payers = await inParallel(
        Array.from({ length: 4 }, () => () => sendAway(world, url, anyWallet(world))),
        4,
      );
      const actions = payers.flatMap((payer): (() => Promise<unknown>)[] => [
        () => tryToPay(world, url, payer),
        () => operate(url, cancelOf(payer)),
        () => makeDue(world, payer),
      ]);
      await inParallel(world.random.shuffled(actions), actions.length);
      for (const payer of payers) await expectOneEnd(world, url, payer);
    },
  },
  {
    name: 'closings: several at once, at two replicas, and the payer’s own',
    async run(world) {
      const [one, two] = [
        await world.startReplica({ unhurried: true }),
        await world.startReplica({ unhurried: true }),
      ];
      const payer = await sendAway(world, one.url, anyWallet(world));
      const cancels = Array.from(
        { length: 8 },
        (_, i) => () => operate((i % 2 ? two : one).url, { ...cancelOf(payer), key: `close-${i}` }),
      );
      const isPayerLeaving = world.random.integer(0, 1) === 1;
      const leaves = () => leave(two.url, payer);
      const calls: (() => Promise<unknown>)[] = isPayerLeaving ? [...cancels, leaves] : cancels;
      await inParallel(world.random.shuffled(calls), calls.length);
      await settled(world, payer.id);
      const { length } = await cancelsOf(world, payer);
      const isOnce = length === 1 || (length === 0 && isPayerLeaving);
      world.expect(isOnce, `there are ${length} cancels of one payment`);
      if (length === 1) await expectOneEnd(world, one.url, payer);
    },
  },
];

/**
 * Makes a case for each step of closing a payment with a method, at which the replica is killed.
 *
 * @param short the step of the case that runs with `npm test`.
 */
export function closingKills(begins: string, options: OrderOptions, short?: string): readonly Case[] {
  const steps: readonly (readonly [step: string, pointOf: (world: World) => string])[] = [
    ['before the claim', () => 'claim_operation:request'],
    ['between the claim and the close', () => 'claim_operation:response'],
    ['while the close is on its way', (world) => `${world.kind.closesBy}:request`],
    ['after the close, before its answer', (world) => `${world.kind.closesBy}:response`],
    ['after the answer, before commit 2', () => 'write_change:request'],
    ['after commit 2, before the response', () => 'write_change:response'],
  ];
  return steps.map(([step, pointOf]) => {
    const made = kill(`${begins}: killed ${step}`, pointOf, options);
    return step === short ? { ...made, short: true } : made;
  });
}

/**
 * Makes a case that kills the replica while it closes a payment. Another replica takes over, and the payer, who may
 * have paid in the meantime, tries to pay.
 */
function kill(name: string, pointOf: (world: World) => string, options: OrderOptions): Case {
  return {
    name,
    async run(world) {
      const replica = await world.startReplica();
      const payer = await sendAway(world, replica.url, options);
      const point = pointOf(world);
      const stop = world.gate.hold(point);
      const sent = operate(replica.url, cancelOf(payer));
      await stop.reached;
      await replica.kill();
      await sent;
      world.random.pick([stop.cut, stop.release])();
      const isClaimed = point !== 'claim_operation:request';
      const { url } = await world.startReplica({ unhurried: true });
      if (isClaimed && world.random.integer(0, 1) === 1) await tryToPay(world, url, payer);
      const first = await insistOn(world, cancelOf(payer));
      await expectOneEnd(world, url, payer);
      await tryToPay(world, url, payer);
      await expectOneEnd(world, url, payer);
      const again = await insistOn(world, cancelOf(payer));
      world.expect(again.body === first.body, 'a repeat of the cancel got another response');
    },
  };
}

/** Chooses a wallet that takes the payer's money by itself, or one at which the service completes the payment. */
const anyWallet = (world: World) => ({ wallet: world.random.pick(['WALLET_B', 'WALLET_D']) });

/** Returns the merchant's cancel of a payment, which has one key. */
export function cancelOf({ id, order }: Payer): Asked {
  return { verb: 'cancel', payment: { id, order, trouble: () => {} }, key: `close ${id}` };
}

/** Pays at the provider's page, unless the provider has closed it, and returns. */
export async function tryToPay(world: World, url: string, payer: Payer): Promise<void> {
  payer.query = await world.judge.agree(payer.line).catch(() => '');
  await returnTo(url, payer);
}

/** Leaves the provider's page without paying, and returns. */
async function leave(url: string, { id }: Payer): Promise<void> {
  await exchange(`${url}/v1/payments/${id}/return/canceled`, { method: 'GET', headers: {}, body: undefined });
}

/** Returns the statuses of a payment's cancels. */
export async function cancelsOf(world: World, { id }: Payer): Promise<string[]> {
  const rows = await world.query("SELECT status FROM transaction WHERE payment_id = $1 AND type = 'CANCEL'", [
    id,
  ]);
  return rows.map(({ status }) => String(status));
}

/**
 * Expects that a payment and its cancel have agreed on the end: closed, or paid and not canceled. The judge compares
 * the end with the provider's ledger.
 */
async function expectOneEnd(world: World, url: string, payer: Payer): Promise<void> {
  await settled(world, payer.id);
  const { status = '' } = (await getPayment(url, payer.order, payer.id)) ?? {};
  const cancels = await cancelsOf(world, payer);
  const end = `${status}, ${cancels}`;
  // Without a cancel, the payer has paid before its claim.
  const ends = ['CANCELED, SUCCEEDED', 'SUCCEEDED, DECLINED', 'SUCCEEDED, '];
  world.expect(ends.includes(end), `the payment and its cancel ended as ${end}`);
}
