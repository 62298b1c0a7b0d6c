import { readFileSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { copyCompiled } from '../../support/copy-checkout.ts';
import { ACCOUNT_ONE } from '../../support/payment-requests.ts';
import { underLoad } from '../load.ts';
import { insistOn, operate, pay } from '../operate.ts';
import { type Order, reasonOf, send } from '../orders.ts';
import type { Process } from '../processes.ts';
import { expectAllTold, startReceiver } from '../receiver.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** A field of the request that the previous release does not know and therefore ignores. */
const NEW_FIELD = 'nationality';
/** Its name in the previous release, of the same length so that the encoded descriptor stays valid. */
const UNKNOWN_NAME = 'not_known_8';
/** Options for an order whose request contains the field. */
const WITH_NEW_FIELD = { [NEW_FIELD]: 'CO' };

/** Two releases side by side on one database: payments begun by one and retried at the other. */
export const RELEASES: readonly Case[] = [
  {
    name: 'a rolling release: killed after sending, retried at a release that knows another field',
    short: true,
    async run(world) {
      const [taker, other] = await bothReleases(world);
      const order = world.order(WITH_NEW_FIELD);
      const stop = world.gate.hold('charge:response');
      const sent = send(taker.url, order);
      await stop.reached;
      await taker.kill();
      stop.cut();
      await sent;
      const code = reasonOf(await send(other.url, order));
      world.expect(
        code === 'REQUEST_IN_PROGRESS',
        `while the payment was open the response to the retry was ${code}`,
      );
      await world.endLeases();
      const answer = await world.insist(order);
      world.expect(await world.isPaid(answer), `the response to the retry was ${answer.status}`);
    },
  },
  {
    name: 'a rolling release: answered, and replayed at a release that knows another field',
    async run(world) {
      const [taker, other] = await bothReleases(world);
      const order = world.order(WITH_NEW_FIELD);
      const answer = await send(taker.url, order);
      const replay = await send(other.url, order);
      world.expect(
        replay.replayed && replay.body === answer.body,
        `the response to the retry was ${replay.status}`,
      );
      await expectReuseRefused(world, taker, order);
    },
  },
  {
    name: 'a rolling release: operations killed at one, recovered and repeated at the other',
    async run(world) {
      const [taker, other] = await bothReleases(world);
      const payment = await pay(world, taker.url, { capture: true });
      const asked = { verb: 'refund', payment, key: 'refund', percent: 30 } as const;
      const point = world.random.pick(['operation', 'write_change', 'claim_operation']);
      const stop = world.gate.hold(`${point}:response`);
      const sent = operate(taker.url, asked);
      await stop.reached;
      await taker.kill();
      await sent;
      stop.cut();
      await world.endLeases();
      const answer = await insistOn(world, asked);
      const again = await operate(other.url, asked);
      world.expect(again.body === answer.body, 'a repeat got another response');
      await world.drain();
      const more = await operate(other.url, { ...asked, key: 'more', percent: 80 });
      // A refund that was only claimed never reached the provider, so its amount can be refunded again.
      const [refund] = await world.query("SELECT status FROM transaction WHERE type = 'REFUND'");
      const isRefused = reasonOf({ ...more, tookMs: 0 }) === 'INVALID_AMOUNT';
      world.expect(
        isRefused || refund?.status !== 'SUCCEEDED',
        `the response to a larger refund was ${more.status}`,
      );
    },
  },
  {
    name: 'a rolling release: replicas replaced one after the other, in order, under load',
    async run(world) {
      const before = await olderRelease(world);
      const old = [
        await world.startReplica({ checkout: before }),
        await world.startReplica({ checkout: before }),
      ];
      const receiver = await startReceiver(
        world,
        ACCOUNT_ONE,
        () => 'take',
        (text) => text.replaceAll(UNKNOWN_NAME, NEW_FIELD),
      );
      const work = async () => {
        for (const replica of old) {
          await world.startReplica();
          const status = await replica.end();
          world.expect(status === 0, `a replica that was told to end exited with ${status}`);
        }
      };
      await underLoad(world, work, 120);
      world.expect(await world.drain(), 'outcomes stay open');
      await expectAllTold(world, ACCOUNT_ONE, receiver);
    },
  },
];

/** Starts the previous release and this one, in random order. */
async function bothReleases(world: World): Promise<[Process, Process]> {
  const before = await olderRelease(world);
  const unhurried = true;
  const old = await world.startReplica({ checkout: before, unhurried });
  const [one, two] = [old, await world.startReplica({ unhurried })];
  return world.random.pick([
    [one, two],
    [two, one],
  ]);
}

/** Makes a copy of the service that does not know the new field: its descriptor has another name for it. */
async function olderRelease(world: World): Promise<string> {
  const copy = await copyCompiled(world.checkout);
  world.atEnd(async () => copy.remove());
  const file = join(copy.path, 'gen/payments/v1/customer_payer_pb.js');
  const text = readFileSync(file, 'utf8');
  const [descriptor = ''] = /(?<=fileDesc\(")[^"]+/.exec(text) ?? [];
  const renamed = Buffer.from(descriptor, 'base64').toString('latin1').replaceAll(NEW_FIELD, UNKNOWN_NAME);
  writeFileSync(file, text.replace(descriptor, Buffer.from(renamed, 'latin1').toString('base64')));
  return copy.path;
}

/** Expects that a different request with the same key is refused, because a release can compare its own requests. */
async function expectReuseRefused(world: World, replica: Process, order: Order): Promise<void> {
  const other = world.order({ key: order.key, account: order.account });
  const answer = await send(replica.url, other);
  world.expect(
    reasonOf(answer) === 'IDEMPOTENCY_KEY_REUSED',
    `the response to another request was ${answer.status}`,
  );
}
