import { inParallel } from '../in-parallel.ts';
import { deliver } from '../notify.ts';
import { type Asked, insistOn, operate, pay, verbsOf } from '../operate.ts';
import type { OrderOptions } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Captures, cancels and refunds during faults: I9 must hold in addition to everything that holds for payments. */
export const OPERATIONS: readonly Case[] = [
  kill('before the claim', 'claim_operation:request'),
  kill('after the claim, before sending', 'claim_operation:response'),
  kill('while the request is on its way', 'operation:request'),
  { ...kill('after sending, before the answer', 'operation:response'), short: true },
  kill('after the answer, before commit 2', 'write_change:request'),
  kill('after commit 2, before the response', 'write_change:response'),
  recoveryKill('taking', 'take_due_transactions', 'hang_after'),
  recoveryKill('asking the provider', 'look_up', 'reset_after'),
  recoveryKill('closing at the provider', 'close', 'reset_before'),
  recoveryKill('postponing', 'postpone_check', 'error_before'),
  {
    name: 'operations: the provider resets, fails or answers nonsense, before or after performing them',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      const tried = ['reset_after', 'error_after', 'hang_after', 'html', 'error_before', 'reset_before'].map(
        (trouble) => async () => {
          const asked = { ...(await somethingTo(world, replica.url)), description: `sandbox:${trouble}` };
          const first = await operate(replica.url, asked);
          world.expect(
            first.status === 200,
            `${trouble}: the response to the ${asked.verb} was ${first.status}: ${first.body}`,
          );
          world.expect(await world.drain(), `${trouble}: the ${asked.verb} stays open`);
          const again = await operate(replica.url, asked);
          world.expect(again.body === first.body, `${trouble}: a repeat got another response`);
        },
      );
      await inParallel(tried, tried.length);
    },
  },
  {
    name: 'operations: a hundred equal refunds at once, at two replicas',
    short: true,
    async run(world) {
      const [one, two] = [
        await world.startReplica({ unhurried: true }),
        await world.startReplica({ unhurried: true }),
      ];
      const payment = await pay(world, one.url, { capture: true });
      const asked = { verb: 'refund', payment, key: 'refund-all', percent: 30 } as const;
      const calls = Array.from({ length: 100 }, (_, i) => () => operate((i % 2 ? two : one).url, asked));
      const answers = await inParallel(calls, 100);
      const bodies = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body));
      world.expect(bodies.size === 1, `the refund got ${bodies.size} different responses`);
      const rows = await world.query("SELECT 1 FROM transaction WHERE type = 'REFUND'");
      world.expect(rows.length === 1, `there are ${rows.length} refunds`);
    },
  },
  race('operations: partial refunds', 'refund', { capture: true }),
  race('operations: partial captures', 'capture', { capture: false }),
  {
    name: 'operations: a capture against a cancel',
    async run(world) {
      const [one, two] = [
        await world.startReplica({ unhurried: true }),
        await world.startReplica({ unhurried: true }),
      ];
      const rounds = Array.from({ length: 5 }, () => async () => {
        const payment = await pay(world, one.url, { capture: false });
        const answers = await Promise.all([
          operate(one.url, { verb: 'capture', payment, key: `capture ${payment.id}` }),
          operate(two.url, { verb: 'cancel', payment, key: `cancel ${payment.id}` }),
        ]);
        const done = answers.filter(({ status }) => status === 200).length;
        world.expect(done === 1, `${done} of a concurrent capture and cancel succeeded`);
      });
      await inParallel(rounds, rounds.length);
    },
  },
  {
    name: 'operations: the acknowledgement of their claim or outcome lost',
    async run(world) {
      const replica = await world.startReplica({ unhurried: true });
      for (const point of ['claim_operation:response', 'write_change:response']) {
        const asked = await somethingTo(world, replica.url);
        world.gate.next(point, world.random.pick(['cut', { refuse: '08P01' }] as const));
        const first = await operate(replica.url, asked);
        world.expect(first.status === 200 || first.status === 409, `the response was ${first.status}`);
        const answer = await insistOn(world, asked);
        world.expect(first.status !== 200 || first.body === answer.body, 'a repeat got another response');
      }
    },
  },
  {
    name: 'operations: refunds made at the provider, and the replica killed while it records them',
    async run(world) {
      let replica = await world.startReplica();
      const payment = await pay(world, replica.url, { capture: true });
      const [base] = await world.query(
        "SELECT id FROM transaction WHERE payment_id = $1 AND parent_id IS NULL AND status = 'SUCCEEDED'",
        [payment.id],
      );
      const lineOf = async () => {
        const found = (await world.judge.ledger()).find((line) => line.idempotency_key === base?.id);
        if (!found) throw new Error("the charge is not in the provider's ledger");
        return found;
      };
      for (const side of ['request', 'response']) {
        const stop = world.gate.hold(`write_change:${side}`);
        const line = await lineOf();
        const told = world.judge.refundThere?.(line, 10);
        if (told) await deliver(replica.url, line.acquirer === 'ONE' ? 'judge' : 'judge-two', told);
        await stop.reached;
        await replica.kill();
        world.random.pick([stop.cut, stop.release])();
        replica = await world.startReplica();
      }
      // A refund of ours comes in between, and is counted as well.
      await insistOn(world, { verb: 'refund', payment, key: `ours ${payment.id}`, percent: 30 });
      await world.until('all that was refunded to be in the books', async () => {
        const [row] = await world.query(
          'SELECT refunded_minor_units AS refunded FROM payment WHERE id = $1',
          [payment.id],
        );
        const { amount_refunded: refunded } = await lineOf();
        return refunded > 20 && Number(row?.refunded) === refunded;
      });
    },
  },
];

