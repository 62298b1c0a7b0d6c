import { older } from '../../support/tables.ts';
import { paymentOf, send } from '../orders.ts';
import type { LedgerLine } from '../providers/provider.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** A provider that cannot be reached or misbehaves. */
export const PROVIDER: readonly Case[] = [
  {
    name: 'provider: refused, no address, no TLS',
    short: true,
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      for (const country of world.random.shuffled(['BR', 'MX', 'CO'])) {
        const answer = await send(replica.url, world.order({ country }));
        const payment = paymentOf(answer);
        world.expect(payment?.status === 'ERROR', `${country}: ${payment?.status ?? answer.status}`);
        world.expect(answer.body.includes('"PROVIDER_UNAVAILABLE"'), `${country}: another response code`);
      }
      world.expect((await world.ledger()).length === 0, 'something was charged');
    },
  },
  misbehaving(
    'provider: hang, reset, 5xx, before the charge',
    ['hang_before', 'reset_before', 'error_before'],
    {
      first: 'PENDING',
      last: 'ERROR',
    },
  ),
  misbehaving('provider: hang, reset, 5xx, after the charge', ['hang_after', 'reset_after', 'error_after'], {
    first: 'PENDING',
    last: 'SUCCEEDED',
  }),
  misbehaving('provider: HTML, truncated, 10 MB, dripping', ['html', 'truncated', 'huge', 'slow_drip'], {
    first: 'PENDING',
    last: 'SUCCEEDED',
  }),
  misbehaving('provider: wrong amount, wrong currency', ['wrong_amount', 'wrong_currency'], {
    first: 'PENDING',
    last: 'SUCCEEDED',
  }),
  misbehaving('provider: answers twice', ['duplicate_approval'], { first: 'SUCCEEDED', last: 'SUCCEEDED' }),
  {
    name: 'provider: a charge that was lost before it was made, and is looked up for days',
    async run(world) {
      const { url } = await world.startReplica({ unhurried: true });
      const order = world.order({ description: 'sandbox:reset_before' });
      const status = paymentOf(await send(url, order))?.status;
      world.expect(status === 'PENDING', `the response was ${status}`);
      for (let days = 1; days <= CHECKED_DAYS; days++) await checkedADayLater(world);
      const [row] = await world.query('SELECT status FROM payment');
      // Unless its absence proves that it is never made, it stays unknown, whatever its age.
      const expected = world.can('lost_charges') ? 'ERROR' : 'PENDING';
      world.expect(row?.status === expected, `the lost charge is ${row?.status}`);
      world.expect((await world.ledger()).every(isDeclined), 'something was charged');
    },
  },
  {
    name: 'provider: late approvals',
    async run(world) {
      const replica = await world.startReplica();
      const orders = Array.from({ length: 8 }, () =>
        world.order({ description: `sandbox:late_approval:${world.random.integer(200, 4_000)}` }),
      );
      await Promise.all(orders.map((order) => send(replica.url, order)));
      world.expect(await world.drain(), 'outcomes stayed open');
    },
  },
  {
    name: 'provider: declines',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      for (const code of ['05', '51', '41', 'N7', 'X9']) {
        const answer = await send(replica.url, world.order({ description: `sandbox:decline:${code}` }));
        world.expect(paymentOf(answer)?.status === 'DECLINED', `${code}: ${answer.status}`);
      }
    },
  },
  {
    name: 'provider: cut off or silent for a while',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const orders = Array.from({ length: 6 }, () => world.order());
      const stop = world.gate.hold('charge:response', 2);
      const sending = orders.map((order) => send(replica.url, order));
      await stop.reached;
      world.random.pick([world.provider.down, world.provider.silence])();
      stop.cut();
      await Promise.all(sending);
      world.provider.up();
      for (const order of orders) await world.insist(order);
    },
  },
];

const CHECKED_DAYS = 8;

/** Makes the only attempt a day older, and waits until it was looked up, or has ended. */
async function checkedADayLater(world: World): Promise<void> {
  await world.query(`UPDATE transaction SET ${older('1 day')}, check_at = now() WHERE check_at IS NOT NULL`);
  await world.until('the look-up', async () => {
    const due = await world.query(
      "SELECT 1 FROM transaction WHERE check_at <= now() + interval '1 minute' AND status = 'PENDING'",
    );
    return due.length === 0;
  });
}

function isDeclined({ response_code }: LedgerLine): boolean {
  return response_code !== '00';
}

/**
 * Makes a case in which the provider misbehaves in every way at once, each on two orders, with normal orders in
 * between.
 */
function misbehaving(name: string, kinds: readonly string[], expected: Expected): Case {
  return {
    name,
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      await Promise.all(
        world.random.shuffled([...kinds, ...kinds]).map(async (kind) => {
          await expectOf(world, replica.url, `sandbox:${kind}`, expected);
          // This order may be sent on a connection that the previous order broke, so its outcome may be learned only
          // later.
          await expectOf(world, replica.url, undefined, { first: undefined, last: 'SUCCEEDED' });
        }),
      );
    },
  };
}

/** The status in the first response, if it is certain, and the final status. */
type Expected = { readonly first: string | undefined; readonly last: string };

async function expectOf(
  world: World,
  url: string,
  description: string | undefined,
  expected: Expected,
): Promise<void> {
  const order = world.order(description === undefined ? {} : { description });
  const answer = await send(url, order);
  const payment = paymentOf(answer);
  world.expect(
    expected.first === undefined ? payment !== undefined : payment?.status === expected.first,
    `${description}: the response was ${payment?.status ?? answer.status}`,
  );
  if (!payment) return;
  const status = async () =>
    (await world.query('SELECT status FROM payment WHERE id = $1', [payment.id]))[0]?.status;
  await world
    .until(`${description} to be ${expected.last}`, async () => (await status()) === expected.last, 30_000)
    .catch(async () => world.expect(false, `${description}: ended as ${await status()}`));
}
