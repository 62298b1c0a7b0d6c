import { ACCOUNT_ONE, headersOne } from '../../support/payment-requests.ts';
import type { Stop } from '../gate.ts';
import { inParallel } from '../in-parallel.ts';
import { type Answer, exchange, type Order, paymentOf, send } from '../orders.ts';
import type { World } from '../world.ts';
import type { Case } from './case.ts';

/** Captures, cancels and refunds under faults: what must hold is I9, beside all that holds for payments. */
export const OPERATIONS: readonly Case[] = [
  kill('before the claim', 'claim_operation:request'),
  kill('after the claim, before sending', 'claim_operation:response'),
  kill('while the request is on its way', 'operation:request'),
  { ...kill('after sending, before the answer', 'operation:response'), short: true },
  kill('after the answer, before commit 2', 'finish_operation:request'),
  kill('after commit 2, before the response', 'finish_operation:response'),
  {
    name: 'operations: the provider resets, fails or answers nonsense after it has refunded',
    async run(world) {
      const replica = await world.startReplica();
      for (const trouble of [
        'reset_after',
        'error_after',
        'hang_after',
        'html',
        'error_before',
        'reset_before',
      ]) {
        const payment = await pay(world, replica.url, true);
        const asked = { verb: 'refund', paymentId: payment.id, key: `refund ${payment.id}` } as const;
        const first = await operate(replica.url, { ...asked, description: `sandbox:${trouble}` });
        world.expect(first.status === 200, `${trouble}: the refund was answered ${first.status}`);
        world.expect(await world.drain(), `${trouble}: the refund stays open`);
        const again = await operate(replica.url, { ...asked, description: `sandbox:${trouble}` });
        world.expect(again.body === first.body, `${trouble}: a repeat was answered otherwise`);
      }
    },
  },
  {
    name: 'operations: a hundred equal refunds at once, at two replicas',
    short: true,
    async run(world) {
      const [one, two] = [await world.startReplica(), await world.startReplica()];
      const payment = await pay(world, one.url, true);
      const asked = { verb: 'refund', paymentId: payment.id, key: 'refund-all', value: 'part' } as const;
      const calls = Array.from(
        { length: 100 },
        (_, i) => () => operate((i % 2 ? two : one).url, asked, payment),
      );
      const answers = await inParallel(calls, 100);
      const bodies = new Set(answers.filter(({ status }) => status === 200).map(({ body }) => body));
      world.expect(bodies.size === 1, `the refund was answered in ${bodies.size} ways`);
      const rows = await world.query("SELECT 1 FROM transaction WHERE type = 'REFUND'");
      world.expect(rows.length === 1, `there are ${rows.length} refunds`);
    },
  },
  {
    name: 'operations: partial refunds that race to more than the whole, at two replicas',
    async run(world) {
      const [one, two] = [await world.startReplica(), await world.startReplica()];
      const payment = await pay(world, one.url, true);
      const calls = Array.from({ length: 24 }, (_, i) => async () => {
        const asked = { verb: 'refund', paymentId: payment.id, key: `part-${i}`, value: 'part' } as const;
        for (let tries = 0; tries < 20; tries++) {
          const answer = await operate((i % 2 ? two : one).url, asked, payment);
          if (answer.status !== 409) return answer;
        }
        return undefined;
      });
      await inParallel(calls, 24);
      const [row] = await world.query('SELECT refunded_minor_units AS refunded FROM payment WHERE id = $1', [
        payment.id,
      ]);
      world.expect(Number(row?.refunded) > 0, 'nothing was refunded');
    },
  },
  {
    name: 'operations: a capture against a cancel',
    async run(world) {
      const [one, two] = [await world.startReplica(), await world.startReplica()];
      for (let round = 0; round < 5; round++) {
        const payment = await pay(world, one.url, false);
        const answers = await Promise.all([
          operate(one.url, { verb: 'capture', paymentId: payment.id, key: `capture ${payment.id}` }),
          operate(two.url, { verb: 'cancel', paymentId: payment.id, key: `cancel ${payment.id}` }),
        ]);
        const done = answers.filter(({ status }) => status === 200).length;
        world.expect(done === 1, `${done} of a capture and a cancel at once were done`);
      }
    },
  },
];

type Asked = {
  readonly verb: 'capture' | 'cancel' | 'refund';
  readonly paymentId: string;
  readonly key: string;
  readonly description?: string;
  /** 'part': three tenths of the payment; all that is left when absent. */
  readonly value?: 'part';
};

/** A payment that was approved. */
type Paid = { readonly id: string; readonly order: Order };

async function pay(world: World, url: string, capture: boolean): Promise<Paid> {
  const order = world.order({ capture, vault: false });
  const payment = paymentOf(await send(url, order));
  if (!payment) throw new Error('the payment was not made');
  return { id: payment.id, order };
}

async function operate(url: string, asked: Asked, payment?: Paid): Promise<Omit<Answer, 'tookMs'>> {
  const { amount } = payment ? JSON.parse(payment.order.body) : { amount: undefined };
  const part = amount && { currency: amount.currency, value: partOf(amount.value) };
  return exchange(`${url}/v1/payments/${asked.paymentId}/${asked.verb}`, {
    method: 'POST',
    headers: { ...headersOne(asked.key), 'content-type': 'application/json' },
    body: JSON.stringify({
      ...(asked.description && { description: asked.description }),
      ...(asked.value && part && { amount: part }),
    }),
  });
}

/** Three tenths, in the same digits. */
function partOf(value: string): string {
  const [whole = '', fraction = ''] = value.split('.');
  const units = String((BigInt(whole + fraction) * 3n) / 10n).padStart(fraction.length + 1, '0');
  return fraction ? `${units.slice(0, -fraction.length)}.${units.slice(-fraction.length)}` : units;
}

/** Kills the replica at a step of an operation; the repeat is answered by another one. */
function kill(step: string, point: string): Case {
  return {
    name: `operations: killed ${step}`,
    async run(world) {
      const capture = world.random.integer(0, 1) === 1;
      const verb = capture ? 'refund' : world.random.pick(['capture', 'cancel'] as const);
      const replica = await world.startReplica();
      const payment = await pay(world, replica.url, capture);
      const asked: Asked = { verb, paymentId: payment.id, key: `${verb} ${payment.id}` };
      const stop: Stop = world.gate.hold(point);
      const sent = operate(replica.url, asked);
      await stop.reached;
      await replica.kill();
      await sent;
      world.random.pick([stop.cut, stop.release])();
      const other = await world.startReplica();
      let answer = await operate(other.url, asked);
      await world.until('the operation to be answered', async () => {
        if (answer.status === 409) answer = await operate(other.url, asked);
        return answer.status === 200;
      });
      world.expect(await world.drain(), 'the operation stays open');
      const again = await operate(other.url, asked);
      world.expect(again.body === answer.body, 'a repeat was answered otherwise');
      const rows = await world.query(
        "SELECT 1 FROM transaction WHERE parent_id IS NOT NULL AND status = 'SUCCEEDED' AND account_id = $1",
        [ACCOUNT_ONE],
      );
      world.expect(rows.length <= 1, `the ${verb} was done ${rows.length} times`);
    },
  };
}