/** Makes a payment and chooses an operation that it allows. */
async function somethingTo(world: World, url: string): Promise<Asked> {
  const verb = world.random.pick(verbsOf(world));
  const payment = await pay(world, url, { capture: verb === 'refund' });
  return { verb, payment, key: `${verb} ${payment.id}` };
}

/** Makes a case with concurrent partial operations that together exceed the payment. */
export function race(name: string, verb: 'refund' | 'capture', options: OrderOptions): Case {
  return {
    name: `${name} that race to more than the whole, at two replicas`,
    async run(world) {
      const [one, two] = [
        await world.startReplica({ unhurried: true }),
        await world.startReplica({ unhurried: true }),
      ];
      const payment = await pay(world, one.url, options);
      const calls = Array.from({ length: 24 }, (_, i) => async () => {
        const asked = { verb, payment, key: `part-${i}`, percent: 30 } as const;
        for (let tries = 0; tries < 20; tries++) {
          const answer = await operate((i % 2 ? two : one).url, asked);
          if (answer.status !== 409) return;
        }
      });
      await inParallel(calls, 24);
      world.expect(await world.drain(), 'an operation stays open');
      const [row] = await world.query(
        "SELECT count(*)::integer AS done FROM transaction WHERE parent_id IS NOT NULL AND status = 'SUCCEEDED'",
      );
      const done = Number(row?.done);
      world.expect(done >= 1 && done <= 3, `${done} ${verb}s of 30 % succeeded`);
    },
  };
}

/** Makes a payment for each verb. @returns the operations to perform. */
function oneOfEach(world: World, url: string, description?: string): Promise<Asked[]> {
  const each = verbsOf(world).map((verb) => async (): Promise<Asked> => {
    const payment = await pay(world, url, { capture: verb === 'refund' });
    return { verb, payment, key: `${verb} ${payment.id}`, ...(description && { description }) };
  });
  return inParallel(each, each.length);
}

async function expectOnce(world: World, asked: readonly Asked[]): Promise<void> {
  const answered = await Promise.all(asked.map((one) => insistOn(world, one)));
  world.expect(await world.drain(), 'an operation stays open');
  for (const [i, one] of asked.entries()) {
    const again = await insistOn(world, one);
    world.expect(again.body === answered[i]?.body, `a repeat of the ${one.verb} got another response`);
    const rows = await world.query(
      'SELECT 1 FROM transaction WHERE payment_id = $1 AND parent_id IS NOT NULL',
      [one.payment.id],
    );
    world.expect(rows.length === 1, `there are ${rows.length} transactions for the ${one.verb}`);
  }
}

/**
 * Makes a case that kills the replica while a capture, a cancel and a refund are at a step; another replica serves the
 * repeats.
 */
function kill(step: string, point: string): Case {
  return {
    name: `operations: killed ${step}`,
    async run(world) {
      const replica = await world.startReplica();
      const asked = await oneOfEach(world, replica.url);
      const stops = asked.map(() => world.gate.hold(point));
      const sent = asked.map((one) => operate(replica.url, one));
      await Promise.all(stops.map(({ reached }) => reached));
      await replica.kill();
      await Promise.all(sent);
      for (const stop of stops) world.random.pick([stop.cut, stop.release])();
      await world.startReplica({ unhurried: true });
      await expectOnce(world, asked);
    },
  };
}

/** Makes a case that creates unknown outcomes and kills the replica that looks them up, before and after a step. */
function recoveryKill(name: string, point: string, misbehaviour: string): Case {
  return {
    name: `operations: killed in recovery: ${name}`,
    async run(world) {
      let replica = await world.startReplica();
      const asked = await oneOfEach(world, replica.url, `sandbox:${misbehaviour}`);
      const sides = world.random.shuffled(['request', 'response']);
      const [first = '', second = ''] = sides.map((side) => `${point}:${side}`);
      let stop = world.gate.hold(first);
      const sent = asked.map((one) => operate(replica.url, one));
      const isTakenAlways = point.startsWith('take_');
      // The service searches for due work all the time; only searches with results count.
      if (isTakenAlways) await Promise.all(sent);
      await stop.reached;
      await replica.kill();
      await Promise.all(sent);
      world.random.pick([stop.cut, stop.release])();
      stop = world.gate.hold(second);
      replica = await world.startReplica();
      // After the first kill there may be nothing left to look up.
      const reached = stop.reached.then(
        () => true,
        () => false,
      );
      const isReached = await Promise.race([reached, world.drain().then(() => false)]);
      if (isReached) {
        await replica.kill();
        await world.startReplica({ unhurried: true });
      }
      world.random.pick([stop.cut, stop.release])();
      await expectOnce(world, asked);
    },
  };
}
